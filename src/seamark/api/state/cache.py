"""Everything current, in memory, as the store's log tells it: lists and watches are served from here.

Objects of kinds that are not served stay in the store and are not held here.  When a kind is added while the server
runs, :meth:`Cache.add` reads its objects first; :meth:`Cache.remove` ends its watches and forgets them.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from sortedcontainers import SortedDict

from seamark.api.state.entries import Entry, Event, entry_of, prefix_of, restamped
from seamark.errors import NotFound
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.store.protocol import Batch, Change, Store, Unavailable, prefix_end

# Events kept per kind, so that a watch can begin a little in the past without asking the store.
RECENT_EVENTS = 2048
# Rows read at a time when the cache fills itself.
LOAD_PAGE = 5000
SLICE = 1024
MAX_GIVEN_UP = 1024

PORTS_PREFIX = "/seamark/nodeports/"


def _prefix_of_kind(kind: Kind) -> str:
    return prefix_of(kind.stored_as or kind.resource)


class Watcher(Protocol):
    """A subscriber to changes; called in the event loop, must not block."""

    def offer(self, event: Event) -> None:
        """One event, in order; keep it until :meth:`flush`."""
        ...

    def flush(self, revision: int) -> None:
        """Everything up to ``revision`` was offered: send it on."""
        ...

    def end(self) -> None:
        """The kind is gone or was replaced: no more events will come from this collection."""
        ...


class Collection:
    """All objects stored under one prefix: those of one kind, which several versions and views may show."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.shown_as: set[Resource] = set()  # the kinds that show its objects
        self.entries: SortedDict[str, Entry] = SortedDict()
        self.events: deque[Event] = deque(maxlen=RECENT_EVENTS)
        self.complete_since = 0  # every event after this revision is in ``events``
        self.changed = 0  # revision of the last change
        # Watchers by (namespace, name) they are limited to; "" means any.
        self._watchers: dict[tuple[str, str], dict[Watcher, None]] = {}

    def get(self, path: str) -> Entry | None:
        entry: Entry | None = self.entries.get(path)
        return entry

    def _range(self, namespace: str, after: str) -> tuple[int, int]:
        """Positions of the entries of a namespace (or of all) that come behind the path ``after``."""
        entries = self.entries
        start = entries.bisect_right(after) if after else entries.bisect_left(f"{namespace}/") if namespace else 0
        # "0" is the character after "/": the first path behind the namespace's own.
        end = entries.bisect_left(f"{namespace}0") if namespace else len(entries)
        return start, max(start, end)

    def of_namespace(self, namespace: str, after: str = "") -> Iterator[Entry]:
        """Entries in key order, those of one namespace or all, beginning behind the path ``after``.

        Taken in slices, which cost far less than asking the sorted structure for one key after the other.
        """
        start, end = self._range(namespace, after)
        paths = self.entries.keys()
        get = self.entries.__getitem__
        for at in range(start, end, SLICE):
            yield from map(get, paths[at : min(at + SLICE, end)])

    def count(self, namespace: str, after: str = "") -> int:
        """How many :meth:`of_namespace` would give, without walking them."""
        start, end = self._range(namespace, after)
        return end - start

    # --- watchers ----------------------------------------------------------------------------------

    @property
    def watcher_count(self) -> int:
        return sum(map(len, self._watchers.values()))

    def subscribe(self, watcher: Watcher, namespace: str, name: str) -> Callable[[], None]:
        """From now on; call the result to stop."""
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
        """End them cleanly: a client may watch on from the last version it saw, if the kind is still there."""
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

    def since(self, revision: int) -> Iterator[Event] | None:
        """Events after ``revision``, or None if some of them are no longer here."""
        if revision < self.complete_since:
            return None
        return (event for event in self.events if event.entry.revision > revision)

    # --- following the log -------------------------------------------------------------------------

    def load(self, rows: Iterable[tuple[str, bytes, int]]) -> None:
        for key, value, revision in rows:
            entry = entry_of(key[len(self.prefix) :], value, revision)
            self.entries[entry.path] = entry

    def step(self, change: Change) -> Event | None:
        """Take one change in; None if it changed nothing (a key deleted that was not there)."""
        path = change.key[len(self.prefix) :]
        previous: Entry | None = self.entries.get(path)
        if change.value is None:
            if previous is None:
                return None
            del self.entries[path]
            event = Event("DELETED", restamped(previous, change.revision), previous, {})
        else:
            entry = entry_of(path, change.value, change.revision)
            self.entries[path] = entry
            event = Event("MODIFIED" if previous is not None else "ADDED", entry, previous, {})
        if len(self.events) == self.events.maxlen:
            self.complete_since = self.events[0].entry.revision
        self.events.append(event)
        self.changed = change.revision
        return event


def _number(version: str) -> int:
    """A version as a number; 0 if it is not one."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0


class Cache:
    """The current state of every kind, and the tasks that wait for a revision of it."""

    def __init__(self, store: Store, kinds: Iterable[Kind]) -> None:
        self._store = store
        self._by_prefix: dict[str, Collection] = {}
        self._by_resource: dict[tuple[str, str], Collection] = {}
        self._missed: dict[str, list[Change]] = {}  # by prefix: changes of collections that are still being read
        for kind in kinds:
            self._show(kind, self._by_prefix.get(_prefix_of_kind(kind)) or Collection(_prefix_of_kind(kind)))
        self.ports: dict[int, int] = {}  # reserved node ports → revision of the reservation
        self.revision = 0
        self.lost: BaseException | None = None  # why following the log stopped, if it did
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def _show(self, kind: Kind, collection: Collection) -> None:
        self._by_prefix[collection.prefix] = collection
        self._by_resource[kind.resource.group, kind.resource.plural] = collection
        collection.shown_as.add(kind.resource)

    def of(self, resource: Resource) -> Collection:
        """The collection of a kind; NotFound if it is not served, or not any more."""
        try:
            return self._by_resource[resource.group, resource.plural]
        except KeyError:
            raise NotFound("the server could not find the requested resource", details={}) from None

    @property
    def collections(self) -> Sequence[Collection]:
        return list(self._by_prefix.values())

    # --- kinds that come and go --------------------------------------------------------------------

    async def add(self, kind: Kind) -> None:
        """Hold the objects of one more kind, those included that are in the store already.

        The versions of a kind share their objects.  Must not be called again for the same objects before it returns.
        """
        prefix = _prefix_of_kind(kind)
        self._show(kind, self._by_prefix.get(prefix) or await self._read(prefix))

    async def _read(self, prefix: str) -> Collection:
        """A new collection with all the objects of one revision, and with every change since."""
        collection = Collection(prefix)
        missed = self._missed[prefix] = []
        try:
            revision = await self._store.revision()
            await self._fill(collection, revision)
            await self.reach(revision)
        finally:
            del self._missed[prefix]
        for change in missed:
            if change.revision > revision:
                collection.step(change)
        return collection

    def remove(self, kind: Kind) -> None:
        """Forget a kind and end its watches.  Its objects are forgotten too unless another version shows them.

        In the store they stay; the caller deletes them there if they are to be gone for good.
        """
        collection = self.of(kind.resource)
        collection.shown_as.discard(kind.resource)
        place = kind.resource.group, kind.resource.plural
        if all((other.group, other.plural) != place for other in collection.shown_as):
            del self._by_resource[place]
        if not collection.shown_as:
            del self._by_prefix[collection.prefix]
        collection.end_watches()

    # --- following the store -----------------------------------------------------------------------

    async def load(self) -> None:
        """Read everything current, at one revision; then :meth:`follow` from there."""
        revision = await self._store.revision()
        for collection in self._by_prefix.values():
            await self._fill(collection, revision)
        async for rows in self._pages(PORTS_PREFIX, prefix_end(PORTS_PREFIX), revision):
            for key, _, at in rows:
                self.ports[int(key[len(PORTS_PREFIX) :])] = at
        self.revision = revision

    async def _fill(self, collection: Collection, revision: int) -> None:
        async for rows in self._pages(collection.prefix, prefix_end(collection.prefix), revision):
            collection.load(rows)
        collection.complete_since = collection.changed = revision

    def settle(self) -> None:
        """Forget how the state came about so far: reads of older versions ask the store."""
        for collection in self._by_prefix.values():
            collection.events.clear()
            collection.complete_since = collection.changed = self.revision

    async def _pages(self, start: str, end: str, revision: int) -> Any:
        while True:
            page = await self._store.read(start, end, revision=revision, limit=LOAD_PAGE)
            yield [(row.key, row.value, row.revision) for row in page.rows]
            if not page.more:
                return
            start = page.rows[-1].key + "\0"

    async def follow(self) -> None:
        """Keep up with the store until it closes; if that fails, everything that waits for a revision fails too."""
        try:
            async for batch in self._store.watch("/", self.revision):
                self.apply(batch)
            self.lost = Unavailable("the store was closed")
        except BaseException as error:
            self.lost = error
            raise
        finally:
            for _, _, future in self._waiting:
                if not future.done():
                    future.set_exception(self._behind())
            self._waiting.clear()

    def _behind(self) -> Unavailable:
        return Unavailable(f"the store is no longer followed: {self.lost or type(self.lost).__name__}")

    def apply(self, batch: Batch) -> None:
        """Take a batch of the log in and tell the watchers, each once."""
        touched: dict[Watcher, None] = {}
        for change in batch.changes:
            cut = change.key.find("/", change.key.find("/", 1) + 1) + 1
            collection = self._by_prefix.get(change.key[:cut])
            if collection is not None:
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
            elif (missed := self._missed.get(change.key[:cut])) is not None:
                missed.append(change)
        self.revision = max(self.revision, batch.revision)
        for watcher in touched:
            watcher.flush(self.revision)
        if self._waiting and self._waiting[0][0] <= self.revision:
            # A turn later, so that watchers are called before the writer goes on.  Under load this is what keeps the
            # controllers in the same process close behind.
            asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        """Wake the tasks that waited for a revision that is here now."""
        while self._waiting and self._waiting[0][0] <= self.revision:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    # --- freshness ---------------------------------------------------------------------------------

    @property
    def always_fresh(self) -> bool:
        """Whether reading from memory sees every acknowledged write, because no other server writes to the store."""
        return not self._store.shared

    async def reach(self, revision: int) -> None:
        """Wait until the cache has seen ``revision``; raises Unavailable if it will not."""
        if self.revision >= revision:
            return
        if self.lost is not None:
            raise self._behind()
        self._sequence += 1
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (revision, self._sequence, future))
        try:
            await future
        finally:
            if future.cancelled() and len(self._waiting) > MAX_GIVEN_UP:
                # Tasks that waited for a far future and gave up are dropped before they become many.
                self._waiting = [waiting for waiting in self._waiting if not waiting[2].done()]
                heapq.heapify(self._waiting)

    async def written(self, resource: Resource, path: str, value: bytes, revision: int) -> Entry:
        """The entry of a write just acknowledged: the one in memory, unless that has been changed again already."""
        await self.reach(revision)
        entry = self.of(resource).get(path)
        return entry if entry is not None and entry.revision == revision else entry_of(path, value, revision)

    async def freshen(self) -> None:
        """Wait until every write acknowledged anywhere before this call can be read here."""
        if self._store.shared:
            await self.reach(await self._store.revision())

    async def find(self, resource: Resource, path: str, version: str = "") -> Entry | None:
        """An object to be written, as fresh as the writer has seen it.

        An object that is not here, or is older than the ``version`` the writer names, may have been written by another
        server of a shared store and not have arrived yet.  So the store is asked for its revision before this answers.
        """
        entry = self.of(resource).get(path)
        if self._store.shared and (entry is None or (_number(version) > entry.revision)):
            await self.freshen()
            entry = self.of(resource).get(path)
        return entry
