"""The objects of one kind, their recent events, and their watchers."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from sortedcontainers import SortedDict

from seamark.api.state.entries import Entry, Event, entry_of, restamped
from seamark.kinds.resource import Resource
from seamark.store.protocol import Change, Row

# Events kept per kind, so that a watch can start from a recent version without asking the store.  While watchers are
# behind, more are kept for them, as far as the memory for events goes.
RECENT_EVENTS = 2048
EVENT_OVERHEAD = 512  # bytes that an event takes beside its JSON
# Entries found at once while a namespace is walked.
SLICE = 1024


def _size(event: Event) -> int:
    """The bytes that an event takes.  Entries that other events or the cache hold too are counted nevertheless."""
    before = 0 if event.previous is None else len(event.previous.tail)
    return EVENT_OVERHEAD + len(event.entry.tail) + before + sum(map(len, event.encoded.values()))


class Watcher(Protocol):
    """A subscriber to changes; called in the event loop, must not block."""

    def offer(self, event: Event) -> None:
        """Receive one event, in order; keep it until :meth:`flush`."""
        ...

    def flush(self, revision: int) -> None:
        """Send the events on: all up to ``revision`` have been offered."""
        ...

    def end(self) -> None:
        """Stop: the kind was removed or replaced, so no more events will come from this collection."""
        ...


class Room:
    """The memory for the recent events of all kinds: bytes used, and how many there may be."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Collection:
    """All objects stored under one prefix: those of one kind, which the API may serve in several versions and views.

    Its recent events are the buffer of all its watchers: one that is behind keeps only the number of the next event it
    has to read.  Events are numbered from 0; the oldest are dropped.
    """

    def __init__(self, prefix: str, room: Room) -> None:
        self.prefix = prefix
        self.shown_as: set[Resource] = set()  # the kinds that show its objects
        self.entries: SortedDict[str, Entry] = SortedDict()
        self.size = 0  # bytes of the entries' JSON
        self.events: deque[Event] = deque()
        self.events_size = 0  # bytes
        self.behind = 0  # how many watchers have events to read
        self._dropped = 0  # the number of the first of ``events``
        self._room = room
        self.complete_since = 0  # every event after this revision is in ``events``
        self.changed = 0  # revision of the last change
        # Watchers by the (namespace, name) they watch; "" means any.
        self._watchers: dict[tuple[str, str], dict[Watcher, None]] = {}

    def get(self, path: str) -> Entry | None:
        entry: Entry | None = self.entries.get(path)
        return entry

    def _range(self, namespace: str, after: str) -> tuple[int, int]:
        """The first and the end position of the entries of a namespace ("": all) that come after the path ``after``."""
        entries = self.entries
        start = entries.bisect_right(after) if after else entries.bisect_left(f"{namespace}/") if namespace else 0
        # "0" is the character after "/", so this is the first position after the namespace's paths.
        end = entries.bisect_left(f"{namespace}0") if namespace else len(entries)
        return start, max(start, end)

    def of_namespace(self, namespace: str, after: str = "") -> Iterator[Entry]:
        """Entries in key order, of one namespace or of all, that come after the path ``after``.

        They are read in slices, which is much faster than reading the sorted dict key by key.
        """
        start, end = self._range(namespace, after)
        paths = self.entries.keys()
        get = self.entries.__getitem__
        for at in range(start, end, SLICE):
            yield from map(get, paths[at : min(at + SLICE, end)])

    def count(self, namespace: str, after: str = "") -> int:
        """The number of entries that :meth:`of_namespace` would yield, without iterating over them."""
        start, end = self._range(namespace, after)
        return end - start

    # --- watchers ----------------------------------------------------------------------------------

    @property
    def watcher_count(self) -> int:
        return sum(map(len, self._watchers.values()))

    def subscribe(self, watcher: Watcher, namespace: str, name: str) -> Callable[[], None]:
        """Send all further events to the watcher; call the result to stop."""
        place = (namespace, name)
        self._watchers.setdefault(place, {})[watcher] = None

        def stop() -> None:
            others = self._watchers.get(place)
            if others is not None:
                others.pop(watcher, None)
                if not others:
                    del self._watchers[place]

        return stop

    def end_watches(self) -> None:
        """End all watches without an error: clients resume from the last version they saw if the kind is served."""
        for watchers in list(self._watchers.values()):
            for watcher in list(watchers):
                watcher.end()

    def interested(self, entry: Entry) -> Iterator[Watcher]:
        watchers = self._watchers
        if not watchers:
            return
        for place in {("", ""), (entry.namespace, ""), ("", entry.name), (entry.namespace, entry.name)}:
            if place in watchers:
                yield from list(watchers[place])

    # --- recent events -----------------------------------------------------------------------------

    @property
    def next_number(self) -> int:
        """The number that the next event will have."""
        return self._dropped + len(self.events)

    def number_after(self, revision: int) -> int:
        """The number of the first event after ``revision``, or of the oldest that is kept."""
        return self._dropped + bisect_right(self.events, revision, key=lambda event: event.entry.revision)

    def numbered_from(self, number: int) -> Iterator[Event] | None:
        """The events from this number on, or None if some of them are no longer kept."""
        if number < self._dropped:
            return None
        # By position, which a deque finds from its nearer end: readers mostly want the last few of thousands.
        return map(self.events.__getitem__, range(number - self._dropped, len(self.events)))

    def since(self, revision: int) -> Iterator[Event] | None:
        """Events after ``revision``, or None if some of them are no longer kept."""
        return None if revision < self.complete_since else self.numbered_from(self.number_after(revision))

    def grow(self, size: int) -> None:
        """Count bytes that an event now takes, for example because it was encoded for a watcher."""
        self.events_size += size
        self._room.used += size

    def drop_oldest(self) -> None:
        event = self.events.popleft()
        self._dropped += 1
        self.complete_since = max(self.complete_since, event.entry.revision)
        self.grow(-_size(event))

    def trim(self) -> None:
        """Drop old events, unless a watcher may still have to read them."""
        while len(self.events) >= RECENT_EVENTS and not self.behind:
            self.drop_oldest()

    def forget_before(self, revision: int) -> None:
        """Drop the events before this revision, unless a watcher may still have to read them."""
        while self.events and self.events[0].entry.revision < revision and not self.behind:
            self.drop_oldest()

    def leave_room(self) -> None:
        """Count no longer: the kind is gone, and its events are held only by watchers that still read them."""
        self._room.used -= self.events_size
        self._room = Room(0)

    def settle(self, revision: int) -> None:
        """Keep no events; a watch from before ``revision`` then asks the store."""
        while self.events:
            self.drop_oldest()
        self.begin_at(revision)

    def begin_at(self, revision: int) -> None:
        """Let reads and watches from before ``revision`` ask the store; watchers still get the events they wait for."""
        self.complete_since = self.changed = revision

    # --- following the log -------------------------------------------------------------------------

    def load(self, rows: Iterable[Row]) -> None:
        for row in rows:
            entry = entry_of(row.key[len(self.prefix) :], row.value, row.revision)
            self.entries[entry.path] = entry
            self.size += len(entry.tail)

    def step(self, change: Change) -> Event | None:
        """Apply one change of the log; returns its event, None for the deletion of a key that was not there."""
        path = change.key[len(self.prefix) :]
        previous: Entry | None = self.entries.get(path)
        if previous is not None:
            self.size -= len(previous.tail)
        if change.value is None:
            if previous is None:
                return None
            del self.entries[path]
            event = Event("DELETED", restamped(previous, change.revision), previous, {})
        else:
            entry = entry_of(path, change.value, change.revision)
            self.entries[path] = entry
            self.size += len(entry.tail)
            event = Event("MODIFIED" if previous is not None else "ADDED", entry, previous, {})
        self.events.append(event)
        self.grow(_size(event))
        self.changed = change.revision
        return event
