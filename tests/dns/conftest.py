"""A DNS server on free ports over a cluster in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import uvloop
from scripted_upstream import FOREVER
from watched_cluster import WatchedCluster, namespace

from seamark.dns.config import DnsConfig, ForwardConfig
from seamark.dns.server import DnsServer

Serve = Callable[..., AbstractAsyncContextManager[DnsServer]]


@pytest.hookimpl(optionalhook=True)
def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Everything on both loops: their transports differ in small ways."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}


@pytest.fixture
def cluster() -> WatchedCluster:
    made = WatchedCluster()
    made.put(namespace("default"))
    return made


@pytest.fixture
def serve(cluster: WatchedCluster) -> Serve:
    """``async with serve(zone=…, forward=…) as server``: listening on loopback, synced."""

    @asynccontextmanager
    async def running(*, sync: bool = True, **config: Any) -> AsyncIterator[DnsServer]:
        # A connection may be idle for as long as a busy machine wants, and the machine's own resolvers are not asked.
        fixed = {"listen": ("127.0.0.1:0",), "tcp_idle_seconds": FOREVER, "forward": ForwardConfig(routes=())}
        config = {**fixed, **config}
        server = DnsServer(DnsConfig(**config), cluster)
        async with server.running():
            if sync:
                await server.synced()
            yield server

    return running
