"""Everything current, in memory: lists and watches are served from here, and an object is encoded once.

The cache follows the store's log.  An :class:`Entry` keeps an object's JSON from ``"metadata"`` on: put the kind's head
before it and it is the object, join many with commas and they are a list, and nothing is ever decoded to be encoded.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from sys import intern
from typing import Any, Literal, Protocol

import msgspec
from sortedcontainers import SortedDict

from seamark.errors import Object
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
_OPENING = b'{"metadata":{'

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


def prefix_of(resource: Resource, namespace: str = "") -> str:
    """The beginning of the store keys of a kind, or of one namespace's objects of it."""
    prefix = f"/{resource.group or 'core'}/{resource.plural}/"
    return f"{prefix}{namespace}/" if namespace else prefix


def key_of(resource: Resource, namespace: str, name: str) -> str:
    """Where an object lives in the store."""
    return prefix_of(resource, namespace) + name


class _Meta(msgspec.Struct, gc=False):
    labels: dict[str, str] | None = None


class _Labelled(msgspec.Struct, gc=False):
    metadata: _Meta


_labels = msgspec.json.Decoder(_Labelled)
_object = msgspec.json.Decoder(dict[str, Any])
_NO_LABELS: dict[str, str] = {}


class Entry(msgspec.Struct, gc=False):
    """One object as it was last written.

    ``path`` is its key below its kind (``namespace/name`` or ``name``).  ``tail`` is its JSON from ``"metadata"`` on,
    the resourceVersion included.  Its labels, and ``fields``, its values for field selectors, are found when first
    asked for: most versions of most objects are never selected.
    """

    path: str
    namespace: str
    name: str
    revision: int
    tail: bytes
    fields: dict[str, str] | None = None
    known_labels: dict[str, str] | None = None

    @property
    def labels(self) -> dict[str, str]:
        if self.known_labels is None:
            self.known_labels = _labels.decode(b"{" + self.tail).metadata.labels or _NO_LABELS
        return self.known_labels

    def decode(self) -> Object:
        """A fresh dict of the object, without apiVersion and kind."""
        return _object.decode(b"{" + self.tail)


def entry_of(path: str, value: bytes, revision: int) -> Entry:
    namespace, _, name = path.rpartition("/")
    tail = b'"metadata":{"resourceVersion":"%d",%b' % (revision, value[len(_OPENING) :])
    return Entry(path, intern(namespace), name, revision, tail)


def stored(obj: Object) -> bytes:
    """An object as the store keeps it: no apiVersion, kind or resourceVersion, metadata first."""
    metadata = {k: v for k, v in obj["metadata"].items() if k != "resourceVersion"}
    rest = {k: v for k, v in obj.items() if k not in ("apiVersion", "kind", "metadata")}
    return msgspec.json.encode({"metadata": metadata, **rest})


def restamped(entry: Entry, revision: int) -> Entry:
    """The same object under another version: how watchers see it go."""
    _, _, rest = entry.tail.partition(b'",')
    tail = b'"metadata":{"resourceVersion":"%d",%b' % (revision, rest)
    return Entry(entry.path, entry.namespace, entry.name, revision, tail, entry.fields, entry.known_labels)


class Event(msgspec.Struct, gc=False):
    """One object's step.  Of a DELETED one, ``entry`` is the last state under the version of its deletion.

    ``encoded`` keeps what was made of it for watchers, by representation: made once, sent to all.
    """

    type: EventType
    entry: Entry
    previous: Entry | None
    encoded: dict[object, bytes]


class Watcher(Protocol):
    """Somebody who wants to know; called in the event loop, must not block."""

    def offer(self, event: Event) -> None:
        """One event, in order; keep it until :meth:`flush`."""
        ...

    def flush(self, revision: int) -> None:
        """Everything up to ``revision`` was offered: send it on."""
        ...


class Collection:
    """All objects of one kind."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.resource = kind.resource
        self.prefix = prefix_of(kind.resource)
        self.head = f'{{"kind":"{self.resource.kind}","apiVersion":"{self.resource.api_version}",'.encode()
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
    """A version as a number; 0 for what is none."""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 20 else 0


class Cache:
    """The current state of every kind, and who waits for changes of it."""

    def __init__(self, store: Store, kinds: Iterable[Kind]) -> None:
        self._store = store
        self._by_prefix: dict[str, Collection] = {}
        self._by_resource: dict[tuple[str, str], Collection] = {}
        for kind in kinds:
            self.add(kind)
        self.ports: dict[int, int] = {}  # reserved node ports → revision of the reservation
        self.revision = 0
        self.lost: BaseException | None = None  # why following the log stopped, if it did
        self._waiting: list[tuple[int, int, asyncio.Future[None]]] = []
        self._sequence = 0

    def add(self, kind: Kind) -> Collection:
        """Serve one more kind; a view of another kind's objects shares that kind's collection."""
        resource = kind.stored_as or kind.resource
        collection = self._by_resource.get((resource.group, resource.plural))
        if collection is None:
            collection = Collection(kind)
            self._by_prefix[collection.prefix] = collection
        self._by_resource[(kind.resource.group, kind.resource.plural)] = collection
        return collection

    def of(self, resource: Resource) -> Collection:
        return self._by_resource[(resource.group, resource.plural)]

    @property
    def collections(self) -> Sequence[Collection]:
        return list(self._by_prefix.values())

    # --- following the store -----------------------------------------------------------------------

    async def load(self) -> None:
        """Read everything current, at one revision; then :meth:`follow` from there."""
        revision = await self._store.revision()
        for collection in self._by_prefix.values():
            start, end = collection.prefix, prefix_end(collection.prefix)
            async for rows in self._pages(start, end, revision):
                collection.load(rows)
            collection.complete_since = collection.changed = revision
        async for rows in self._pages(PORTS_PREFIX, prefix_end(PORTS_PREFIX), revision):
            for key, _, at in rows:
                self.ports[int(key[len(PORTS_PREFIX) :])] = at
        self.revision = revision

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
        """Keep up with the store until it closes; whoever waits for a revision is told if that fails."""
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
        self.revision = max(self.revision, batch.revision)
        for watcher in touched:
            watcher.flush(self.revision)
        if self._waiting and self._waiting[0][0] <= self.revision:
            # A turn later: who follows the state acts on it before those who made it go on to change it again.  Under
            # load this is what keeps controllers in the same process close behind.
            asyncio.get_running_loop().call_soon(self._release)

    def _release(self) -> None:
        """Let go on who waited for what has been taken in."""
        while self._waiting and self._waiting[0][0] <= self.revision:
            _, _, future = heapq.heappop(self._waiting)
            if not future.done():
                future.set_result(None)

    # --- freshness ---------------------------------------------------------------------------------

    @property
    def always_fresh(self) -> bool:
        """Whether reading from memory sees every acknowledged write: no one else writes to the store."""
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
                # Whoever waited for a far future and gave up is forgotten before they become many.
                self._waiting = [waiting for waiting in self._waiting if not waiting[2].done()]
                heapq.heapify(self._waiting)

    async def written(self, resource: Resource, path: str, value: bytes, revision: int) -> Entry:
        """The entry of a write just acknowledged: the one in memory, unless somebody has changed it again already."""
        await self.reach(revision)
        entry = self.of(resource).get(path)
        return entry if entry is not None and entry.revision == revision else entry_of(path, value, revision)

    async def freshen(self) -> None:
        """Wait until every write acknowledged anywhere before this call can be read here."""
        if self._store.shared:
            await self.reach(await self._store.revision())

    async def find(self, resource: Resource, path: str, version: str = "") -> Entry | None:
        """An object to be written, as fresh as the writer has seen it.

        What is not here, or is older than the ``version`` the writer names, may merely not have arrived yet: another
        server of a shared store wrote it.  Then the store is asked how far it is before anybody is told "not found".
        """
        entry = self.of(resource).get(path)
        if self._store.shared and (entry is None or (_number(version) > entry.revision)):
            await self.freshen()
            entry = self.of(resource).get(path)
        return entry
