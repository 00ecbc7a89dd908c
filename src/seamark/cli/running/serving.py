"""Running a daemon in the foreground, for ``up`` and ``apiserver``, and the end of a process that cannot go on."""

from __future__ import annotations

import gc
import ipaddress
import logging
import sys
from collections.abc import Awaitable, Callable, Collection, Iterator
from functools import partial
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure
from seamark.cli.light_imports import uninterrupted
from seamark.cli.running import limits, memory
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.config import Config
    from seamark.daemon import Component, Daemon
    from seamark.daemon.workers import Forker

log = logging.getLogger(__name__)


def serve(config: Config, components: Collection[Component], ready: Callable[[Daemon], Awaitable[None]]) -> None:
    """Run a daemon until it is told to stop."""
    limits.check()
    gc.disable()  # a start makes little garbage, and looking for it took a tenth of its time
    try:
        _serve(config, components, ready)
    finally:
        gc.enable()


def _serve(config: Config, components: Collection[Component], ready: Callable[[Daemon], Awaitable[None]]) -> None:
    from seamark.cli.logging_setup import set_up

    set_up(config.log)

    with uninterrupted():
        import uvloop

        from seamark import daemon
        from seamark.config import ConfigError

    progress = Progress("starting …")

    async def is_up(running: Daemon) -> None:
        progress.done()
        for warning in exposed(config, components):
            log.warning("%s", warning)
        await ready(running)
        memory.settle()

    forker = _forker(config, components) if config.api.workers > 1 else None
    try:
        with progress:
            uvloop.run(daemon.run(config, components, is_up, forker))
    except (daemon.StartError, daemon.PartFailed) as error:
        raise Failure(str(error)) from error
    except ConfigError as error:
        raise Failure(str(error), 2) from error
    finally:
        if forker is not None:
            forker.end()


def _forker(config: Config, components: Collection[Component]) -> Forker:
    """The processes for workers.  Only here is this process still without threads and event loop."""
    import msgspec

    from seamark.cli.running import worker
    from seamark.daemon.workers import Forker, Program

    task = worker.Task(config, frozenset(components))
    again = Program((sys.executable, "-m", worker.__name__), msgspec.json.encode(task))
    return Forker(partial(worker.work, task), again, config.api.workers)


def exposed(config: Config, components: Collection[Component]) -> Iterator[str]:
    """A sentence for every part that other machines can reach."""
    if not loopback(config.api.host):
        yield (
            f"the API server listens on {config.api.host}: other machines can reach it; "
            "a client needs the admin's token, a token of --token-file or a certificate"
        )
    if "dns" in components and not loopback(config.dns_host):
        yield f"DNS listens on {config.dns_host}: other machines can ask it, and it answers all of them"


def loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def given_up(name: str, error: Exception) -> Failure:
    """The line with which a process of one part ends when that part fails; an unexpected error is logged as well.

    Such a process leaves it to its own supervisor, such as systemd or a kubelet, to start it again.
    """
    from seamark.access.kubeconfig_file import KubeconfigError
    from seamark.errors import ApiError
    from seamark.runtime.supervisor import first_cause, reason
    from seamark.runtime.workers import Expected

    cause = first_cause(error)
    if isinstance(cause, Failure):
        return cause
    if isinstance(cause, KubeconfigError | ApiError | Expected):
        return Failure(str(cause))
    log.error("%s failed", name, exc_info=error)
    return Failure(f"{name} failed: {reason(error)}")
