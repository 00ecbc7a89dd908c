"""A process that writes until it is killed, and says on standard output what has been acknowledged.

Writer ``n`` puts its counter into three keys at once, and a key of its own for each step; a line is
``n counter revision``.
"""

from __future__ import annotations

import asyncio
import os
import sys

from seamark.store.protocol import Write
from seamark.store.sqlite import SqliteStore

WRITERS = 8
PARTS = ("a", "b", "c")
PADDING = b"." * 500


async def write(store: SqliteStore, number: int) -> None:
    (*rows,) = (await store.read(f"/writer/{number}/a", "")).rows
    counter = int(rows[0].value.split(b".", 1)[0]) if rows else 0
    while True:
        counter += 1
        value = str(counter).encode() + PADDING
        revision = await store.commit(
            [Write(f"/writer/{number}/{part}", value) for part in PARTS] + [Write(f"/step/{number}/{counter}", b"")]
        )
        os.write(1, f"{number} {counter} {revision}\n".encode())


async def main() -> None:
    store = SqliteStore(sys.argv[1], history_seconds=0.05)
    await store.open()
    await asyncio.gather(*(write(store, number) for number in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main())
