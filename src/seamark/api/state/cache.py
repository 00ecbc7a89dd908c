"""The current objects in memory, kept up to date by following the store's log; serves lists and watches.

Objects of kinds that are not served stay in the store and are not cached.  When a kind is added while the server
runs, :meth:`Cache.add` reads its objects first; :meth:`Cache.remove` ends its watches and drops them.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
from bisect import bisect_right
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from sortedcontainers import SortedDict

from seamark.api.state.entries import Entry, Event, entry_of, prefix_of, restamped
from seamark.api.state.versions import number_or_zero
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import NotFound
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.store.history import Window
from seamark.store.opening import DEFAULT_HISTORY_SECONDS
from seamark.store.protocol import Batch, Change, Compacted, Future, Row, Store, StoreError, Unavailable, prefix_end

log = logging.getLogger(__name__)

# Events kept per kind, so that a watch can start from a recent version without asking the store.  While watchers are
# behind, more are kept for them, as far as the memory for events goes.
RECENT_EVENTS = 2048
# Older ones are dropped, so that kinds that seldom change do not fill up for hours.  The store has no history of them.
RECENT_SECONDS = DEFAULT_HISTORY_SECONDS
EVENT_BYTES = 128 * 1024 * 1024
EVENT_OVERHEAD = 512  # bytes that an event takes beside its JSON
# Rows per read when the cache loads from the store.
LOAD_PAGE = 5000
SLICE = 1024
MAX_GIVEN_UP = 1024
# How long to wait before a store that went away is followed again.
RETRY_SECONDS = 0.2

PORTS_PREFIX = "/seamark/nodeports/"


def _prefix_of_kind(kind: Kind) -> str:
    return prefix_of(kind.stored_as or kind.resource)


def _prefix_of_key(key: str) -> str:
    """The first two parts of a key, which say the kind."""
    return key[: key.find("/", key.find("/", 1) + 1) + 1]


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


class _Arrival:
    """A watcher of one object, which only notices that something happened to it."""

    def __init__(self) -> None:
        self.seen = asyncio.Event()

    def offer(self, event: Event) -> None:
        self.seen.set()

    def flush(self, revision: int) -> None:
        return

    def end(self) -> None:
        self.seen.set()


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


class Cache:
    """The current objects of every kind, and the tasks that wait for a revision."""

    def __init__(
        self, store: Store, kinds: Iterable[Kind], *, event_bytes: int = EVENT_BYTES, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._store = store
        self._clock = clock
        self._recent = Window(seconds=RECENT_SECONDS)
        self._age_at = 0.0
        self.room = Room(event_bytes)
        self._by_prefix: dict[str, Collection] = {}
        self._by_resource: dict[tuple[str, str], Collection] = {}
        self._missed: dict[str, list[Change]] = {}  # by prefix: changes to collections that are still being loaded
        for kind in kinds:
            self._show(kind, self._by_prefix.get(_prefix_of_kind(kind)) or Collection(_prefix_of_kind(kind), self.room))
        self.ports: dict[int, int] = {}  # reserved node ports → revision of the reservation
        self.revision = 0
        self.lost: BaseException | None = None  # why the log is not followed, while that is so
        self._ended = False  # it will not be followed again
        self._reloads = 0
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def _show(self, kind: Kind, collection: Collection) -> None:
        self._by_prefix[collection.prefix] = collection
        self._by_resource[kind.resource.group, kind.resource.plural] = collection
        collection.shown_as.add(kind.resource)

    def of(self, resource: Resource) -> Collection:
        """The collection of a kind; raises NotFound if the kind is not served."""
        try:
            return self._by_resource[resource.group, resource.plural]
        except KeyError:
            raise NotFound("the server could not find the requested resource", details={}) from None

    @property
    def collections(self) -> Sequence[Collection]:
        return list(self._by_prefix.values())

    # --- kinds that come and go --------------------------------------------------------------------

    async def add(self, kind: Kind) -> None:
        """Load one more kind from the store and keep its objects up to date.

        The versions of a kind share their objects.  Must not be called again for the same kind before it returns.
        """
        prefix = _prefix_of_kind(kind)
        self._show(kind, self._by_prefix.get(prefix) or await self._read(prefix))

    async def _read(self, prefix: str) -> Collection:
        """A new collection with all the objects under the prefix, and every change during the load."""
        while True:
            collection = Collection(prefix, self.room)
            missed = self._missed[prefix] = []
            reloads = self._reloads
            try:
                revision = await self._store.revision()
                await self._fill(collection, revision)
                await self.reach(revision)
            finally:
                del self._missed[prefix]
            if reloads == self._reloads:  # otherwise changes may be missing in ``missed``
                break
        for change in missed:
            if change.revision > revision:
                collection.step(change)
        return collection

    def remove(self, kind: Kind) -> None:
        """Drop a kind and end its watches.  Its objects are dropped from memory unless another version shows them.

        They stay in the store; the caller deletes them there if necessary.
        """
        collection = self.of(kind.resource)
        collection.shown_as.discard(kind.resource)
        place = kind.resource.group, kind.resource.plural
        if all((other.group, other.plural) != place for other in collection.shown_as):
            del self._by_resource[place]
        if not collection.shown_as:
            del self._by_prefix[collection.prefix]
            collection.leave_room()
        collection.end_watches()

    # --- following the store -----------------------------------------------------------------------

    async def load(self) -> None:
        """Read all current objects at one revision; :meth:`follow` continues from there."""
        revision = await self._store.revision()
        # All kinds in one pass, because most of them have no objects.
        async for rows in self._pages("/", prefix_end("/"), revision):
            for prefix, together in groupby(rows, key=lambda row: _prefix_of_key(row.key)):
                if (collection := self._by_prefix.get(prefix)) is not None:
                    collection.load(together)
                elif prefix == PORTS_PREFIX:
                    self.ports |= {int(row.key[len(PORTS_PREFIX) :]): row.revision for row in together}
        for collection in self._by_prefix.values():
            collection.begin_at(revision)
        self.revision = revision

    async def _fill(self, collection: Collection, revision: int) -> None:
        async for rows in self._pages(collection.prefix, prefix_end(collection.prefix), revision):
            collection.load(rows)
        collection.begin_at(revision)

    def settle(self) -> None:
        """Drop the kept events; a watch from an older version then asks the store."""
        for collection in self._by_prefix.values():
            collection.settle(self.revision)

    async def _pages(self, start: str, end: str, revision: int) -> AsyncIterator[Sequence[Row]]:
        while True:
            page = await self._store.read(start, end, revision=revision, limit=LOAD_PAGE)
            yield page.rows
            if not page.more:
                return
            start = page.rows[-1].key + "\0"

    async def follow(self) -> None:
        """Apply the store's changes until it is closed.

        If the store goes away, every task that waits for a revision gets an error, watchers wait, and following goes on
        from the last revision when the store returns.  An error ends it only if the store is no longer the same: its
        revision went back.
        """
        compacted = False
        try:
            while True:
                try:
                    if self.lost is not None:
                        await self._store.revision()  # raises while the store is away
                        log.warning("the store is followed again, from revision %d", self.revision)
                        self.lost = None
                    if compacted:
                        await self._reload()
                        compacted = False
                    async for batch in self._store.watch("/", self.revision):
                        self.apply(batch)
                    self._ended = True
                    self._lose(Unavailable("it was closed"))
                    return
                except Compacted:
                    compacted = True
                except Future:
                    raise
                except StoreError as error:
                    if self.lost is None:
                        log.warning("the store is not followed, what is known is kept: %s", error)
                    self._lose(error)
                    await asyncio.sleep(RETRY_SECONDS)
        except BaseException as error:
            self._ended = True
            self._lose(error)
            raise

    def _lose(self, error: BaseException) -> None:
        """Give the error to every task that waits for a revision."""
        self.lost = error
        waiting, self._waiting = self._waiting, []
        for _, _, future in waiting:
            if not future.done():
                future.set_exception(self._behind())

    def _behind(self) -> Unavailable:
        return Unavailable(f"the store is not followed: {self.lost or type(self.lost).__name__}")

    async def _reload(self) -> None:
        """Read everything again and tell the watchers what is different; the history in between was compacted."""
        revision = await self._store.revision()
        changes: list[Change] = []
        known: dict[str, int] = {f"{PORTS_PREFIX}{port}": at for port, at in self.ports.items()}
        for prefix, collection in self._by_prefix.items():
            known |= {prefix + path: entry.revision for path, entry in collection.entries.items()}
        for prefix in (*self._by_prefix, PORTS_PREFIX):
            async for rows in self._pages(prefix, prefix_end(prefix), revision):
                for row in rows:
                    before = known.pop(row.key, None)
                    if before is not None and before < row.created:  # another object: the first was deleted
                        changes.append(Change(row.key, None, None, row.created - 1))
                    if before != row.revision:
                        changes.append(Change(row.key, row.value, None, row.revision))
        changes += [Change(key, None, None, revision) for key in known]
        changes.sort(key=lambda change: change.revision)
        self._reloads += 1
        self.apply(Batch(changes, revision))
        for collection in self._by_prefix.values():
            collection.begin_at(revision)

    def apply(self, batch: Batch) -> None:
        """Apply a batch of the log: offer its events to the watchers, then flush each of them once."""
        touched: dict[Watcher, None] = {}
        trimmed: set[Collection] = set()
        for change in batch.changes:
            prefix = _prefix_of_key(change.key)
            collection = self._by_prefix.get(prefix)
            if collection is not None:
                if collection not in trimmed:
                    # Before the batch: its own events must be there when watchers are flushed.
                    trimmed.add(collection)
                    collection.trim()
                event = collection.step(change)
                if event is not None:
                    for watcher in collection.interested(event.entry):
                        watcher.offer(event)
                        touched[watcher] = None
            elif change.key.startswith(PORTS_PREFIX):
                port = int(change.key[len(PORTS_PREFIX) :])
                if change.value is None:
                    self.ports.pop(port, None)
                else:
                    self.ports[port] = change.revision
            elif (missed := self._missed.get(prefix)) is not None:
                missed.append(change)
        self.revision = max(self.revision, batch.revision)
        for watcher in touched:
            watcher.flush(self.revision)
        if self.room.used > self.room.limit:
            self._make_room()
        if (now := self._clock.monotonic()) >= self._age_at:
            self._age(now)
        if self._waiting and self._waiting[0][0] <= self.revision:
            # In the next turn of the event loop, so that watchers run before the writer goes on.  Otherwise controllers
            # in the same process would fall behind under load.
            asyncio.get_running_loop().call_soon(self._release)

    def _age(self, now: float) -> None:
        self._age_at = now + self._recent.pause
        oldest = self._recent.oldest(now=now, revision=self.revision)
        for collection in self._by_prefix.values():
            collection.forget_before(oldest)

    def _make_room(self) -> None:
        """Drop the oldest events of the kinds that have most of them; watchers that need them have to begin again."""
        while self.room.used > self.room.limit:
            largest = max(self._by_prefix.values(), key=lambda each: each.events_size)
            if not largest.events:
                return
            largest.drop_oldest()

    def _release(self) -> None:
        """Wake the tasks that waited for a revision that has been applied now."""
        while self._waiting and self._waiting[0][0] <= self.revision:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    # --- freshness ---------------------------------------------------------------------------------

    @property
    def known(self) -> int:
        """The store's revision, as far as it is known without waiting: other servers may have written more."""
        return self._store.latest() or self.revision

    @property
    def fresh(self) -> bool:
        """Whether memory has every acknowledged write, as far as this can be told without waiting.

        It always has if no other server writes to the store: a write is acknowledged when it is in memory.
        """
        if self.lost is not None or not self._store.shared:
            return self.lost is None
        latest = self._store.latest()
        return latest is not None and latest <= self.revision

    async def reach(self, revision: int) -> None:
        """Wait until the cache has applied ``revision``; raises Unavailable if the next attempt to follow fails."""
        if self.revision >= revision:
            return
        if self._ended:
            raise self._behind()
        self._sequence += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (revision, self._sequence, future))
        try:
            await future
        finally:
            if future.cancelled() and len(self._waiting) > MAX_GIVEN_UP:
                # Drop the futures of cancelled tasks, which would otherwise stay until their revision comes.
                self._waiting = [waiting for waiting in self._waiting if not waiting[2].done()]
                heapq.heapify(self._waiting)

    async def show(self, revision: int) -> None:
        """After a commit, wait until the cache has it; not while the store is away, because the write has happened."""
        with contextlib.suppress(Unavailable):
            await self.reach(revision)

    async def written(self, resource: Resource, path: str, value: bytes, revision: int) -> Entry:
        """The entry of a write that was just committed: the cached one, or a new one if that has changed since."""
        await self.show(revision)
        entry = self.of(resource).get(path)
        return entry if entry is not None and entry.revision == revision else entry_of(path, value, revision)

    async def freshen(self) -> None:
        """Wait until this cache has every write that any server acknowledged before this call."""
        if not self.fresh:
            await self.reach(await self._store.revision())

    async def arrival(self, resource: Resource, path: str, seconds: float) -> None:
        """Wait for an object that is about to be created, for so long at most; most often it is there."""
        if await self.find(resource, path) is not None or not seconds:
            return
        namespace, _, name = path.rpartition("/")
        arrived = _Arrival()
        stop = self.of(resource).subscribe(arrived, namespace, name)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(arrived.seen.wait(), seconds)
        finally:
            stop()

    async def find(self, resource: Resource, path: str, version: str = "") -> Entry | None:
        """An object that is to be written, at least as new as the writer's ``version``; None if there is none.

        If the cached object is missing or older, another server of a shared store may have just written it.  Then this
        asks the store for its revision and waits until the cache has reached it.
        """
        entry = self.of(resource).get(path)
        if self._store.shared and (entry is None or number_or_zero(version) > entry.revision):
            await self.freshen()
            entry = self.of(resource).get(path)
        return entry
