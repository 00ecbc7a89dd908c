"""A bug of each kind, planted, is found by the short runs, and told by its seed and a short history."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from checks import Violation, violations
from history import History
from in_process import Lagging, Servers, servers
from planted import AllocatesTwice, LosesWrites, ReadsStale, repeat_events, skip_events
from runs import SEEDS, check, run
from shrink import shortest

from seamark.store.opening import open_store


async def found(
    view: type[Lagging], plant: Callable[[Servers], None] = lambda site: None
) -> list[tuple[Violation, History]]:
    """What the short runs find, each with the history it is in."""
    everything = []
    for seed in SEEDS:
        chance, store = random.Random(seed), open_store("memory:")
        async with servers(store, [view(store, chance), view(store, chance)], chance) as site:
            plant(site)
            history = await run(site, seed)
            everything += [(violation, history) for violation in violations(history)]
    return everything


def of_rule(rule: str, everything: list[tuple[Violation, History]]) -> History:
    """The shortest history that breaks this rule."""
    chosen = [shortest(history, violation) for violation, history in everything if violation.rule == rule]
    assert chosen, f"not found; only {[str(violation) for violation, _ in everything]}"
    return min(chosen, key=lambda history: len(history.operations))


async def test_a_lost_write_is_found() -> None:
    history = of_rule("linearizable", await found(LosesWrites))
    assert len(history.operations) <= 10, history


async def test_a_stale_read_is_found() -> None:
    history = of_rule("linearizable", await found(ReadsStale))
    assert len(history.operations) <= 10, history


async def test_a_skipped_event_is_found() -> None:
    history = of_rule("watch gap", await found(Lagging, skip_events))
    assert len(history.operations) <= 2, history


async def test_a_repeated_event_is_found() -> None:
    of_rule("watch order", await found(Lagging, repeat_events))


async def test_a_double_allocation_is_found() -> None:
    of_rule("unique allocation", await found(AllocatesTwice))


async def test_a_failure_names_its_seed_and_shows_the_shortest_history() -> None:
    chance, store = random.Random(1), open_store("memory:")
    async with servers(store, [ReadsStale(store, chance), ReadsStale(store, chance)], chance) as site:
        history = await run(site, 1)
    with pytest.raises(AssertionError, match=r"seed 1: .*\n(.|\n)*shortest history:\n\["):
        check(history, 1)
