"""Watches: a client's wish becomes a :class:`Watch`, which the cache offers events and which writes them out.

An event is encoded once per representation and its bytes go to every watcher; each watcher writes once per batch.
A watch from an older version than memory remembers is replayed from the store's log first.  A reader too slow for its
events is cut off: it will list again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from seamark import errors
from seamark.api.http.options import ListOptions, unsigned
from seamark.api.http.protocol import MAX_STREAM_BACKLOG, Stream, Streaming, frame
from seamark.api.state.cache import Cache, Collection, Entry, Event, entry_of, restamped
from seamark.api.state.read import Reader
from seamark.api.state.render import Renderer
from seamark.api.state.select import Selection
from seamark.errors import Object
from seamark.store.protocol import Change, Compacted, Store, StoreError

# Without timeoutSeconds a watch lives this long, spread so that clients do not all come back at once.
SHORTEST_WATCH, LONGEST_WATCH = 1800.0, 3600.0
BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END = 2.0
# Initial events are written in pieces of about this many bytes, each waiting for the reader to follow.
PIECE = 256 * 1024
# Bytes of events kept for a watch that is still catching up; beyond that it is hopeless.
MAX_PENDING = MAX_STREAM_BACKLOG
INITIAL_END = "k8s.io/initial-events-end"


def seen(event: Event, selection: Selection) -> tuple[str, Entry] | None:
    """The event as a watcher with selectors sees it: entering is ADDED, leaving DELETED, the rest is not seen."""
    if selection.everything:
        return event.type, event.entry
    now = event.type != "DELETED" and selection.matches(event.entry)
    before = event.previous is not None and selection.matches(event.previous)
    if now:
        return ("MODIFIED" if before else "ADDED"), event.entry
    if before and event.previous is not None:
        return "DELETED", restamped(event.previous, event.entry.revision)
    return None


class Watches:
    """Opens watches, counts them, and ends them all when the server stops."""

    def __init__(
        self, cache: Cache, store: Store, reader: Reader, bookmark: Callable[[Renderer, Object, bool], bytes]
    ) -> None:
        self._cache = cache
        self._store = store
        self._reader = reader
        self._bookmark = bookmark
        self.open: set[Watch] = set()

    def start(self, selection: Selection, options: ListOptions, renderer: Renderer) -> Streaming:
        """The answer to a watch request; events flow once its head is sent."""
        since = self._since(options)

        def begin(stream: Stream) -> None:
            watch = Watch(
                self._cache,
                selection=selection,
                options=options,
                renderer=renderer,
                stream=stream,
                bookmark=self._bookmark,
                on_end=self.open.discard,
            )
            self.open.add(watch)
            watch.begin(since, replay=self.replay, fresh=self._reader.wait)

        return Streaming(begin)

    @staticmethod
    def _since(options: ListOptions) -> int | None:
        """The version to begin after; None to begin with what is there."""
        try:
            asked = unsigned(options.version or "0")
        except ValueError as error:
            # Kubernetes answers a bare 500 here, without a reason.
            raise errors.ApiError(str(error)) from None
        if options.initial_events:
            return None
        return asked or (-1 if options.initial_events is False else None)

    async def replay(self, collection: Collection, since: int, until: int) -> AsyncIterator[Event]:
        """Events of the store's log after ``since`` up to ``until``."""
        async for batch in self._store.watch(collection.prefix, since):
            for change in batch.changes:
                if change.revision > until:
                    return
                yield _event_of(change, collection.prefix)
            if batch.revision >= until:
                return

    def end_all(self) -> None:
        for watch in list(self.open):
            watch.end()


def _event_of(change: Change, prefix: str) -> Event:
    path = change.key[len(prefix) :]
    previous = entry_of(path, change.previous, change.revision) if change.previous is not None else None
    if change.value is None:
        # A deletion whose last state is forgotten still has to be told.
        last = previous or entry_of(
            path, b'{"metadata":{"name":"%b"}}' % path.rpartition("/")[2].encode(), change.revision
        )
        return Event("DELETED", last, previous, {})
    entry = entry_of(path, change.value, change.revision)
    return Event("ADDED" if previous is None else "MODIFIED", entry, previous, {})


class Watch:
    """One open watch.  There are thousands of them: an idle one is this object, its timers and its connection."""

    __slots__ = (
        "_after",
        "_cache",
        "_catching_up",
        "_collection",
        "_first",
        "_make_bookmark",
        "_on_end",
        "_options",
        "_pending",
        "_pending_size",
        "_renderer",
        "_selection",
        "_stream",
        "_timers",
        "_unsubscribe",
    )

    def __init__(
        self,
        cache: Cache,
        *,
        selection: Selection,
        options: ListOptions,
        renderer: Renderer,
        stream: Stream,
        bookmark: Callable[[Renderer, Object, bool], bytes],
        on_end: Callable[[Watch], None],
    ) -> None:
        self._cache = cache
        self._collection = cache.of(selection.kind.resource)
        self._selection = selection
        self._options = options
        self._renderer = renderer
        self._stream = stream
        self._make_bookmark = bookmark
        self._on_end = on_end
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._first = True
        self._after = 0  # events up to this revision were sent already
        self._catching_up: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._unsubscribe: Callable[[], None] | None = None

    # --- beginning ---------------------------------------------------------------------------------

    def begin(
        self,
        since: int | None,
        *,
        replay: Callable[[Collection, int, int], AsyncIterator[Event]],
        fresh: Callable[[str], Awaitable[None]],
    ) -> None:
        """``fresh`` waits until the cache has seen a version, ``replay`` reads the store's log."""
        self._stream.on_close = self._closed
        self._unsubscribe = self._collection.subscribe(self, self._selection.namespace, self._selection.name)
        self._set_timers()
        now = self._cache.revision
        if since is None:
            self._after = now
            # Whoever wants to be told where the beginning ends counts on having seen all of it.
            told = self._options.initial_events and self._options.bookmarks
            self._catch_up(self._initial(fresh if told else None))
        elif since < 0 or since >= now:
            self._after = max(since, now if since < 0 else since)
        else:
            self._after = since
            recent = self._collection.since(since)
            if recent is not None:
                for event in recent:
                    if self._concerns(event):
                        self.offer(event)
                self.flush(now)
            else:
                self._after = now
                self._catch_up(self._replayed(replay(self._collection, since, now)))

    def _concerns(self, event: Event) -> bool:
        selection, entry = self._selection, event.entry
        return selection.namespace in ("", entry.namespace) and selection.name in ("", entry.name)

    def _catch_up(self, pieces: AsyncIterator[bytes]) -> None:
        self._catching_up = asyncio.ensure_future(self._send_all(pieces))

    async def _send_all(self, pieces: AsyncIterator[bytes]) -> None:
        try:
            async for piece in pieces:
                if not self._stream.write(piece) or not await self._stream.drain():
                    self._closed()
                    return
        except Compacted as error:
            self._fail(errors.Expired(f"too old resource version: {error.asked} ({error.oldest})"))
            return
        except StoreError as error:
            self._fail(errors.InternalError(str(error)))
            return
        except errors.ApiError as error:
            self._fail(error)
            return
        self._catching_up = None
        self.flush(self._cache.revision)

    async def _initial(self, fresh: Callable[[str], Awaitable[None]] | None) -> AsyncIterator[bytes]:
        """What is there as ADDED events, in pieces; with ``sendInitialEvents`` a bookmark ends them."""
        if fresh is not None:
            await fresh(self._options.version)
        # What was offered in the meantime is part of the beginning.
        self._forget_pending()
        self._first = True
        self._after = revision = self._cache.revision
        entries: Iterable[Entry] = list(self._collection.of_namespace(self._selection.namespace))
        piece: list[bytes] = []
        size = 0
        for entry in entries:
            if self._selection.name in ("", entry.name) and self._selection.matches(entry):
                data = self._line("ADDED", entry)
                piece.append(data)
                size += len(data)
                if size >= PIECE:
                    yield b"".join(piece)
                    piece, size = [], 0
        if fresh is not None:
            piece.append(self._bookmark(revision, {"annotations": {INITIAL_END: "true"}}))
        if piece:
            yield b"".join(piece)

    async def _replayed(self, events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
        async for event in events:
            view = seen(event, self._selection) if self._concerns(event) else None
            if view is not None:
                yield self._line(*view)

    # --- the cache's side --------------------------------------------------------------------------

    def offer(self, event: Event) -> None:
        if event.entry.revision <= self._after:
            return
        view = seen(event, self._selection)
        if view is None:
            return
        # Encoded once for all watchers that see this step alike; the first row of a Table has its columns beside it.
        key = (view[0], self._renderer.key)
        data = None if self._first and self._renderer.representation.as_ == "Table" else event.encoded.get(key)
        if data is None:
            first = self._first
            data = self._line(*view)
            if not first or self._renderer.representation.as_ != "Table":
                event.encoded[key] = data
        self._first = False
        self._pending.append(data)
        self._pending_size += len(data)

    def flush(self, revision: int) -> None:
        if self._catching_up is not None:
            if self._pending_size > MAX_PENDING:
                self._stream.abort()
                self._closed()
            return
        if self._pending:
            data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
            self._forget_pending()
            if not self._stream.write(data):
                self._closed()

    def _forget_pending(self) -> None:
        self._pending.clear()
        self._pending_size = 0

    def _line(self, type: str, entry: Entry) -> bytes:
        first, self._first = self._first, False
        return frame(self._renderer.event(type, entry, first=first))

    # --- bookmarks and the end ---------------------------------------------------------------------

    def _set_timers(self) -> None:
        loop = asyncio.get_running_loop()
        asked = self._options.timeout_seconds
        life = float(asked) if asked else random.uniform(SHORTEST_WATCH, LONGEST_WATCH)
        self._timers.append(loop.call_later(life, self.end))
        if self._options.bookmarks:
            if life > BOOKMARK_BEFORE_END:
                self._timers.append(loop.call_later(life - BOOKMARK_BEFORE_END, self._send_bookmark))
            self._timers.append(loop.call_later(BOOKMARK_SECONDS, self._keep_bookmarking))

    def _keep_bookmarking(self) -> None:
        self._send_bookmark()
        if self._unsubscribe is not None:
            self._timers[-1] = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._keep_bookmarking)

    def _send_bookmark(self) -> None:
        if self._catching_up is None and self._unsubscribe is not None:
            self._pending.append(self._bookmark(self._cache.revision, {}))
            self.flush(self._cache.revision)

    def _bookmark(self, revision: int, metadata: Object) -> bytes:
        first, self._first = self._first, False
        obj = self._make_bookmark(self._renderer, {**metadata, "resourceVersion": str(revision)}, first)
        return frame(b'{"type":"BOOKMARK","object":%b}\n' % obj)

    def _fail(self, error: errors.ApiError) -> None:
        """Tell the client that this watch cannot go on."""
        line = msgspec.json.encode({"type": "ERROR", "object": errors.status(error)}) + b"\n"
        self._stream.write(frame(line))
        self.end()

    def end(self) -> None:
        """Close the answer cleanly: the client may watch on from the last version it saw."""
        if self._unsubscribe is not None:
            self._closed()
            self._stream.finish()

    def _closed(self) -> None:
        unsubscribe, self._unsubscribe = self._unsubscribe, None
        if unsubscribe is None:
            return
        unsubscribe()
        for timer in self._timers:
            timer.cancel()
        if self._catching_up is not None:
            self._catching_up.cancel()
        self._forget_pending()
        self._on_end(self)
