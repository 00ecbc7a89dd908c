"""How a command that runs on is told to end."""

from __future__ import annotations

import asyncio
import signal


def told_to_end() -> asyncio.Event:
    """Set by SIGTERM and by Ctrl-C."""
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    return told
