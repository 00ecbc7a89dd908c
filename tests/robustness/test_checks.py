"""The rules themselves: they accept every history that is right, and see each kind of wrong."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from checks import resource_of, violations
from history import LAST, Delivered, History, Operation, Seen, Watch
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from shrink import _later_watches, _until, _without, _without_key, shortest
from simulated import KEYS, simulated

seeds = st.integers(0, 1 << 32)


def rules(history: History) -> set[str]:
    return {violation.rule for violation in violations(history)}


@given(seeds)
def test_what_a_right_store_does_breaks_no_rule(seed: int) -> None:
    assert violations(simulated(seed)) == []


# --- one wrong answer each -------------------------------------------------------------------------


def stale_read(history: History, chance: random.Random) -> History | None:
    """A read shows a version that was overwritten before the read began."""
    choices = [
        (read, old)
        for write in history.operations
        if write.writes and write.seen
        for old in versions(history, write.key)
        if old.version < write.version
        for read in history.operations
        if read.verb == "get" and read.key == write.key and read.outcome == "done" and write.end < read.begin
    ]
    if not choices:
        return None
    read, old = chance.choice(choices)
    return changed(history, replace(read, version=old.version, seen=(old,)))


def versions(history: History, key: str) -> list[Seen]:
    return [seen for each in history.operations for seen in each.seen if seen.key == key]


def changed(history: History, operation: Operation) -> History:
    operations = (operation if each.number == operation.number else each for each in history.operations)
    return replace(history, operations=tuple(operations))


def lost_write(history: History, chance: random.Random) -> History | None:
    """A write is acknowledged, but all other clients go on as if it had not happened."""
    choices = [each for each in history.operations if each.verb == "list" and each.seen]
    if not choices:
        return None
    read = chance.choice(choices)
    token = {LAST: "lost"}
    key, begin = read.seen[0].key, read.begin
    seen = Seen(key, read.seen[0].version + 1, token)
    write = Operation(number=0, client="c9", verb="patch", key=key, begin=-2, end=-1, outcome="done", sent=token)
    write = replace(write, begin=begin - 0.6, end=begin - 0.3, version=seen.version, seen=(seen,))
    return replace(history, operations=(*history.operations, write))


def events_of(history: History, change: Callable[[list[Delivered]], list[Delivered]]) -> History:
    first, *others = history.watches
    return replace(history, watches=(replace(first, events=tuple(change(list(first.events)))), *others))


def chosen_change(events: list[Delivered], chance: random.Random) -> int | None:
    numbers = [number for number, event in enumerate(events[:-1]) if event.seen and event.type != "LISTED"]
    return chance.choice(numbers) if numbers else None


def skipped_event(history: History, chance: random.Random) -> History | None:
    at = chosen_change(list(history.watches[0].events), chance)
    return None if at is None else events_of(history, lambda events: events[:at] + events[at + 1 :])


def repeated_event(history: History, chance: random.Random) -> History | None:
    at = chosen_change(list(history.watches[0].events), chance)
    return None if at is None else events_of(history, lambda events: events[: at + 1] + events[at:])


def late_event(history: History, chance: random.Random) -> History | None:
    """A change is told after a later one."""
    events = [event for event in history.watches[0].events if event.type != "BOOKMARK"]
    if len(events) < 3:
        return None
    at = chance.randrange(1, len(events) - 1)
    events[at], events[at + 1] = events[at + 1], events[at]
    return events_of(history, lambda _: events)


def double_allocation(history: History, chance: random.Random) -> History | None:
    choices = [each for each in history.operations if each.verb == "list" and len(each.seen) > 1]
    if not choices:
        return None
    read = chance.choice(choices)
    first, second = read.seen
    return changed(history, replace(read, seen=(first, replace(second, claims=first.claims))))


def old_revision(history: History, chance: random.Random) -> History | None:
    """A list says it is of a version that was old before it began."""
    known = [each for each in history.operations if each.version and each.writes]
    choices = [(read, each) for read in history.operations if read.verb == "list" for each in known]
    choices = [(read, write) for read, write in choices if write.end < read.begin]
    if not choices:
        return None
    read, write = chance.choice(choices)
    return changed(history, replace(read, version=write.version - 1))


def overwritten_field(history: History, chance: random.Random) -> History | None:
    """A patch undoes what another client had written beside it."""
    events = list(history.watches[0].events)
    writers = {each.token: each for each in history.operations if each.token}
    choices = [
        number
        for number, event in enumerate(events)
        if event.type == "MODIFIED"
        and writers[event.seen[0].token].verb == "patch"
        and set(event.seen[0].notes) > set(writers[event.seen[0].token].sent)
    ]
    if not choices:
        return None
    at = chance.choice(choices)
    seen = events[at].seen[0]
    events[at] = replace(events[at], seen=(replace(seen, notes=writers[seen.token].sent),))
    return events_of(history, lambda _: events)


def refused_but_done(history: History, chance: random.Random) -> History | None:
    choices = [each for each in history.operations if each.token and each.outcome == "done"]
    if not choices:
        return None
    write = chance.choice(choices)
    return changed(history, replace(write, outcome="refused", reason="Invalid", version=0, seen=()))


BREAKS = [
    (stale_read, "linearizable"),
    (lost_write, "linearizable"),
    (skipped_event, "watch gap"),
    (repeated_event, "watch order"),
    (late_event, "watch order"),
    (double_allocation, "unique allocation"),
    (old_revision, "revisions never go back"),
    (overwritten_field, "watch story"),
    (refused_but_done, "written by somebody"),
]


@pytest.mark.parametrize(("spoil", "rule"), BREAKS, ids=lambda each: getattr(each, "__name__", ""))
@given(seed=seeds)
def test_a_wrong_answer_is_seen_and_told_in_few_words(
    spoil: Callable[[History, random.Random], History | None], rule: str, seed: int
) -> None:
    history = spoil(simulated(seed), random.Random(seed))
    assume(history is not None)
    assert history is not None
    found = [violation for violation in violations(history) if violation.rule == rule]
    assert found
    shorter = shortest(history, found[0])
    assert found[0].rule in rules(shorter)
    assert len(shorter.operations) <= 6, shorter


# --- what shortening leaves out is no fault --------------------------------------------------------


@given(seeds, st.randoms(use_true_random=False))
def test_leaving_out_breaks_no_rule(seed: int, chance: random.Random) -> None:
    history = simulated(seed)
    history = _until(history, chance.randrange(1, 200))
    assert violations(history) == []
    history = _without(history, tuple(each for each in history.operations if chance.random() < 0.5))
    assert violations(history) == []
    assert violations(_later_watches(history, lambda _: chance.random() < 0.2, None)) == []  # type: ignore[arg-type]
    assert violations(_without_key(history, chance.choice(KEYS))) == []


# --- cases to read ---------------------------------------------------------------------------------


def seen(version: int, token: str, key: str = "services/a", claims: tuple[str, ...] = ()) -> Seen:
    return Seen(key, version, {LAST: token}, "", claims)


def test_a_list_that_is_older_than_its_version() -> None:
    listing = Operation(
        number=2,
        client="c",
        verb="list",
        key="services/",
        begin=1,
        end=4,
        outcome="done",
        version=9,
        seen=(seen(5, "x"),),
    )
    write = Operation(
        number=1, client="d", verb="patch", key="services/a", begin=2, end=3, outcome="done", version=7,
        sent={LAST: "y"}, seen=(seen(7, "y"),),
    )  # fmt: skip
    assert "a list is one moment" in rules(History((write, listing)))


def test_one_version_with_two_contents() -> None:
    events = (Delivered(1, "LISTED", 5, (seen(5, "x"),)),), (Delivered(2, "LISTED", 5, (seen(5, "y"),)),)
    watches = tuple(Watch(f"w{number}", "services/", told) for number, told in enumerate(events))
    assert "one content per version" in rules(History((), watches))


def test_two_services_hold_one_address_between_two_lists() -> None:
    events = (
        Delivered(1, "LISTED", 5, (seen(5, "x", claims=("10.96.0.1",)),)),
        Delivered(2, "ADDED", 6, (seen(6, "y", "services/b", ("10.96.0.1",)),)),
        Delivered(3, "DELETED", 7, (seen(7, "x", claims=("10.96.0.1",)),)),
    )
    assert "unique allocation" in rules(History((), (Watch("w", "services/", events),)))
    in_turn = (events[0], replace(events[2], version=6), replace(events[1], version=7))
    assert "unique allocation" not in rules(History((), (Watch("w", "services/", in_turn),)))


def test_a_key_belongs_to_its_resource() -> None:
    assert resource_of("services/a") == "services/"
