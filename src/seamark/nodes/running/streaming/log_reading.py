"""Reads the logs of containers as ``kubectl logs`` asks for them."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from seamark.access.pod_streams import LogOptions
from seamark.nodes.running.streaming.consoles import Console
from seamark.nodes.running.streaming.container_logs import ROTATED

_CHUNK = 256 << 10


async def read(folder: Path, options: LogOptions, console: Console | None) -> AsyncIterator[bytes]:
    """What is in the log of a run; while it is followed, also what is written until ``console`` ends."""
    path = folder / f"{options.run}.log"
    form = Form(options)
    wake, ended = asyncio.Event(), asyncio.Event()

    def hear(_: int, data: bytes) -> None:
        wake.set()
        if not data:
            ended.set()

    followed = console if options.follow else None
    if followed is not None:
        followed.listeners.add(hear)
    readings = [_Reading(file, start) for file, start in _parts(path, options.tail)]
    try:
        while readings:
            reading = readings[0]
            last = followed is None or ended.is_set()
            while lines := reading.lines():
                if shown := form.shown(lines):
                    yield shown
                if form.full:
                    return
            if len(readings) > 1:
                readings.pop(0).close()
            elif not reading.replaced(path):
                if last:
                    return
                await wake.wait()
                wake.clear()
    finally:
        if followed is not None:
            followed.listeners.discard(hear)
        for reading in readings:
            reading.close()


def _parts(path: Path, tail: int | None) -> Iterator[tuple[Path, int]]:
    """The files of a log, oldest first, each with the byte to begin at."""
    older = [path.with_name(f"{path.name}.{number}") for number in range(1, ROTATED + 1)]
    files = [each for each in (path, *older) if each.exists()]
    if tail is None:
        return iter([(each, 0) for each in reversed(files)])
    found: list[tuple[Path, int]] = []
    for each in files:
        start, missing = _last_lines(each, tail)
        found.append((each, start))
        tail = missing
        if not missing:
            break
    return reversed(found)


def _last_lines(path: Path, count: int) -> tuple[int, int]:
    """Where the last lines of a file begin, and how many more there would have to be."""
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        if not count:
            return at, 0
        wanted = count + 1  # the newline before the first of them
        while at:
            size = min(_CHUNK, at)
            at -= size
            file.seek(at)
            block = file.read(size)
            here = block.count(b"\n")
            if here >= wanted:
                cut = len(block)
                for _ in range(wanted):
                    cut = block.rindex(b"\n", 0, cut)
                return at + cut + 1, 0
            wanted -= here
    return 0, max(0, wanted - 1)


class _Reading:
    """One file that may still grow, and may be moved aside for a new one."""

    def __init__(self, path: Path, start: int) -> None:
        self._file = path.open("rb")
        self._file.seek(start)
        self._rest = b""

    def lines(self) -> list[bytes]:
        """The next whole lines, if there are some."""
        while data := self._file.read(_CHUNK):
            *found, self._rest = (self._rest + data).split(b"\n")
            if found:
                return found
        return []

    def replaced(self, path: Path) -> bool:
        """Whether the log goes on in a new file, which is read from now on."""
        try:
            new = path.open("rb")
        except FileNotFoundError:
            return False
        if os.path.sameopenfile(new.fileno(), self._file.fileno()):
            new.close()
            return False
        self._file.close()
        self._file = new
        return True

    def close(self) -> None:
        self._file.close()


class Form:
    """Turns lines of the file into what was asked for."""

    def __init__(self, options: LogOptions) -> None:
        self._stream = options.stream.lower().encode()
        self._timestamps = options.timestamps
        self._since = b"" if options.since is None else _moment(options.since)
        self._left = options.limit
        self._begins = True  # whether the next part begins a line

    @property
    def full(self) -> bool:
        """Whether as many bytes were shown as were asked for."""
        return self._left == 0

    def shown(self, lines: list[bytes]) -> bytes:
        pieces = []
        for line in lines:
            when, stream, tag, text = (*line.split(b" ", 3), b"", b"", b"")[:4]
            if (self._stream not in (b"all", stream)) or when < self._since:
                continue
            if self._timestamps and self._begins:
                pieces.append(when + b" ")
            pieces.append(text)
            self._begins = tag == b"F"
            if self._begins:
                pieces.append(b"\n")
        shown = b"".join(pieces)
        if self._left is not None:
            shown = shown[: self._left]
            self._left -= len(shown)
        return shown


def _moment(seconds: float) -> bytes:
    """As the lines of a log begin; in this form, later moments are larger."""
    whole, rest = divmod(round(seconds * 1e9), 1_000_000_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{rest:09d}Z".encode()
