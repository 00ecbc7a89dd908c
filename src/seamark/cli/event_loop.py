"""The event loop of commands that run on, with connections to an API server, and how they are told to end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run ``work`` in an event loop of uvloop."""
    import uvloop

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(tell)
        await work

    uvloop.run(main())


def tell(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log what failed in the loop itself.

    When a command ends, uvloop fails at TLS connections that it has closed itself while the server was still writing.
    """
    closed = isinstance(context.get("exception"), RuntimeError) and "the handler is closed" in str(context["exception"])
    if not closed:
        loop.default_exception_handler(context)


def told_to_end() -> asyncio.Event:
    """Set by SIGTERM and by Ctrl-C."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    return told
