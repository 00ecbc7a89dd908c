"""A read-only connection with its own thread.  In SQLite's write-ahead mode reading never blocks the writer."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from seamark.store.sqlite.file import translate
from seamark.store.sqlite.worker import Worker

T = TypeVar("T")


class Reader:
    """Runs reads on one connection, one after the other."""

    def __init__(self, connection: sqlite3.Connection, path: Path, number: int) -> None:
        self._connection = connection
        self._path = path
        self._worker = Worker(f"store-reader-{number}")

    @property
    def outstanding(self) -> int:
        return self._worker.outstanding

    async def run(self, read: Callable[[sqlite3.Connection], T]) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def done(result: T, error: Exception | None) -> None:
            if answer.cancelled():
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(error)

        self._worker.do(partial(read, self._connection), done)
        try:
            return await answer
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    async def finish(self) -> None:
        await asyncio.to_thread(self._worker.stop)
