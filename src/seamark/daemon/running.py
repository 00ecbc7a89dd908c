"""Runs a daemon until a signal stops it, and names the part that failed if one did."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seamark.config import Config
from seamark.daemon.composition import Component, Daemon
from seamark.daemon.requirements import StartError
from seamark.errors import ApiError
from seamark.presence import DirectoryError
from seamark.runtime.supervisor import first_cause
from seamark.store.protocol import StoreError

if TYPE_CHECKING:
    from seamark.daemon.workers import Forks

log = logging.getLogger("seamark")


class PartFailed(Exception):
    """An essential part failed, so everything stopped; the message is one line with the part and the error."""


async def run(
    config: Config,
    components: Collection[Component],
    ready: Callable[[Daemon], Awaitable[None]],
    forks: Forks | None = None,
) -> None:
    """Run until SIGTERM, SIGINT or SIGHUP; ``ready`` is called once everything is up.  ``forks`` starts the workers."""
    daemon = Daemon(config, components, forks)
    with _signals(daemon) as is_up:
        try:
            async with daemon.running():
                is_up()
                await ready(daemon)
                await daemon.wait()
        except BaseExceptionGroup as group:
            # Report the first cause, not the exception group around it: the cause is what helps the user.
            cause = first_cause(group)
            if isinstance(cause, StoreError | ApiError | DirectoryError):  # store or disk failed during the start
                raise StartError(str(cause)) from group
            names = getattr(cause, "__notes__", ())  # the name of the part that failed, see `note_name`
            if not names or not isinstance(cause, Exception):
                raise cause from group
            log.error("%s failed", names[0], exc_info=cause)
            raise PartFailed(f"{names[0]} failed: {type(cause).__name__}: {' '.join(str(cause).split())}") from group
        except DirectoryError as error:
            raise StartError(str(error)) from error


@contextmanager
def _signals(daemon: Daemon) -> Iterator[Callable[[], None]]:
    """SIGTERM, SIGINT and SIGHUP stop a running daemon in order, and interrupt one that is still starting.

    SIGHUP comes when the terminal is closed; a daemon that ``nohup`` started stays.

    Yields a function to call once the daemon is running.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    starting = True
    told: list[signal.Signals] = []

    def end(number: signal.Signals) -> None:
        told.append(number)
        daemon.stop()
        if starting:
            task.cancel()

    def is_up() -> None:
        nonlocal starting
        starting = False

    numbers = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end, number)
    try:
        yield is_up
    except asyncio.CancelledError:
        if not told:
            raise
        if told[0] is signal.SIGINT:
            raise KeyboardInterrupt from None
        raise StartError("told to stop before it was ready") from None
