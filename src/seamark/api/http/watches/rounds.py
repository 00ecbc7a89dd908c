"""Large events for many watches: they take turns, so that no other client waits until the last one has its copy."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from seamark.runtime.turns import Turns

if TYPE_CHECKING:
    from seamark.api.http.watches.watch import Watch

log = logging.getLogger(__name__)

# Bytes that are written as events come, in one turn of the event loop.  To encrypt and copy a megabyte takes several
# milliseconds.
AT_ONCE = 16 << 20


class Rounds:
    """How much is written at once, and the watches that are behind only because they wait for their turn."""

    def __init__(self) -> None:
        self._turns = Turns()
        self._written = 0  # in this turn of the event loop

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more can be written in this turn; if so, they are counted."""
        if self._written + size > AT_ONCE:
            return False
        if not self._written:
            asyncio.get_running_loop().call_soon(self._begin_anew)
        self._written += size
        return True

    def _begin_anew(self) -> None:
        self._written = 0

    def add(self, watch: Watch) -> None:
        """Let a watch go on when it is its turn."""
        self._turns.add(partial(_go_on, watch))


def _go_on(watch: Watch) -> None:
    try:
        watch.go_on()
    except Exception:
        log.exception("a watch of %s is cut off, because it failed", watch.renderer.kind.resource.plural)
        watch.cut()
