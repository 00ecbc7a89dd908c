"""Make a history that breaks a rule as short as it can be, so that a person can read it.

Only what cannot break a rule by its absence is removed: whole keys, the end of a run, the beginning of a watch (a list
of what was there takes its place), and operations (the checks still know that a write happened, but not when:
``History.forgotten``).  So what is left breaks the rule as the whole did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from checks import RULES, Violation, told_states, violations
from history import NEVER, Delivered, History, Operation, Watch
from msgspec.structs import replace


def shortest(history: History, violation: Violation) -> History:
    """A shorter history that breaks the same rule for the same key."""
    rule = next(rule for rule in RULES if any(_same(each, violation) for each in rule(history)))

    def broken(shorter: History) -> bool:
        return any(_same(each, violation) for each in rule(shorter))

    for step in (_of_keys, _cut, _without_watches, _later_watches, _without_operations):
        history = step(history, broken, violation)
    return history


def _same(one: Violation, other: Violation) -> bool:
    return (one.rule, one.key) == (other.rule, other.key)


Broken = Callable[[History], bool]


def _of_keys(history: History, broken: Broken, violation: Violation) -> History:
    """Without the keys that play no part."""
    keys = {operation.key for operation in history.operations if operation.verb != "list"}
    for key in sorted(keys - {violation.key}):
        shorter = _without_key(history, key)
        if broken(shorter):
            history = shorter
    return history


def _without_key(history: History, key: str) -> History:
    def rest(seen: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(each for each in seen if each.key != key)  # type: ignore[attr-defined]  # Seen

    def event(each: Delivered) -> Delivered | None:
        seen = rest(each.seen)
        if each.seen and not seen and each.type != "LISTED":
            return Delivered(each.at, "BOOKMARK", each.version)  # the watcher did get so far
        return replace(each, seen=seen)

    operations = tuple(replace(each, seen=rest(each.seen)) for each in history.operations if each.key != key)
    watches = tuple(_tidy(replace(w, events=tuple(filter(None, map(event, w.events))))) for w in history.watches)
    return replace(history, operations=operations, watches=watches)


def _tidy(watch: Watch) -> Watch:
    """Without bookmarks that are followed by another event that says as much."""
    events = watch.events
    kept = [
        each
        for each, following in zip(events, [*events[1:], None], strict=True)
        if following is None or each.type != "BOOKMARK" or following.type != "BOOKMARK"
    ]
    return replace(watch, events=tuple(kept))


def _cut(history: History, broken: Broken, violation: Violation) -> History:
    """Without what came after the rule was broken: the earliest end that still shows it."""
    moments = sorted({each.end for each in history.operations} | {e.at for w in history.watches for e in w.events})
    low, high = 0, len(moments) - 1  # a longer history never breaks less
    while low < high:
        middle = (low + high) // 2
        if broken(_until(history, moments[middle])):
            high = middle
        else:
            low = middle + 1
    return _until(history, moments[low]) if moments else history


def _until(history: History, moment: int) -> History:
    """The history as it was known at a moment."""

    def known(each: Operation) -> Operation | None:
        if each.end <= moment:
            return each
        if each.begin > moment or not each.writes:
            return None
        return replace(each, end=NEVER, outcome="unknown", reason="", version=0, seen=())

    operations = tuple(filter(None, map(known, history.operations)))
    watches = (replace(w, events=tuple(e for e in w.events if e.at <= moment)) for w in history.watches)
    return replace(history, operations=operations, watches=tuple(w for w in watches if w.events))


def _without_watches(history: History, broken: Broken, violation: Violation) -> History:
    for watch in history.watches:
        shorter = replace(history, watches=tuple(each for each in history.watches if each is not watch))
        if broken(shorter):
            history = shorter
    return history


def _later_watches(history: History, broken: Broken, violation: Violation) -> History:
    """Let each watch begin as late as it can."""
    for watch in history.watches:
        others = tuple(each for each in history.watches if each is not watch)
        begun = [
            replace(watch, events=(Delivered(event.at, "LISTED", event.version, tuple(state.values())), *rest))
            for number, (event, state) in enumerate(told_states(watch))
            for rest in [watch.events[number + 1 :]]
        ]
        for later in reversed(begun):
            shorter = replace(history, watches=(*others, later))
            if broken(shorter):
                history = shorter
                break
    return history


def _without_operations(history: History, broken: Broken, violation: Violation) -> History:
    """Remove runs of operations, then single ones, for as long as that helps."""
    size = max(1, len(history.operations) // 2)
    while True:
        for start in range(0, len(history.operations), size):
            chosen = history.operations[start : start + size]
            shorter = _without(history, chosen)
            if broken(shorter):
                return _without_operations(shorter, broken, violation)
        if size == 1:
            return history
        size = max(1, size // 2)


def _without(history: History, removed: tuple[Operation, ...]) -> History:
    gone = {each.number for each in removed}
    operations = tuple(each for each in history.operations if each.number not in gone)
    writes = tuple(each for each in removed if each.writes and each.outcome != "refused")
    return replace(history, operations=operations, forgotten=history.forgotten + writes)


def report(history: History, found: list[Violation], *, seed: object) -> str:
    """What to print of a failed run."""

    def parts() -> Iterator[str]:
        yield f"seed {seed}: {len(found)} rule(s) broken in {len(history.operations)} operations"
        for violation in found:
            shorter = shortest(history, violation)
            (again,) = (each for each in violations(shorter) if _same(each, violation))
            yield f"\n{again}\nshortest history:\n{shorter}"

    return "\n".join(parts())
