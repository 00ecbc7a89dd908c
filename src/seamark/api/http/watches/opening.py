"""Opens watches, counts them, and ends them all when the server stops."""

from __future__ import annotations

from functools import partial

from seamark import errors
from seamark.api.http.render import Renderer
from seamark.api.http.watches.alike import Alike
from seamark.api.http.watches.rounds import Rounds
from seamark.api.http.watches.watch import Watch
from seamark.api.http.wire.messages import Streaming
from seamark.api.http.wire.stream import Stream
from seamark.api.http.wire.unread import Unread
from seamark.api.state.read import Reader
from seamark.api.state.watch import Watching
from seamark.remembering import LONGEST

# Selectors of open watches that are longer than what is remembered for all may have so many characters together.  Read,
# a selector takes about ten times as many bytes.
LONG_SELECTOR = LONGEST
LONG_SELECTORS = 8 * 1024 * 1024


class Watches:
    """All open watches; ``unread`` bounds the memory of those with clients that do not read."""

    def __init__(self, reader: Reader, unread: Unread) -> None:
        self._reader = reader
        self.unread = unread
        self.open: set[Watch] = set()
        self._alike: dict[object, Alike] = {}
        self._rounds = Rounds()
        self._long_selectors = 0  # characters

    def start(self, watching: Watching, renderer: Renderer) -> Streaming:
        """The answer to a watch request; events flow once its head is sent.

        Raises TooManyRequests if the selectors of watches would take too much memory.
        """
        if self._long_selectors + _long_selectors(watching) > LONG_SELECTORS:
            raise errors.TooManyRequests("Too many watches with long selectors, please try again later.", retry_after=1)

        def begin(stream: Stream) -> None:
            watch = Watch(watching, renderer, stream, self)
            self.open.add(watch)
            self._long_selectors += _long_selectors(watching)
            watch.begin(fresh=self._reader.wait)

        return Streaming(begin, renderer.representation.streamed_as)

    def join(self, watch: Watch) -> Alike:
        """Offer all further events to the watch, until it leaves those that it is now one of."""
        watching, selection, renderer = watch.watching, watch.watching.selection, watch.renderer
        options = watching.options
        key = (watch.collection, selection.namespace, selection.name, options.labels, options.fields, renderer.key)
        alike = self._alike.get(key)
        if alike is None:
            alike = self._alike[key] = Alike(watching, renderer, self._rounds, partial(self._alike.pop, key))
        alike.add(watch)
        return alike

    def ended(self, watch: Watch) -> None:
        self.unread.moves(watch)
        if watch in self.open:
            self.open.remove(watch)
            self._long_selectors -= _long_selectors(watch.watching)

    def end_all(self) -> None:
        for watch in list(self.open):
            watch.end()


def _long_selectors(watching: Watching) -> int:
    """How many characters the selectors of a watch have, if those are long."""
    sizes = (len(watching.options.labels), len(watching.options.fields))
    return sum(size for size in sizes if size > LONG_SELECTOR)
