"""Waiting in an event loop for what a test needs: never for a time, which a busy machine would make too short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from seamark.store.sqlite import SqliteStore


async def turns(count: int = 60) -> None:
    """Let every task run until all of them wait for something."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(true: Callable[[], object]) -> None:
    """Return once something is true that other tasks, threads or the kernel bring about."""
    while not true():
        await asyncio.sleep(0.001)


async def drained(store: SqliteStore) -> None:
    """Let everything happen that waits for the event loop or for the store's threads, not for time to pass.

    The threads take their work in order, so what was asked of them before has been answered.
    """
    for _ in range(5):
        await turns()
        await store._between_groups(lambda connection: None)
        await asyncio.gather(*(reader.run(lambda connection: None) for reader in store._readers))
    await turns()
