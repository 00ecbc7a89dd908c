"""The ledger of a controller's own writes that its informer does not show yet.

An informer is always a little behind the server.  A controller that relied on it alone would write the same thing
twice.  So it records its writes here, each for a key (the *owner*), and then either waits until the informer has
caught up (``caught_up``) or continues from what it wrote (``latest``, ``pending``).

Resource versions are compared as numbers, which Kubernetes permits: an informer that has reached a version shows every
object at that version or a later one.

Two things can go wrong with a write.  If its answer is lost, the write may or may not have happened: this ``doubt`` is
resolved by reading from the server.  And while the informer is disconnected, an object that we created may be deleted
before the informer ever shows it, so that no event comes.  So an object that is not shown within ``PATIENCE`` seconds
is in doubt as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Generic, Protocol, TypeVar

import msgspec

from seamark.access.informer import Informer, Key
from seamark.clock import SYSTEM_CLOCK, Cancellable, Clock
from seamark.rules.objects.metadata import Metadata

PATIENCE = 30.0


class Identified(Protocol):
    """An object with all of its metadata."""

    @property
    def metadata(self) -> Metadata: ...


T = TypeVar("T", bound=Identified)


class _Entry(msgspec.Struct, Generic[T], frozen=True):
    owner: Key
    uid: str
    version: int
    object: T | None  # None if we deleted it


def number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


class Ledger(Generic[T]):
    """Writes to one resource.  Objects and owners are identified by their keys.

    ``wake`` is called with an owner when an object created for it was not shown in time.  ``there`` says whether a
    shown object counts as existing: a deletion counts as shown once the object is gone or ``there`` is false for it.
    """

    def __init__(
        self,
        informer: Informer[T],
        *,
        clock: Clock = SYSTEM_CLOCK,
        wake: Callable[[Key], None] = lambda owner: None,
        there: Callable[[T], bool] = lambda obj: True,
    ) -> None:
        self._informer = informer
        self._clock = clock
        self._wake = wake
        self._there = there
        self._versions: dict[Key, int] = {}  # by owner: the highest version written
        self._entries: dict[Key, _Entry[T]] = {}
        self._owned: dict[Key, set[Key]] = {}  # by owner: keys of _entries
        self._doubts: dict[Key, set[Key]] = {}
        self._awaited: dict[Key, tuple[float, Key]] = {}  # created and not shown yet: deadline, owner
        self._timer: Cancellable | None = None

    # --- writing -----------------------------------------------------------------------------------

    def wrote(self, owner: Key, version: str) -> None:
        """Record that a write for the owner resulted in this version, without recording the object itself."""
        self._versions[owner] = max(number(version), self._versions.get(owner, 0))

    def put(self, owner: Key, obj: T) -> None:
        """Record an object as it was written, or as the server itself returned it."""
        key, version = obj.metadata.key, number(obj.metadata.resource_version)
        if self._informer.by_key(key) is None:
            self._await(key, owner)
        if version <= number(self._informer.last_version):
            self._drop(key)
            return  # the informer showed the write before its answer came
        self._enter(key, _Entry(owner, obj.metadata.uid, version, obj))

    def deleted(self, owner: Key, obj: T) -> None:
        """Record that the object was deleted, or that the server does not have it."""
        key, version = obj.metadata.key, number(obj.metadata.resource_version)
        self._awaited.pop(key, None)
        if (written := self._entries.get(key)) is not None:
            version = max(version, written.version)
        self._enter(key, _Entry(owner, obj.metadata.uid, version, None))

    def doubt(self, owner: Key, key: Key = "") -> None:
        """Record that a write may or may not have happened, to this key or to any object of the owner."""
        self._doubts.setdefault(owner, set()).add(key)

    def doubts(self, owner: Key) -> Collection[Key]:
        return tuple(self._doubts.get(owner, ()))

    def certain(self, owner: Key, key: Key = "") -> None:
        """Clear the doubt, because the server was asked."""
        doubts = self._doubts.get(owner)
        if doubts is not None:
            doubts.discard(key)
            if not doubts:
                del self._doubts[owner]

    def forget(self, owner: Key) -> None:
        """Drop everything recorded for an owner that is gone."""
        self._versions.pop(owner, None)
        self._doubts.pop(owner, None)
        for key in self._owned.pop(owner, ()):
            del self._entries[key]
            self._awaited.pop(key, None)

    # --- reading -----------------------------------------------------------------------------------

    def caught_up(self, owner: Key) -> bool:
        """Whether the informer shows everything that was written for the owner."""
        version = self._versions.get(owner)
        if version is not None:
            if number(self._informer.last_version) < version:
                return False
            del self._versions[owner]
        return not self.pending(owner)

    def pending(self, owner: Key) -> Mapping[Key, T | None]:
        """The objects written for the owner that are not shown yet; None stands for a deletion."""
        found = {}
        for key in tuple(self._owned.get(owner, ())):
            entry = self._entries[key]
            if self._shows(key, entry):
                self._drop(key)
            else:
                found[key] = entry.object
        return found

    def latest(self, key: Key) -> T | None:
        """The newest known state of the object: as written if the informer does not show that yet, else as shown."""
        entry = self._entries.get(key)
        if entry is not None and not self._shows(key, entry):
            return entry.object
        return self._informer.by_key(key)

    def written(self, key: Key) -> tuple[Key, T] | None:
        """The owner and the object, if it was written and the informer has not reported it yet."""
        entry = self._entries.get(key)
        return None if entry is None or entry.object is None else (entry.owner, entry.object)

    def news(self, key: Key, old: T | None, new: T | None) -> bool:
        """Take in a change from the informer; False if it is older than our own write."""
        self._awaited.pop(key, None)
        entry = self._entries.get(key)
        if entry is None:
            return True
        if new is None:
            # Deleted: either the object that we wrote, or an earlier one of the same name.
            ours = old is not None and old.metadata.uid == entry.uid
            if ours:
                self._drop(key)
            return ours and entry.object is not None
        if number(new.metadata.resource_version) < entry.version:
            return False
        if entry.object is None and new.metadata.uid == entry.uid:
            return False
        self._drop(key)
        return True

    def _shows(self, key: Key, entry: _Entry[T]) -> bool:
        if number(self._informer.last_version) < entry.version:
            return False
        if entry.object is not None:
            return True
        shown = self._informer.by_key(key)
        return shown is None or shown.metadata.uid != entry.uid or not self._there(shown)

    def _enter(self, key: Key, entry: _Entry[T]) -> None:
        self._drop(key)
        self._entries[key] = entry
        self._owned.setdefault(entry.owner, set()).add(key)

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            owned = self._owned[entry.owner]
            owned.discard(key)
            if not owned:
                del self._owned[entry.owner]

    # --- objects that are never shown --------------------------------------------------------------

    def _await(self, key: Key, owner: Key) -> None:
        self._awaited.pop(key, None)  # reinserted at the end, so that the order is that of the deadlines
        self._awaited[key] = (self._clock.monotonic() + PATIENCE, owner)
        if self._timer is None:
            self._timer = self._clock.call_later(PATIENCE, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for key, (due, owner) in list(self._awaited.items()):
            if due > now:
                self._timer = self._clock.call_later(due - now, self._sweep)
                return
            del self._awaited[key]
            self.doubt(owner)
            self._wake(owner)
