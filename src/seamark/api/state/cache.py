"""The current objects in memory, kept up to date by following the store's log; serves lists and watches.

Objects of kinds that are not served stay in the store and are not cached.  When a kind is added while the server
runs, :meth:`Cache.add` reads its objects first; :meth:`Cache.remove` ends its watches and drops them.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
from collections.abc import AsyncIterator, Iterable, Sequence
from itertools import groupby

from seamark.api.state.collection import Collection, Room, Watcher
from seamark.api.state.entries import Entry, Event, entry_of, prefix_of
from seamark.api.state.versions import number_or_zero
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import NotFound
from seamark.kinds.kind import Kind
from seamark.kinds.resource import Resource
from seamark.store.history import Window
from seamark.store.opening import DEFAULT_HISTORY_SECONDS
from seamark.store.protocol import Batch, Change, Compacted, Future, Row, Store, StoreError, Unavailable, prefix_end

log = logging.getLogger(__name__)

# Older events are dropped, or kinds that seldom change would fill up for hours; the store has none of them either.
RECENT_SECONDS = DEFAULT_HISTORY_SECONDS
EVENT_BYTES = 128 * 1024 * 1024
# Rows per read when the cache loads from the store.
LOAD_PAGE = 5000
MAX_GIVEN_UP = 1024
# How long to wait before a store that went away is followed again.
RETRY_SECONDS = 0.2

PORTS_PREFIX = "/seamark/nodeports/"


def _prefix_of_kind(kind: Kind) -> str:
    return prefix_of(kind.stored_as or kind.resource)


def _prefix_of_key(key: str) -> str:
    """The first two parts of a key, which say the kind."""
    return key[: key.find("/", key.find("/", 1) + 1) + 1]


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


class Cache:
    """The current objects of every kind, and the tasks that wait for a revision."""

    def __init__(
        self, store: Store, kinds: Iterable[Kind], *, event_bytes: int = EVENT_BYTES, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._store = store
        self._clock = clock
        self._recent = Window(seconds=RECENT_SECONDS)
        self._age_at = 0.0
        self.recent_since = 0  # reads of older revisions ask the store, which may have compacted them
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
        self.recent_since = self._recent.oldest(now=now, revision=self.revision)
        for collection in self._by_prefix.values():
            collection.forget_before(self.recent_since)

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
