"""Watches that see the same: an event is looked at once for all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from seamark.api.http.render import Renderer
from seamark.api.http.watches.rounds import Rounds
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.stream import Outlet
from seamark.api.state.collection import Collection
from seamark.api.state.entries import Entry, Event
from seamark.api.state.watch import Watching, seen

if TYPE_CHECKING:
    from seamark.api.http.watches.watch import Watch

log = logging.getLogger(__name__)

# Events are written in pieces of at most about this many bytes, each only when the client has read most of the last.
PIECE = 64 * 1024


class Alike:
    """The watches with one selection and one representation: the cache offers an event to all of them at once.

    Most of them are *even*: they have all events so far, and their clients read.  What they are sent next is the same,
    so that nothing has to be looked at per watch: the next event goes to the outlets of their streams, one after the
    other.  A watch becomes even when it is given an event as it comes, and is so until it falls behind or ends.
    """

    def __init__(self, watching: Watching, renderer: Renderer, rounds: Rounds, on_empty: Callable[[], object]) -> None:
        self._watching = watching
        self._renderer = renderer
        self._rounds = rounds
        self._on_empty = on_empty
        self._converts = watching.converts
        self._columns = renderer.representation.as_ == "Table"
        self._collection = watching.collection
        self._even: dict[Watch, Outlet] = {}
        self._outlets: list[Outlet] | None = None  # of these, None if they have changed
        self._others: dict[Watch, None] = {}
        self._pending: list[bytes] = []  # offered, not yet flushed
        self._first = self._last = 0  # the revisions of the first and the last of these
        self._unsubscribe = self._collection.subscribe(self, watching.selection.namespace, watching.selection.name)

    def add(self, watch: Watch) -> None:
        self._others[watch] = None

    def remove(self, watch: Watch) -> None:
        self.part(watch)
        del self._others[watch]
        if not self._even and not self._others:
            self._unsubscribe()
            del self._unsubscribe  # it refers to this object
            self._on_empty()

    def _join(self, watch: Watch) -> None:
        """It is even with the others."""
        del self._others[watch]
        self._even[watch] = watch.outlet
        self._outlets = None

    def part(self, watch: Watch) -> None:
        """It is not even with the others any more."""
        if self._even.pop(watch, None) is not None:
            self._others[watch] = None
            self._outlets = None

    @property
    def _watches(self) -> list[Watch]:
        return [*self._even, *self._others]

    def offer(self, event: Event) -> None:
        self._last = event.entry.revision
        if not self._pending:
            self._first = self._last
        if self._converts and unconverted(self._watching, event):
            # It waits in the collection until a webhook has converted it, and so do those after it.
            self._pending.clear()
            for watch in self._watches:
                if self._falls_behind(watch):
                    watch.go_on()
            return
        view = seen(event, self._watching.selection)
        if view is not None:
            self._pending.append(encoded(event, view, self._renderer, self._collection))

    def flush(self, revision: int) -> None:
        if not self._pending:
            return
        data = self._pending[0] if len(self._pending) == 1 else b"".join(self._pending)
        self._pending.clear()
        if not self._rounds.has_room(len(data) * (len(self._even) + len(self._others))):
            for watch in self._watches:
                if self._falls_behind(watch):
                    self._rounds.add(watch)
            return
        at_once = len(data) <= PIECE
        others = list(self._others) if at_once else self._watches
        if at_once:
            outlets = self._outlets
            if outlets is None:
                outlets = self._outlets = list(self._even.values())
            for outlet in outlets:
                try:
                    outlet.write(data)
                except Exception:
                    self._cut(outlet)
        for watch in others:
            try:
                if at_once and watch.after < self._first and not (self._columns and watch.first):
                    if watch.deliver(data):
                        self._join(watch)
                elif self._falls_behind(watch):
                    # This is too much to write at once, or the watch begins after some of these events, or its client
                    # has yet to get the columns of a Table.
                    watch.go_on()
            except Exception:
                self._cut(watch.outlet)

    def _falls_behind(self, watch: Watch) -> bool:
        """Let a watch find those events that were offered last by itself, when it goes on; False if it has them."""
        if watch.after >= self._last:
            return False
        watch.fall_behind(max(watch.after, self._first - 1))
        return True

    def _cut(self, outlet: Outlet) -> None:
        """A mistake about one connection must not end all others, and the server with them."""
        log.exception("a watch of %s is cut off, because it failed", self._renderer.kind.resource.plural)
        for watch in self._watches:
            if watch.outlet is outlet:
                watch.cut()

    def end(self) -> None:
        for watch in self._watches:
            watch.end()


def encoded(event: Event, view: tuple[str, Entry], renderer: Renderer, collection: Collection) -> bytes:
    """The chunk of an event: made once for all watches that see it alike."""
    key = (view[0], renderer.key)
    data = event.encoded.get(key)
    if data is None:
        data = event.encoded[key] = frame(renderer.event(*view, first=False))
        collection.grow(len(data))
    return data


def unconverted(watching: Watching, event: Event) -> bool:
    kind = watching.selection.kind
    return any(entry.form(kind) is None for entry in watching.needed(event))
