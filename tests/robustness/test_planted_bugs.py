"""A bug of each kind, planted, is found by the short runs, and told by its seed and a short history."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from checks import violations
from in_process import Lagging, Servers, servers
from planted import AllocatesTwice, LosesWrites, ReadsStale, repeat_events, skip_events
from runs import SEEDS, check, run
from shrink import shortest

from seamark.store.opening import open_store


async def found(
    rule: str, view: type[Lagging], plant: Callable[[Servers], None] = lambda site: None, *, at_most: int = 1000
) -> None:
    """The short runs find that this rule is broken, and show it by so few operations."""
    others: list[object] = []
    for seed in SEEDS:
        chance, store = random.Random(seed), open_store("memory:")
        async with servers(store, [view(store, chance), view(store, chance)], chance) as site:
            plant(site)
            history = await run(site, seed)
        for violation in violations(history):
            if violation.rule != rule:
                others.append(violation)
            elif len(shown := shortest(history, violation).operations) <= at_most:
                return
            else:
                others.append(shown)
    pytest.fail(f"not found; only {others}")


async def test_a_lost_write_is_found() -> None:
    await found("linearizable", LosesWrites, at_most=10)


async def test_a_stale_read_is_found() -> None:
    await found("linearizable", ReadsStale, at_most=10)


async def test_a_skipped_event_is_found() -> None:
    await found("watch gap", Lagging, skip_events, at_most=2)


async def test_a_repeated_event_is_found() -> None:
    await found("watch order", Lagging, repeat_events)


async def test_a_double_allocation_is_found() -> None:
    await found("unique allocation", AllocatesTwice)


async def test_a_failure_names_its_seed_and_shows_the_shortest_history() -> None:
    chance, store = random.Random(1), open_store("memory:")
    async with servers(store, [ReadsStale(store, chance), ReadsStale(store, chance)], chance) as site:
        history = await run(site, 1)
    with pytest.raises(AssertionError, match=r"seed 1: .*\n(.|\n)*shortest history:\n\["):
        check(history, 1)
