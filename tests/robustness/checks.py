"""What must be true of every history, whatever failed while it was made.  Pure: a history in, violations out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import linear
import msgspec
from history import NEVER, Delivered, History, Operation, Seen, Watch
from linear import Step


class Violation(msgspec.Struct, frozen=True):
    """A rule that a history breaks.  ``key`` is an object's, or ``configmaps/`` for a whole resource."""

    rule: str
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.key}: {self.text}"


def violations(history: History) -> list[Violation]:
    """Every broken rule, each at most once per key."""
    found: dict[tuple[str, str], Violation] = {}
    for rule in RULES:
        for violation in rule(history):
            found.setdefault((violation.rule, violation.key), violation)
    return list(found.values())


# --- what a history tells --------------------------------------------------------------------------


def resource_of(key: str) -> str:
    return key[: key.index("/") + 1]


def observations(history: History) -> Iterator[tuple[int, Seen]]:
    """Each state of an object that a client saw, and when.  (What a deletion shows is an earlier state.)"""
    for operation in history.operations:
        for seen in operation.seen:
            yield operation.end, seen
    for watch in history.watches:
        for event in watch.events:
            if event.type != "DELETED":
                for seen in event.seen:
                    yield event.at, seen


def changes(history: History) -> Mapping[str, Mapping[str, set[int]]]:
    """By resource and key: the versions at which an object is known to have changed or gone."""
    found: dict[str, dict[str, set[int]]] = {}
    for _, seen in observations(history):
        found.setdefault(resource_of(seen.key), {}).setdefault(seen.key, set()).add(seen.version)
    for watch in history.watches:
        for event in watch.events:
            if event.type == "DELETED":
                found.setdefault(watch.resource, {}).setdefault(event.seen[0].key, set()).add(event.version)
    return found


# --- single objects --------------------------------------------------------------------------------


def one_content(history: History) -> Iterator[Violation]:
    """All who see one version of an object see the same."""
    first: dict[tuple[str, int], Seen] = {}
    for _, seen in observations(history):
        other = first.setdefault((seen.key, seen.version), seen)
        if other != seen:
            yield Violation("one content per version", seen.key, f"{other} and {seen}")


def written(history: History) -> Iterator[Violation]:
    """What is seen was written, by a write that had begun and was not refused."""
    writers = {operation.token: operation for operation in history.operations if operation.token}
    forgotten = {operation.token for operation in history.forgotten}
    for at, seen in observations(history):
        writer = writers.get(seen.token)
        if seen.token in forgotten:
            continue
        if writer is None:
            yield Violation("written by somebody", seen.key, f"nobody wrote {seen}")
        elif writer.key != seen.key or writer.outcome == "refused" or writer.begin > at:
            yield Violation("written by somebody", seen.key, f"{seen} seen at {at}, but: {writer}")


def linearizable(history: History) -> Iterator[Violation]:
    """The operations on each key have an order that explains all answers (see :mod:`linear`)."""
    for key, steps in steps_by_key(history).items():
        left = linear.stuck(steps)
        if left is not None:
            numbers = sorted({step.number for step in left} - {0})
            stuck = next((f", stuck before {each}" for each in history.operations if each.number in numbers), "")
            yield Violation("linearizable", key, f"no order explains all answers{stuck}")


def steps_by_key(history: History) -> Mapping[str, list[Step]]:
    """The steps of :mod:`linear` for each key that was used."""
    versions: dict[str, dict[str, int]] = {}  # by key, of each token
    for _, seen in observations(history):
        versions.setdefault(seen.key, {})[seen.token] = seen.version
    keys = versions.keys() | {each.key for each in history.operations if each.verb != "list"}
    steps: dict[str, list[Step]] = {key: [] for key in sorted(keys)}
    for operation in history.operations:
        if operation.verb == "list":
            found = {seen.key: seen.version for seen in operation.seen}
            for key in steps:
                if resource_of(key) == operation.key:
                    steps[key].append(Step(operation.begin, operation.end, "read", found.get(key, 0)))
        else:
            steps[operation.key] += _steps_of(operation, versions.get(operation.key, {}))
    for each in history.forgotten:
        if each.key not in steps:
            continue
        if each.verb == "delete":
            steps[each.key].append(Step(-1, NEVER, "delete", optional=True))
        elif each.version:
            versions.setdefault(each.key, {})[each.token] = each.version
        elif each.token not in versions.get(each.key, {}):
            steps[each.key].append(Step(-1, NEVER, "write", optional=True))
    for key, own in steps.items():
        # Versions whose writer is not in the history: it is the rule ``written`` that complains about those.
        seen_versions = set(versions.get(key, {}).values()) - {step.version for step in own if step.kind == "write"}
        own += [Step(-1, NEVER, "write", version) for version in sorted(seen_versions)]
        asked = {step.expected for step in own} - {step.version for step in own if step.kind == "write"} - {0}
        own += [Step(-1, NEVER, "write", version, optional=True) for version in sorted(asked)]
    return steps


NEEDS = {"create": "absent", "update": "present", "patch": "present", "apply": ""}
REFUSED = {"AlreadyExists": "present", "NotFound": "absent", "Conflict": "changed"}


def _steps_of(operation: Operation, versions: Mapping[str, int]) -> list[Step]:
    begin, end, number = operation.begin, operation.end, operation.number
    if operation.outcome == "refused":
        needs = REFUSED.get(operation.reason, "")
        if not needs or (needs == "changed" and not operation.expected):
            return []
        return [Step(begin, end, "refused", 0, operation.expected, needs, number=number)]
    unknown = operation.outcome == "unknown"
    if operation.verb == "get":
        return [Step(begin, end, "read", operation.version, number=number)]
    if operation.verb == "delete":
        return [Step(begin, end, "delete", 0, operation.expected, optional=unknown, number=number)]
    version = operation.version or versions.get(operation.token, 0)
    needs = NEEDS[operation.verb]
    optional = unknown and not version
    return [Step(begin, end, "write", version, operation.expected, needs, optional, number)]


# --- the whole store -------------------------------------------------------------------------------


def revisions(history: History) -> Iterator[Violation]:
    """A version told later is not older: writes get higher versions than any seen before they began, lists no lower."""
    told: list[tuple[int, int]] = [(at, seen.version) for at, seen in observations(history)]
    told += [(each.end, each.version) for each in history.operations if each.version]
    told += [(event.at, event.version) for watch in history.watches for event in watch.events]
    told.sort()
    floor, at = 0, 0
    for operation in sorted(history.operations, key=lambda each: each.begin):
        while at < len(told) and told[at][0] < operation.begin:
            floor = max(floor, told[at][1])
            at += 1
        if not operation.version or operation.verb == "get":
            continue
        if operation.version < floor + operation.writes:
            key = resource_of(operation.key)
            yield Violation("revisions never go back", key, f"version {floor} was known before {operation}")


def snapshots(history: History) -> Iterator[Violation]:
    """A list is the state at its version."""
    known = changes(history)
    for operation in history.operations:
        if operation.verb != "list":
            continue
        for seen in operation.seen:
            later = [v for v in known[operation.key][seen.key] if seen.version < v <= operation.version]
            if seen.version > operation.version or later:
                text = f"{seen} is not what version {operation.version} has: {sorted(later) or 'it is newer'}"
                yield Violation("a list is one moment", seen.key, text)


def allocation(history: History) -> Iterator[Violation]:
    """No two objects hold the same address or node port at one time."""
    for operation in history.operations:
        if operation.verb == "list":
            yield from _shared({seen.key: seen for seen in operation.seen}, operation.key, str(operation))
    for watch in history.watches:
        for event, state in told_states(watch):
            yield from _shared(state, watch.resource, f"{watch.watcher} after {event}")


def _shared(state: Mapping[str, Seen], resource: str, where: str) -> Iterator[Violation]:
    holders: dict[str, str] = {}
    for seen in state.values():
        for claim in seen.claims:
            other = holders.setdefault(claim, seen.key)
            if other != seen.key:
                yield Violation("unique allocation", resource, f"{claim} of {other} and {seen.key}: {where}")


# --- watches ---------------------------------------------------------------------------------------


def told_states(watch: Watch) -> Iterator[tuple[Delivered, dict[str, Seen]]]:
    """The objects as a watcher knows them after each event; the same dict each time."""
    state: dict[str, Seen] = {}
    for event in watch.events:
        if event.type == "LISTED":
            state.clear()
        for seen in event.seen:
            if event.type == "DELETED":
                state.pop(seen.key, None)
            else:
                state[seen.key] = seen
        yield event, state


def order(history: History) -> Iterator[Violation]:
    """A watcher's events come in the order of their versions, none twice, none that a bookmark or list had promised."""
    for watch in history.watches:
        last, promised = 0, 0
        for event in watch.events:
            change = event.type in ("ADDED", "MODIFIED", "DELETED")
            if event.version < last or (change and event.version <= max(promised, last)):
                yield Violation("watch order", watch.resource, f"{watch.watcher} was told {event} after {last}")
            last = max(last, event.version)
            if not change:
                promised = max(promised, event.version)


def complete(history: History) -> Iterator[Violation]:
    """A watcher is told every change between the list it began with and the last version it was told."""
    known = changes(history)
    for watch in history.watches:
        for part in _parts(watch):
            start, horizon = part[0].version, max(event.version for event in part)
            told = {(seen.key, event.version) for event in part[1:] for seen in event.seen}
            for key, versions in known.get(watch.resource, {}).items():
                missing = sorted(v for v in versions if start < v <= horizon and (key, v) not in told)
                if missing:
                    yield Violation("watch gap", key, f"{watch.watcher} was not told of version {missing[0]}")


def _parts(watch: Watch) -> list[list[Delivered]]:
    """The events from each list to the next."""
    parts: list[list[Delivered]] = []
    for event in watch.events:
        if event.type == "LISTED":
            parts.append([])
        parts[-1].append(event)
    return parts


def story(history: History) -> Iterator[Violation]:
    """Each event follows from the state before it and the write that made it: types, preconditions, contents."""
    writers = {operation.token: operation for operation in history.operations if operation.token}
    for watch in history.watches:
        before: dict[str, Seen] = {}
        for event, state in told_states(watch):
            if event.type in ("ADDED", "MODIFIED", "DELETED"):
                seen = event.seen[0]
                fault = _fault(event, before.get(seen.key), writers.get(seen.token))
                if fault:
                    yield Violation("watch story", seen.key, f"{watch.watcher} was told {event}, {fault}")
            before = dict(state)


def _fault(event: Delivered, old: Seen | None, writer: Operation | None) -> str:
    seen = event.seen[0]
    if (event.type == "ADDED") != (old is None):
        return f"but before it was {old}"
    if event.type == "DELETED" or writer is None:
        return ""
    if writer.verb == "create" and old is not None:
        return f"but {writer} needs that it is absent"
    if writer.expected and (old is None or old.version != writer.expected):
        return f"but {writer} needs another version than that of {old}"
    kept = dict(old.notes) if old is not None and writer.verb in ("patch", "apply") else {}
    return "" if dict(seen.notes) == {**kept, **writer.sent} else f"but {writer} does not make that of {old}"


RULES = (one_content, written, linearizable, revisions, snapshots, allocation, order, complete, story)
