"""Waiting for tasks by counting turns of the event loop, which a busy machine does not shorten as it does a sleep."""

from __future__ import annotations

import asyncio

from seamark.store.sqlite import SqliteStore


async def turns(count: int = 60) -> None:
    """Let every task run until all of them wait for something."""
    for _ in range(count):
        await asyncio.sleep(0)


async def drained(store: SqliteStore) -> None:
    """Let everything happen that waits for the event loop or for the store's threads, not for time to pass.

    The threads take their work in order, so what was asked of them before has been answered.
    """
    for _ in range(5):
        await turns()
        await store._between_groups(lambda connection: None)
        await asyncio.gather(*(reader.run(lambda connection: None) for reader in store._readers))
    await turns()
