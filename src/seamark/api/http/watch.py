"""Watches over HTTP: a :class:`Watch` is offered events by the cache and writes them to its client.

An event is encoded once per representation and its bytes go to every watcher; each watcher writes once per batch.
A client too slow for its events is cut off: it will list again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

import msgspec

from seamark import errors
from seamark.api.http.protocol import MAX_STREAM_BACKLOG, Stream, Streaming, frame
from seamark.api.http.render import Renderer
from seamark.api.state.entries import Entry, Event
from seamark.api.state.read import Reader
from seamark.api.state.watch import Watching, failure, seen
from seamark.errors import Object
from seamark.kinds.language import decode
from seamark.kinds.language.shape import Shape
from seamark.store.protocol import StoreError

# Without timeoutSeconds a watch lives this long, spread so that clients do not all come back at once.
SHORTEST_WATCH, LONGEST_WATCH = 1800.0, 3600.0
BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END = 2.0
# Initial events are written in pieces of about this many bytes, each waiting for the reader to follow.
PIECE = 256 * 1024
# Bytes of events kept for a watch that is still catching up; beyond that it is cut off.
MAX_PENDING = MAX_STREAM_BACKLOG
INITIAL_END = "k8s.io/initial-events-end"


class Watches:
    """Opens watches, counts them, and ends them all when the server stops."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.open: set[Watch] = set()

    def start(self, watching: Watching, renderer: Renderer) -> Streaming:
        """The answer to a watch request; events flow once its head is sent."""

        def begin(stream: Stream) -> None:
            watch = Watch(watching, renderer, stream, self.open.discard)
            self.open.add(watch)
            watch.begin(fresh=self._reader.wait)

        return Streaming(begin)

    def end_all(self) -> None:
        for watch in list(self.open):
            watch.end()


def _blank(shape: Shape) -> bytes:
    """An empty object, as Go would encode it."""
    return msgspec.json.encode(decode.conform({}, shape)[0])


def bookmark(renderer: Renderer, metadata: Object, *, first: bool) -> bytes:
    """An object of the watched kind that holds nothing but a version; ``first`` if no event came before it."""
    resource = renderer.kind.resource
    blank = msgspec.json.decode(renderer.kind.shape.form(_blank))
    obj = {**blank, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return msgspec.json.encode(renderer.in_watch(obj, first=first))


class Watch:
    """One open watch.  There may be thousands: an idle one is this object, its timers and its connection."""

    __slots__ = (
        "_after",
        "_cache",
        "_catching_up",
        "_collection",
        "_first",
        "_on_end",
        "_options",
        "_pending",
        "_pending_size",
        "_renderer",
        "_selection",
        "_stream",
        "_timers",
        "_unsubscribe",
        "_watching",
    )

    def __init__(
        self,
        watching: Watching,
        renderer: Renderer,
        stream: Stream,
        on_end: Callable[[Watch], None],
    ) -> None:
        self._cache = watching.cache
        self._collection = watching.collection
        self._watching = watching
        self._selection = watching.selection
        self._options = watching.options
        self._renderer = renderer
        self._stream = stream
        self._on_end = on_end
        self._pending: list[bytes] = []
        self._pending_size = 0
        self._first = True
        self._after = 0  # events up to this revision were sent already
        self._catching_up: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._unsubscribe: Callable[[], None] | None = None

    # --- beginning ---------------------------------------------------------------------------------

    def begin(self, *, fresh: Callable[[str], Awaitable[None]]) -> None:
        """``fresh`` waits until the cache has seen a version."""
        self._stream.on_close = self._closed
        self._unsubscribe = self._collection.subscribe(self, self._selection.namespace, self._selection.name)
        self._set_timers()
        since, now = self._watching.since, self._cache.revision
        if since is None:
            self._after = now
            # A client that is told where the beginning ends relies on having seen all of it.
            told = self._options.initial_events and self._options.bookmarks
            self._catch_up(self._initial(fresh if told else None))
        elif since < 0 or since >= now:
            self._after = max(since, now if since < 0 else since)
        else:
            self._after = since
            recent = self._collection.since(since)
            if recent is not None:
                for event in recent:
                    if self._watching.concerns(event):
                        self.offer(event)
                self.flush(now)
            else:
                self._after = now
                self._catch_up(self._replayed(self._watching.replay(since, now)))

    def _catch_up(self, pieces: AsyncIterator[bytes]) -> None:
        self._catching_up = asyncio.ensure_future(self._send_all(pieces))

    async def _send_all(self, pieces: AsyncIterator[bytes]) -> None:
        try:
            async for piece in pieces:
                if not self._stream.write(piece) or not await self._stream.drain():
                    self._closed()
                    return
        except StoreError as error:
            self._fail(failure(error))
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
            if (view := self._watching.view(event)) is not None:
                yield self._line(*view)

    # --- the cache's side --------------------------------------------------------------------------

    def offer(self, event: Event) -> None:
        if event.entry.revision <= self._after:
            return
        view = seen(event, self._selection)
        if view is None:
            return
        # Encoded once for all watchers that see this event alike; the first row of a Table comes with its columns.
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
        obj = bookmark(self._renderer, {**metadata, "resourceVersion": str(revision)}, first=first)
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
