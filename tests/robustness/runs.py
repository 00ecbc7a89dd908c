"""One run: clients and watchers at a site while something may fail, then the history."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from checks import violations
from clients import NAMESPACE, RESOURCES, Client, Site, Watcher, settle, stop
from history import History, Recorder
from shrink import report

from seamark.kinds.resource import CONFIGMAPS

CLIENTS = 5
# Seeds of the short runs.  A seed decides what each client tries and which faults come; the machine decides how fast.
SEEDS = (1, 2, 3)

# What may fail during a run: a coroutine that is started with it, and cancelled when the clients have finished.
Faults = Callable[[Recorder, random.Random], Coroutine[Any, Any, None]]


async def run(
    site: Site, seed: int, *, operations: int = 150, gives_up: float = 0.05, faults: Faults | None = None
) -> History:
    """The history of ``CLIENTS`` clients, each with so many operations, and two watchers of each resource."""
    recorder, chance = Recorder(), random.Random(seed)

    def child() -> random.Random:
        return random.Random(chance.random())

    watchers = [
        Watcher(f"w{number}-{resource[:-1]}", resource, site, recorder, child())
        for resource in RESOURCES
        for number in range(2)
    ]
    clients = [Client(f"c{number}", site, recorder, child(), gives_up=gives_up) for number in range(CLIENTS)]
    recorder.beginning = int((await site.cluster().list(CONFIGMAPS, namespace=NAMESPACE)).version)
    watching = [asyncio.create_task(watcher.run()) for watcher in watchers]
    failing = asyncio.create_task(faults(recorder, child())) if faults is not None else None
    try:
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(client.run(operations))
        if failing is not None:
            await stop(failing)
        await settle(site, recorder, watchers)
    finally:
        for task in watching if failing is None else [*watching, failing]:
            await stop(task)
    return recorder.history()


def check(history: History, seed: object) -> None:
    """Fail with the seed and the shortest history if any rule is broken."""
    found = violations(history)
    assert not found, report(history, found, seed=seed)
