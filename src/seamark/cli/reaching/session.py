"""What ``port-forward`` and ``forward`` need: a cluster that is followed, connections to its Pods, and an end."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from seamark.cli import event_loop
from seamark.cli.clusters import unanswered
from seamark.cli.failure import Failure

if TYPE_CHECKING:
    from seamark.access.informers import Informers
    from seamark.access.kubeconfig import Connection
    from seamark.access.remote import RemoteCluster
    from seamark.forwarding.dialing import Dialer


class Session(NamedTuple):
    cluster: RemoteCluster
    informers: Informers
    dialer: Dialer


@contextlib.asynccontextmanager
async def following(connection: Connection) -> AsyncIterator[Session]:
    """A cluster whose informers run inside the block."""
    from seamark.access.informers import Informers
    from seamark.access.portforward.tunnels import Tunnels
    from seamark.access.remote import RemoteCluster
    from seamark.forwarding.dialing import Dialer

    async with RemoteCluster(connection, agent="seamark-forward") as cluster:
        tunnels = Tunnels(cluster.transport)
        informers = Informers(cluster)
        running = asyncio.create_task(informers.run(), name="informers")
        try:
            yield Session(cluster, informers, Dialer(tunnels))
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await tunnels.close()


def run(work: Callable[[asyncio.Event], Awaitable[None]], options: argparse.Namespace) -> None:
    """Run ``work`` with an event that a signal to end sets; what the server refuses becomes a ``Failure``."""
    from seamark.errors import ApiError
    from seamark.runtime.supervisor import first_cause

    async def main() -> None:
        ended = event_loop.told_to_end()
        await work(ended)

    try:
        event_loop.run(main())
    except Exception as error:
        cause = first_cause(error)
        if isinstance(cause, ApiError):
            raise unanswered(cause, options) from error
        if isinstance(cause, Failure):
            raise cause from error
        raise


def tell(sentence: str) -> None:
    """Tell a person something, beside the output that programs may read."""
    print(f"seamark: {sentence}", file=sys.stderr, flush=True)
