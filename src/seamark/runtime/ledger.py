"""The ledger of a controller's own writes: what it has written and its informer has yet to show.

An informer is always a little behind.  A controller that decided from it alone would do the same thing twice, so it
notes its writes here, each on behalf of a key (the *owner*), and then either waits until the informer has caught up
(``caught_up``) or goes on from what it wrote (``latest``, ``pending``).

Versions are compared as numbers, which Kubernetes guarantees: an informer that has reached a version shows every
object at least as new as that.

Two things can go wrong with a write.  If its answer is lost, it may or may not have happened: such ``doubt`` is cleared
by asking the server.  And what we made may be deleted before the informer, disconnected just then, has ever shown it;
then no event would tell.  So what is not shown within ``PATIENCE`` seconds is doubted as well.
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
    """Writes to one resource.  Objects are named by their keys, like owners.

    ``wake`` is called with an owner when something that was made for it has not been shown in time.  ``there`` says
    whether a shown object counts as existing: a deletion is awaited until none that does is shown.
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
        self._versions: dict[Key, int] = {}  # by owner: the highest that was written
        self._entries: dict[Key, _Entry[T]] = {}
        self._owned: dict[Key, set[Key]] = {}  # by owner: keys of _entries
        self._doubts: dict[Key, set[Key]] = {}
        self._awaited: dict[Key, tuple[float, Key]] = {}  # what was made and never shown: until when, for whom
        self._timer: Cancellable | None = None

    # --- writing -----------------------------------------------------------------------------------

    def wrote(self, owner: Key, version: str) -> None:
        """A write on behalf of the owner made this version; what exactly was written does not matter."""
        self._versions[owner] = max(number(version), self._versions.get(owner, 0))

    def put(self, owner: Key, obj: T) -> None:
        """The object was written, or read from the server itself, and is like this."""
        key, version = obj.metadata.key, number(obj.metadata.resource_version)
        if self._informer.by_key(key) is None:
            self._await(key, owner)
        if version <= number(self._informer.last_version):
            self._drop(key)
            return  # the informer was faster than the answer
        self._enter(key, _Entry(owner, obj.metadata.uid, version, obj))

    def deleted(self, owner: Key, obj: T) -> None:
        """The object was deleted, or found missing."""
        key, version = obj.metadata.key, number(obj.metadata.resource_version)
        self._awaited.pop(key, None)
        if (written := self._entries.get(key)) is not None:
            version = max(version, written.version)
        self._enter(key, _Entry(owner, obj.metadata.uid, version, None))

    def doubt(self, owner: Key, key: Key = "") -> None:
        """It is not certain whether something was written, of this key or of any that belongs to the owner."""
        self._doubts.setdefault(owner, set()).add(key)

    def doubts(self, owner: Key) -> Collection[Key]:
        return tuple(self._doubts.get(owner, ()))

    def certain(self, owner: Key, key: Key = "") -> None:
        """The server was asked."""
        doubts = self._doubts.get(owner)
        if doubts is not None:
            doubts.discard(key)
            if not doubts:
                del self._doubts[owner]

    def forget(self, owner: Key) -> None:
        """The owner is gone: nothing that was written for it matters any more."""
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
        """What was written for the owner and is not shown yet, None for what was deleted."""
        found = {}
        for key in tuple(self._owned.get(owner, ())):
            entry = self._entries[key]
            if self._shows(key, entry):
                self._drop(key)
            else:
                found[key] = entry.object
        return found

    def latest(self, key: Key) -> T | None:
        """The object as it is: as written if the informer does not show that yet, else as shown."""
        entry = self._entries.get(key)
        if entry is not None and not self._shows(key, entry):
            return entry.object
        return self._informer.by_key(key)

    def written(self, key: Key) -> tuple[Key, T] | None:
        """The owner and the object, if it was written and the informer has not told of that."""
        entry = self._entries.get(key)
        return None if entry is None or entry.object is None else (entry.owner, entry.object)

    def news(self, key: Key, old: T | None, new: T | None) -> bool:
        """Take note of what the informer tells; False if it was so before our own write."""
        self._awaited.pop(key, None)
        entry = self._entries.get(key)
        if entry is None:
            return True
        if new is None:
            # The end of our own object, or of an earlier one of its name.
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

    # --- what is never shown -----------------------------------------------------------------------

    def _await(self, key: Key, owner: Key) -> None:
        self._awaited.pop(key, None)  # to the end: the order is that of the deadlines
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
