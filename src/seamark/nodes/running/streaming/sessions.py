"""Commands that run in a container, and attachments to a container, as a client has them open."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from uuid import uuid4

from msgspec.structs import replace

from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command
from seamark.nodes.running.life import OpenContainer
from seamark.nodes.running.machine.machine import Machine, Process
from seamark.nodes.running.streaming import descriptors

MOST_UNREAD = 16 << 20  # bytes for a client that is attached and does not read; then it is cut off


class Execution:
    """A command in a container."""

    def __init__(self, machine: Machine, process: Process, ours: dict[int, int], *, terminal: bool) -> None:
        self._machine = machine
        self._process = process
        self._ours = ours  # our ends of its streams; of a terminal, all are the same
        self._terminal = terminal

    @classmethod
    async def start(cls, machine: Machine, container: OpenContainer, command: Command) -> Execution:
        """Raises ``OSError`` if there is no such program."""
        ours, theirs = _terminal() if command.terminal else _pipes(command.streams)
        start = replace(
            container.start,
            process=f"{container.process.name}/{uuid4().hex}",
            arguments=command.words,
            inside=container.process.name,
            root=(),
            terminal=command.terminal,
        )
        try:
            process = await machine.run(start, theirs)
        except BaseException:
            _close(ours.values())
            raise
        finally:
            _close(theirs)
        return cls(machine, process, ours, terminal=command.terminal)

    async def read(self, stream: int) -> bytes:
        if stream not in self._ours or (self._terminal and stream == STDERR):
            return b""
        return await descriptors.read(self._ours[stream])

    async def write(self, data: bytes) -> None:
        if STDIN in self._ours:
            with suppress(OSError):
                await descriptors.write(self._ours[STDIN], data)

    def end_input(self) -> None:
        if self._terminal:
            return  # a terminal has no end; the client types ^D
        if (opened := self._ours.pop(STDIN, None)) is not None:
            os.close(opened)

    def resize(self, width: int, height: int) -> None:
        if self._terminal and STDOUT in self._ours:
            descriptors.resize(self._ours[STDOUT], width, height)

    async def ended(self) -> int:
        return (await asyncio.shield(self._process.ended)).code

    async def close(self) -> None:
        _close(self._ours.values())
        self._ours.clear()
        if not self._process.ended.done():
            await self._machine.signal(self._process.name, signal.SIGKILL)


class Attachment:
    """The streams of a container that runs."""

    def __init__(self, container: OpenContainer, command: Command) -> None:
        self._console = container.console
        self._process = container.process
        self._input = STDIN in command.streams
        self._heard: dict[int, asyncio.Queue[bytes]] = {STDOUT: asyncio.Queue(), STDERR: asyncio.Queue()}
        self._unread = 0
        self._console.listeners.add(self._hear)

    def _hear(self, stream: int, data: bytes) -> None:
        self._unread += len(data)
        if not data or self._unread > MOST_UNREAD:
            self._console.listeners.discard(self._hear)
            for queue in self._heard.values():
                queue.put_nowait(b"")
        else:
            self._heard[stream].put_nowait(data)

    async def read(self, stream: int) -> bytes:
        data = await self._heard[stream].get()
        self._unread -= len(data)
        return data

    async def write(self, data: bytes) -> None:
        if self._input:
            await self._console.write(data)

    def end_input(self) -> None:
        if self._input:
            self._console.end_input()

    def resize(self, width: int, height: int) -> None:
        self._console.resize(width, height)

    async def ended(self) -> int:
        """When the container has ended; how it did is in the Pod's status."""
        await asyncio.shield(self._process.ended)
        return 0

    async def close(self) -> None:
        self._console.listeners.discard(self._hear)
        self.end_input()


def _terminal() -> tuple[dict[int, int], list[int]]:
    ours, theirs = os.openpty()
    os.set_blocking(ours, False)
    return {STDIN: ours, STDOUT: ours}, [theirs] * 3


def _pipes(streams: frozenset[int]) -> tuple[dict[int, int], list[int]]:
    """Our ends by stream, and the three of the process; what the client does not want leads nowhere."""
    ours, theirs = {}, []
    for stream in (STDIN, STDOUT, STDERR):
        if stream not in streams:
            theirs.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
            continue
        reading, writing = os.pipe()
        ours[stream], other = (writing, reading) if stream == STDIN else (reading, writing)
        os.set_blocking(ours[stream], False)
        theirs.append(other)
    return ours, theirs


def _close(files: Iterable[int]) -> None:
    for opened in set(files):
        os.close(opened)
