"""Numbers in memory that a process shares with others.

Each number is one aligned machine word with one writer, so a reader sees either the old or the new number.
"""

from __future__ import annotations

import mmap
import os

WORD_BYTES = 8
NO_FILE = -1  # memory of this process, and of those that it forks


class Board:
    """``revision`` is the store's, written by the process that has it open; ``numbers`` are free for others to use.

    The revision is written before any process is told of it, by an answer or by a change.  So a process that reads it
    here knows that no write acknowledged before has a higher one, without asking.
    """

    def __init__(self, numbers: int = 0, file: int = NO_FILE) -> None:
        """A process that is given the same ``file`` has the same board; the file can be closed afterwards."""
        size = (1 + numbers) * WORD_BYTES
        if file != NO_FILE:
            os.ftruncate(file, size)
        self._words = memoryview(mmap.mmap(file, size)).cast("Q")
        self.numbers = self._words[1:]

    @property
    def revision(self) -> int:
        return self._words[0]

    def advance(self, revision: int) -> int:
        """Write down a revision of the store, unless a later one is known."""
        if revision > self._words[0]:
            self._words[0] = revision
        return revision
