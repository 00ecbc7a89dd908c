"""Histories that are right by construction: a store of a few lines, whose operations overlap as a random decides."""

from __future__ import annotations

import random
from typing import Any

from history import LAST, Delivered, History, Operation, Recorder, Seen, Verb

KEYS = ("configmaps/a", "configmaps/b")
RESOURCE = "configmaps/"
VERBS: tuple[Verb, ...] = ("create", "update", "patch", "apply", "delete", "get", "list")
RESOURCES = 3  # claims to be had


class World:
    """Clients that begin an operation, let it take effect and hear of it, one such step at a time."""

    def __init__(self, chance: random.Random) -> None:
        self.recorder = Recorder()
        self._chance = chance
        self._state: dict[str, Seen] = {}
        self._log: list[Delivered] = []
        self._version = 10
        self._watched = dict.fromkeys(("w0", "w1"), 0)  # how much of the log each has been told
        self._tokens = 0
        self._known: dict[str, int] = {}
        for watcher in self._watched:
            self.recorder.deliver(watcher, RESOURCE, "LISTED", self._version)

    def run(self, steps: int, clients: int = 3) -> History:
        busy: dict[int, Any] = {}
        for _ in range(steps):
            choice = self._chance.randrange(clients + len(self._watched))
            if choice >= clients:
                self._tell(f"w{choice - clients}")
            elif choice not in busy:
                busy[choice] = self._operation(f"c{choice}")
                next(busy[choice])
            elif next(busy[choice], "over") == "over":
                del busy[choice]
        for watcher in self._watched:
            while self._tell(watcher):
                pass
        return self.recorder.history()

    def _operation(self, client: str) -> Any:
        verb = self._chance.choice(VERBS)
        key = RESOURCE if verb == "list" else self._chance.choice(KEYS)
        self._tokens += 1
        token = f"{client}-{self._tokens}"
        facts: dict[str, Any] = {"sent": {LAST: token, client: token}} if verb not in ("delete", "get", "list") else {}
        if verb == "update":
            facts["expected"] = self._known.get(key, 11)
        operation = self.recorder.begin(client, verb, key, **facts)
        yield
        fate = self._chance.random()
        if operation.writes and fate < 0.1:
            return  # neither done nor answered
        outcome, answer = self._effect(operation)
        yield
        if operation.writes and fate < 0.2:
            return  # done, but not answered
        self.recorder.end(operation, outcome, **answer)

    def _effect(self, operation: Operation) -> Any:
        key, old = operation.key, self._state.get(operation.key)
        if operation.verb == "list":
            return "done", {"version": self._version, "seen": tuple(self._state.values())}
        if operation.verb == "create" and old is not None:
            return "refused", {"reason": "AlreadyExists"}
        if old is None and operation.verb not in ("create", "apply"):
            return "refused", {"reason": "NotFound"}
        if operation.expected and (old is None or old.version != operation.expected):
            return "refused", {"reason": "Conflict"}
        if operation.verb == "get":
            self._known[key] = old.version
            return "done", {"version": old.version, "seen": (old,)}
        self._version += self._chance.randrange(1, 3)  # other kinds are written too
        if operation.verb == "delete":
            del self._state[key]
            gone = Seen(key, self._version, old.notes, old.uid, old.claims)
            self._log.append(Delivered(0, "DELETED", self._version, (gone,)))
            return "done", {}
        kept = dict(old.notes) if old is not None and operation.verb != "update" else {}
        seen = Seen(key, self._version, {**kept, **operation.sent}, "", old.claims if old else (self._claim(),))
        self._state[key] = seen
        self._known[key] = seen.version
        self._log.append(Delivered(0, "MODIFIED" if old else "ADDED", self._version, (seen,)))
        return "done", {"version": seen.version, "seen": (seen,)}

    def _claim(self) -> str:
        taken = {claim for seen in self._state.values() for claim in seen.claims}
        return next(claim for claim in map(str, range(RESOURCES)) if claim not in taken)

    def _tell(self, watcher: str) -> bool:
        told = self._watched[watcher]
        if told == len(self._log):
            self.recorder.deliver(watcher, RESOURCE, "BOOKMARK", self._version)
            return False
        event = self._log[told]
        self._watched[watcher] += 1
        self.recorder.deliver(watcher, RESOURCE, event.type, event.version, event.seen)
        return True


def simulated(seed: int, steps: int = 150) -> History:
    return World(random.Random(seed)).run(steps)
