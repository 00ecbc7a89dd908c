"""The log of a container: what it writes, line by line, in the format of container runtimes, in files that are rotated.

    2026-11-17T07:00:00.123456789Z stdout F the whole line
    2026-11-17T07:00:00.123456789Z stderr P the first part of a long line

``0.log`` is the log of the first run, ``1.log`` of the second; when one grows too large it is moved to ``1.log.1`` and
so on.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LARGEST = 10 << 20  # bytes of a file, before it is rotated
ROTATED = 3  # files that are kept beside the current one
LONGEST_LINE = 16 << 10  # bytes of a line, before it is written in parts
_CHUNK = 64 << 10


class LogFile:
    """The log of one run of a container."""

    def __init__(self, path: Path, *, largest: int = LARGEST) -> None:
        self.path = path
        self._largest = largest
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = os.fstat(self._file).st_size

    def write(self, stream: str, lines: list[tuple[bytes, bool]]) -> None:
        """Lines of ``stdout`` or ``stderr``, each whole or only a part of one."""
        now = time.time_ns()
        seconds, rest = divmod(now, 1_000_000_000)
        head = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{rest:09d}Z {stream} ".encode()
        content = b"".join(head + (b"F " if whole else b"P ") + line + b"\n" for line, whole in lines)
        if self._size and self._size + len(content) > self._largest:
            self._rotate()
        with suppress(OSError):  # a full disk loses log lines, and nothing else
            self._size += os.write(self._file, content)

    def _rotate(self) -> None:
        os.close(self._file)
        for number in range(ROTATED - 1, 0, -1):
            with suppress(FileNotFoundError):
                os.replace(f"{self.path}.{number}", f"{self.path}.{number + 1}")
        os.replace(self.path, f"{self.path}.1")
        self._file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size = 0

    def end(self, *, lines: int = 80, largest: int = 2048) -> str:
        """The last lines, without their times."""
        with open(self.path, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - (largest << 4)))
            found = [line.split(b" ", 3) for line in file.read().splitlines()[-lines:]]
        text = b"".join(each[3] + (b"\n" if each[2] == b"F" else b"") for each in found if len(each) == 4)
        return text[-largest:].decode(errors="replace")

    def close(self) -> None:
        os.close(self._file)


class Catching:
    """Reads one stream of a container and writes it into the log, until every process that holds it is gone."""

    def __init__(self, reading: int, stream: str, log: LogFile, tell: Callable[[bytes], None] | None) -> None:
        """``tell`` is given everything as it comes."""
        os.set_blocking(reading, False)
        self._reading, self._stream, self._log, self._tell = reading, stream, log, tell
        self._rest = b""
        self._loop = asyncio.get_running_loop()
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(reading, self._read)

    def _read(self) -> None:
        try:
            data = os.read(self._reading, _CHUNK)
        except BlockingIOError:
            return
        except OSError:  # the other end of a terminal is gone
            data = b""
        if not data:
            self.close()
            return
        if self._tell is not None:
            self._tell(data)
        *lines, rest = (self._rest + data).split(b"\n")
        found = [part for line in lines for part in _parts(line, whole=True)]
        if len(rest) >= LONGEST_LINE:
            found += _parts(rest, whole=False)
            rest = b""
        self._rest = rest
        if found:
            self._log.write(self._stream, found)

    def close(self) -> None:
        if self.done.done():
            return
        if self._rest:
            self._log.write(self._stream, [(self._rest, False)])
        self._loop.remove_reader(self._reading)
        os.close(self._reading)
        self.done.set_result(None)


def _parts(line: bytes, *, whole: bool) -> list[tuple[bytes, bool]]:
    if len(line) <= LONGEST_LINE:
        return [(line, whole)]
    cut = [line[at : at + LONGEST_LINE] for at in range(0, len(line), LONGEST_LINE)]
    return [(part, False) for part in cut[:-1]] + [(cut[-1], whole)]
