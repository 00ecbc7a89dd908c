"""What clients did and saw, in the order in which it began and ended for them.

All clients of a run live in one process and share one counter, so "this ended before that began" is a fact, however
many servers they talk to.  Every write carries a *token* of its own in the annotation ``last``, by which a later read
tells which write it sees.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

NEVER = 1 << 60  # the end of an operation that was never answered
LAST = "last"

Verb = Literal["create", "update", "patch", "apply", "delete", "get", "list"]
Outcome = Literal["done", "refused", "unknown"]
Delivery = Literal["LISTED", "ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


class Seen(msgspec.Struct, frozen=True):
    """One state of an object, as a client got it.  ``key`` is ``configmaps/a``; ``claims`` are what it holds alone."""

    key: str
    version: int
    notes: Mapping[str, str]
    uid: str = ""
    claims: tuple[str, ...] = ()

    @property
    def token(self) -> str:
        return self.notes.get(LAST, "")

    def __str__(self) -> str:
        return f"{self.key}@{self.version}<{' '.join((self.token, *self.claims))}>"


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One request.  ``key`` is an object's, or ``configmaps/`` for a list.

    ``expected`` is the version that must be current for the write to happen, 0 for any; ``version`` is that of the
    object or list in the answer, 0 where there is none.  ``unknown``: the write may have happened, or may happen later.
    """

    number: int
    client: str
    verb: Verb
    key: str
    begin: int
    end: int = NEVER
    outcome: Outcome = "unknown"
    reason: str = ""
    expected: int = 0
    sent: Mapping[str, str] = {}
    version: int = 0
    seen: tuple[Seen, ...] = ()

    @property
    def writes(self) -> bool:
        return self.verb not in ("get", "list")

    @property
    def token(self) -> str:
        return self.sent.get(LAST, "")

    def __str__(self) -> str:
        end = "…" if self.end == NEVER else str(self.end)
        words = [f"[{self.begin}-{end}] {self.client} {self.verb} {self.key}"]
        words += [f"at {self.expected}"] if self.expected else []
        words += [f"<{self.token}>"] if self.token else []
        answer = {"done": "ok", "refused": self.reason, "unknown": f"unknown {self.reason}".strip()}[self.outcome]
        words.append(f"-> {answer}")
        words += [f"@{self.version}"] if self.version else []
        if self.verb == "list":
            words.append(" ".join(map(str, self.seen)))
        elif self.verb == "get":
            words += [f"<{seen.token}>" for seen in self.seen]
        else:
            words += [", ".join(seen.claims) for seen in self.seen]
        return " ".join(filter(None, words))


class Delivered(msgspec.Struct, frozen=True):
    """One event of a watch, or the list it began with (``LISTED``, with all that was there)."""

    at: int
    type: Delivery
    version: int
    seen: tuple[Seen, ...] = ()

    def __str__(self) -> str:
        objects = " ".join(map(str, self.seen))
        return f"[{self.at}] {self.type} @{self.version} {objects}".rstrip()


class Watch(msgspec.Struct, frozen=True):
    """All that one watcher was told, across its reconnects.  ``resource`` is ``configmaps/``."""

    watcher: str
    resource: str
    events: tuple[Delivered, ...]


class History(msgspec.Struct, frozen=True):
    """A finished run.  ``forgotten`` are operations left out to make it shorter: they happened at an unknown time."""

    operations: tuple[Operation, ...] = ()
    watches: tuple[Watch, ...] = ()
    forgotten: tuple[Operation, ...] = ()

    def __str__(self) -> str:
        lines = [str(operation) for operation in self.operations]
        for watch in self.watches:
            lines += [f"{watch.watcher} watches {watch.resource}", *(f"    {event}" for event in watch.events)]
        return "\n".join(lines)


class Recorder:
    """Writes a history down while it happens."""

    def __init__(self) -> None:
        self.beginning = 0  # a version before every write
        self._order = 0
        self._numbers = 0
        self._operations: dict[int, Operation] = {}
        self._watches: dict[str, tuple[str, list[Delivered]]] = {}

    @property
    def progress(self) -> int:
        """How many operations have begun."""
        return self._numbers

    def _next(self) -> int:
        self._order += 1
        return self._order

    def begin(self, client: str, verb: Verb, key: str, **facts: Any) -> Operation:
        self._numbers += 1
        operation = Operation(number=self._numbers, client=client, verb=verb, key=key, begin=self._next(), **facts)
        self._operations[operation.number] = operation
        return operation

    def end(self, operation: Operation, outcome: Outcome, **facts: Any) -> None:
        end = NEVER if outcome == "unknown" else self._next()
        self._operations[operation.number] = msgspec.structs.replace(operation, outcome=outcome, end=end, **facts)

    def never_sent(self, operation: Operation) -> None:
        """Nothing listened, so nothing happened."""
        del self._operations[operation.number]

    def deliver(self, watcher: str, resource: str, type: Delivery, version: int, seen: Iterable[Seen] = ()) -> None:
        _, events = self._watches.setdefault(watcher, (resource, []))
        events.append(Delivered(self._next(), type, version, tuple(seen)))

    def history(self) -> History:
        watches = (Watch(name, resource, tuple(events)) for name, (resource, events) in self._watches.items())
        # A read without an answer tells nothing.
        told = (each for each in self._operations.values() if each.writes or each.outcome != "unknown")
        return History(tuple(told), tuple(watches))
