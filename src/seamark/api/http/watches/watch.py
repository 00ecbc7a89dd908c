"""One watch, from its beginning to its end."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from seamark import errors
from seamark.api.http.render import Renderer
from seamark.api.http.watches.alike import PIECE, Alike, encoded, unconverted
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.stream import Outlet, Stream
from seamark.api.state.entries import Entry, Event
from seamark.api.state.failures import unwatchable
from seamark.api.state.forms import converted
from seamark.api.state.watch import Watching
from seamark.errors import Object
from seamark.kinds.language import decode
from seamark.kinds.language.shape import Shape
from seamark.store.protocol import StoreError

if TYPE_CHECKING:
    from seamark.api.http.watches.opening import Watches

log = logging.getLogger(__name__)

# Without timeoutSeconds a watch lives this long, spread so that clients do not all come back at once.
SHORTEST_WATCH, LONGEST_WATCH = 1800.0, 3600.0
BOOKMARK_SECONDS = 60.0
BOOKMARK_BEFORE_END = 2.0
CONVERTED_AT_ONCE = 256  # events whose objects are converted together
ALL = 1 << 63  # greater than any revision
INITIAL_END = "k8s.io/initial-events-end"


def _blank(shape: Shape) -> bytes:
    """An empty object, as Go would encode it."""
    return msgspec.json.encode(decode.conform({}, shape)[0])


def bookmark(renderer: Renderer, metadata: Object, *, first: bool) -> bytes:
    """An event with nothing but a version in an object of the watched kind; ``first`` if no event came before it."""
    resource = renderer.kind.resource
    blank = msgspec.json.decode(renderer.kind.shape.form(_blank))
    obj = {**blank, "kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
    return renderer.line("BOOKMARK", renderer.in_watch(obj, first=first))


class Watch:
    """One open watch.  There may be thousands: an idle one is this object, its timers and its connection.

    Normally events are written as the cache offers them.  A watch is *behind* while it sends its beginning, or while
    its client does not read: then it ignores what is offered and keeps only the number of the next event to send.  It
    finds that event among the collection's recent ones when the client reads again; if it is gone, the watch ends.
    """

    __slots__ = (
        "_alike",
        "_behind",
        "_catching_up",
        "_number",
        "_rest",
        "_stream",
        "_timers",
        "_watches",
        "after",
        "collection",
        "first",
        "renderer",
        "watching",
    )

    def __init__(self, watching: Watching, renderer: Renderer, stream: Stream, watches: Watches) -> None:
        self.collection = watching.collection
        self.watching = watching
        self.renderer = renderer
        self._stream = stream
        self._watches = watches
        self._rest: bytes | memoryview = b""  # of an event that the client has taken in part
        self.first = True  # nothing was sent yet
        self.after = 0  # events up to this revision were sent already; ALL if none are to be taken from the cache
        self._behind = False
        self._number = 0  # of the next event to send, if the watch is behind
        self._catching_up: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._alike: Alike | None = None  # those that it is offered events with, while it is open

    # --- beginning ---------------------------------------------------------------------------------

    def begin(self, *, fresh: Callable[[str], Awaitable[None]]) -> None:
        """``fresh`` waits until the cache has seen a version."""
        self._stream.on_close = self._closed
        self._stream.on_stall = self._stall
        self._stream.on_writable = self.go_on
        self._alike = self._watches.join(self)
        self._set_timers()
        since, now = self.watching.since, self.watching.cache.revision
        if since is None:
            self._fall_behind(self.collection.next_number)
            # A client that is told where the beginning ends relies on having seen all of it.
            told = self.watching.options.initial_events and self.watching.options.bookmarks
            self._catch_up(self._initial(fresh if told else None))
        elif since < 0 or since >= now:
            self.after = max(since, now if since < 0 else since)
        elif self.collection.since(since) is not None:
            self._fall_behind(self.collection.number_after(since))
            self.go_on()
        else:
            self._fall_behind(self.collection.next_number)
            self._catch_up(self._replayed(self.watching.replay(since, now)))

    def _catch_up(self, pieces: AsyncIterator[bytes]) -> None:
        self._catching_up = asyncio.ensure_future(self._send_all(pieces))

    async def _send_all(self, pieces: AsyncIterator[bytes]) -> None:
        try:
            async for piece in pieces:
                if not await self._send(piece):
                    return
        except StoreError as error:
            self._fail(unwatchable(error))
            return
        except errors.ApiError as error:
            self._fail(error)
            return
        self._catching_up = None
        self.go_on()

    async def _send(self, data: bytes | memoryview) -> bool:
        """Write it all, waiting for the client as often as necessary; False once that is gone."""
        while not self._write(data):
            if self._alike is None or not await self._stream.drain():
                self._closed()
                return False
            self._watches.unread.moves(self)
            data = self._rest
        return True

    async def _initial(self, fresh: Callable[[str], Awaitable[None]] | None) -> AsyncIterator[bytes]:
        """What is there as ADDED events, in pieces; with ``sendInitialEvents`` a bookmark ends them."""
        if fresh is not None:
            await fresh(self.watching.options.version)
        # Events so far are part of the beginning.
        self._number = self.collection.next_number
        revision = self.watching.cache.revision
        entries: Iterable[Entry] = list(self.collection.of_namespace(self.watching.selection.namespace))
        if self.watching.converts:
            await converted(self.watching.selection.kind, entries)
        piece: list[bytes] = []
        size = 0
        for entry in entries:
            if self.watching.selection.name in ("", entry.name) and self.watching.selection.matches(entry):
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
            if self.watching.converts:
                await self.watching.converted([event])
            if (view := self.watching.view(event)) is not None:
                yield self._line(*view)

    async def _converted(self) -> AsyncIterator[bytes]:
        """Wait until the webhook has converted what the next events show; that itself sends nothing."""
        events = self.collection.numbered_from(self._number)
        await self.watching.converted(islice(events or (), CONVERTED_AT_ONCE))
        yield b""

    # --- the cache's side --------------------------------------------------------------------------

    @property
    def outlet(self) -> Outlet:
        """Where events go as they come, as long as the client reads."""
        return self._stream.outlet

    def deliver(self, data: bytes) -> bool:
        """Write events as they come; returns whether the next ones can be written so too."""
        if not self._stream.write(data):
            self._closed()
            return False
        if self._stream.stalled:
            self._stall()
        return self._alike is not None and not self._behind

    def fall_behind(self, revision: int) -> None:
        """Let :meth:`go_on` find the recent events after this revision, and send them as fast as the client reads."""
        self._fall_behind(self.collection.number_after(revision))

    def _line(self, type: str, entry: Entry) -> bytes:
        first, self.first = self.first, False
        return frame(self.renderer.event(type, entry, first=first))

    # --- the client's side -------------------------------------------------------------------------

    def _write(self, data: bytes | memoryview) -> bool:
        """Write as much as the client takes, and keep the rest; False if it has to be waited for, or is gone."""
        stream, size = self._stream, len(data)
        if size > PIECE:
            data = memoryview(data)
        for at in range(0, size, PIECE):
            if not stream.write(data[at : at + PIECE]):
                self._closed()
                return False
            if stream.stalled:
                self._rest = data[at + PIECE :]
                self._count_unread()
                return False
        self._rest = b""
        return True

    def _stall(self) -> None:
        """The client does not take what was written.  If that were events as they come, it is behind from now on."""
        if self._alike is not None and not self._behind:
            self._fall_behind(self.collection.next_number)
            self._count_unread()

    def _count_unread(self) -> None:
        self._watches.unread.stalls(self, self._stream.unsent + len(self._rest))

    def _fall_behind(self, number: int) -> None:
        """Take no more events from the cache; the one with this number comes next."""
        self.after, self._number, self._behind = ALL, number, True
        self.collection.behind += 1
        if self._alike is not None:
            self._alike.part(self)

    def go_on(self) -> None:
        """If the watch is behind and its client reads, send it recent events until it has them all."""
        if not self._behind or self._catching_up is not None:
            return
        self._watches.unread.moves(self)
        if not self._write(self._rest):
            return
        events = self.collection.numbered_from(self._number)
        if events is None:
            # They are no longer kept: the client watches on from the version it has, or lists again.
            self.end()
            return
        pieces: list[bytes] = []
        size = 0
        for event in events:
            if size >= PIECE:
                if not self._write(b"".join(pieces)):
                    return
                pieces, size = [], 0
            if self.watching.converts and unconverted(self.watching, event):
                if self._write(b"".join(pieces)):
                    self._catch_up(self._converted())
                return
            self._number += 1
            if (view := self.watching.view(event)) is not None:
                own = self.first and self.renderer.representation.as_ == "Table"
                pieces.append(self._line(*view) if own else encoded(event, view, self.renderer, self.collection))
                size += len(pieces[-1])
        if self._write(b"".join(pieces)):
            self.after = self.watching.cache.revision
            self._no_longer_behind()

    def _no_longer_behind(self) -> None:
        if self._behind:
            self._behind = False
            self.collection.behind -= 1

    # --- bookmarks and the end ---------------------------------------------------------------------

    def _set_timers(self) -> None:
        loop = asyncio.get_running_loop()
        asked = self.watching.options.timeout_seconds
        life = float(asked) if asked else random.uniform(SHORTEST_WATCH, LONGEST_WATCH)
        self._timers.append(loop.call_later(life, self.end))
        if self.watching.options.bookmarks:
            if life > BOOKMARK_BEFORE_END:
                self._timers.append(loop.call_later(life - BOOKMARK_BEFORE_END, self._send_bookmark))
            self._timers.append(loop.call_later(BOOKMARK_SECONDS, self._keep_bookmarking))

    def _keep_bookmarking(self) -> None:
        self._send_bookmark()
        if self._alike is not None:
            self._timers[-1] = asyncio.get_running_loop().call_later(BOOKMARK_SECONDS, self._keep_bookmarking)

    def _send_bookmark(self) -> None:
        if not self._behind and self._alike is not None:
            self.deliver(self._bookmark(self.watching.cache.revision, {}))

    def _bookmark(self, revision: int, metadata: Object) -> bytes:
        first, self.first = self.first, False
        return frame(bookmark(self.renderer, {**metadata, "resourceVersion": str(revision)}, first=first))

    def _fail(self, error: errors.ApiError) -> None:
        """Tell the client that this watch cannot go on."""
        self._stream.write(frame(self.renderer.line("ERROR", errors.status(error))))
        self.end()

    def end(self) -> None:
        """Close the answer cleanly: the client may watch on from the last version it saw."""
        if self._alike is not None:
            if self._rest:
                self._stream.write(self._rest)
            self._closed()
            self._stream.finish()

    def cut(self) -> None:
        """Close the connection at once, to have the memory back that its client does not read."""
        self._stream.abort()
        self._closed()

    def _closed(self) -> None:
        alike, self._alike = self._alike, None
        if alike is None:
            return
        alike.remove(self)
        self.after = ALL
        for timer in self._timers:
            timer.cancel()
        catching_up, self._catching_up = self._catching_up, None  # which refers to what refers to this
        if catching_up is not None:
            catching_up.cancel()
        self._no_longer_behind()
        self._rest = b""
        self._watches.ended(self)
