"""One event loop in a daemon thread, shared by all clusters of a process, so that any code can use them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="seamark", daemon=True).start()
    return loop


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Run it beside the clusters; another event loop awaits the result by ``asyncio.wrap_future``."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run it beside the clusters and wait for its result."""
    return submit(work).result()
