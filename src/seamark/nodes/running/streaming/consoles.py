"""The standard streams of one run of a container: what it writes goes into its log and to those who are attached."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress

from seamark.nodes.running.spec import Container
from seamark.nodes.running.streaming import descriptors
from seamark.nodes.running.streaming.container_logs import Catching, LogFile

STDOUT, STDERR = 1, 2
Hear = Callable[[int, bytes], None]  # is given a stream's number and what was written to it


class Console:
    """``files`` are for the process; they are closed here once it has them."""

    def __init__(self, container: Container, log: LogFile) -> None:
        self._log = log
        self.terminal = container.tty
        self.once = container.stdin_once  # its input ends with the first who was attached to it
        self.listeners: set[Hear] = set()
        self._input: int | None = None
        if container.tty:
            ours, theirs = os.openpty()
            self.files = [theirs, theirs, theirs]
            self._input = os.dup(ours)
            self._catching = [Catching(ours, "stdout", log, self._told(STDOUT))]
        else:
            out, err = os.pipe(), os.pipe()
            if container.stdin:
                reading, self._input = os.pipe()
            else:
                reading = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            self.files = [reading, out[1], err[1]]
            self._catching = [
                Catching(out[0], "stdout", log, self._told(STDOUT)),
                Catching(err[0], "stderr", log, self._told(STDERR)),
            ]
        if self._input is not None:
            os.set_blocking(self._input, False)
        self.takes_input = container.stdin

    def _told(self, stream: int) -> Callable[[bytes], None]:
        def tell(data: bytes) -> None:
            for hear in tuple(self.listeners):
                hear(stream, data)

        return tell

    def handed_over(self) -> None:
        """The process has its files, or will never have them."""
        for opened in set(self.files):
            os.close(opened)
        self.files = []

    async def write(self, data: bytes) -> None:
        """Write to the input, if there is one and the container still has it."""
        if self._input is not None and self.takes_input:
            with suppress(OSError):
                await descriptors.write(self._input, data)

    def end_input(self) -> None:
        """The end of the input, if it ends with the first who was attached."""
        if self.once and not self.terminal:
            self._close_input()

    def resize(self, width: int, height: int) -> None:
        if self.terminal and self._input is not None:
            descriptors.resize(self._input, width, height)

    async def finish(self) -> None:
        """Until all that was written is in the log."""
        await asyncio.gather(*(each.done for each in self._catching))
        self._log.close()
        self._close_input()
        for hear in tuple(self.listeners):
            hear(STDOUT, b"")

    def _close_input(self) -> None:
        opened, self._input = self._input, None
        if opened is not None:
            os.close(opened)
