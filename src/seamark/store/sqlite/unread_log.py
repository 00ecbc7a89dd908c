"""Finds finished commits in a write-ahead log behind the place where SQLite stops reading it.

SQLite stops at the first page that is damaged.  What follows is usually a commit that was never finished, which is no
loss.  But each page's checksum continues that of the page before.  A page that continues the *last* page of a commit
was written after that commit was finished, and everything before it; so one such page behind the stop proves a loss.

This needs no record (see ``acknowledged``), but cannot notice that the end of the log is missing.
The format is described in https://sqlite.org/fileformat2.html#walformat.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from seamark.store.sqlite.outside import log_of

HEADER = struct.Struct(">8I")  # magic, version, page size, number of the checkpoint, two salts, two checksums
FRAME = struct.Struct(">6I")  # page, pages of the file after a commit (or 0), two salts, two checksums
SUMMED = 8  # bytes of a frame's head that its checksum covers, before the page
MAGIC = 0x377F0682  # the lowest bit says in which byte order checksums are calculated
WORD = 0xFFFFFFFF

# In the index that SQLite makes of the log, in this machine's byte order: how many frames it has read, and the salts.
INDEX = struct.Struct("=16xI12x8s")


def commits_behind_the_stop(path: Path) -> int:
    """How many finished commits there are which no reader of the store sees; 0 if none can be proved.

    Call it while a connection has the store open: the index must be that of the log.
    """
    try:
        with log_of(path).open("rb") as log, Path(f"{path}-shm").open("rb") as index:
            read, salts = _read_so_far(index)
            found = list(_finished(log, read, salts))
            read, salts_now = _read_so_far(index)
    except (OSError, struct.error):
        return 0
    # A server may have written meanwhile, and may have begun the log anew.
    return len([number for number in found if number > read]) if salts_now == salts else 0


def _read_so_far(index: BinaryIO) -> tuple[int, bytes]:
    index.seek(0)
    read, salts = INDEX.unpack(index.read(INDEX.size))
    return read, salts


def _finished(log: BinaryIO, read: int, salts: bytes) -> Iterator[int]:
    """The numbers of the last frames of commits behind the stop that the following frame continues."""
    head = log.read(HEADER.size)
    magic, _, size, *_ = HEADER.unpack(head)
    if magic & ~1 != MAGIC or head[16:24] != salts:
        return
    length = FRAME.size + size
    for number in range(read + 1, (os.fstat(log.fileno()).st_size - HEADER.size) // length):
        log.seek(HEADER.size + (number - 1) * length)
        last = log.read(FRAME.size)
        if last[8:16] == salts and FRAME.unpack(last)[1]:
            log.seek(size, os.SEEK_CUR)
            following = log.read(length)
            if following[8:16] == salts and _continues(following, last, ">" if magic & 1 else "<"):
                yield number


def _continues(frame: bytes, before: bytes, order: str) -> bool:
    """Whether a frame's checksum is that of its page, continued from the head of the frame before."""
    *_, first, second = FRAME.unpack(before)
    summed = frame[:SUMMED] + frame[FRAME.size :]
    words = struct.unpack(f"{order}{len(summed) // 4}I", summed)
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & WORD
        second = (second + odd + first) & WORD
    return FRAME.unpack(frame[: FRAME.size])[4:] == (first, second)
