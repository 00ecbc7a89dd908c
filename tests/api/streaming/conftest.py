"""Pods that are made up, and a server in them."""

from __future__ import annotations

import asyncio

import pytest
from fake_pods import FakePods, pod, put


@pytest.fixture
async def pods(api):
    api.api.connecting.pods = made = FakePods()
    await put(api, pod("web", "main"))
    await put(api, pod("two", "a", "b"))
    await put(api, pod("done", "main", phase="Succeeded"))
    return made


@pytest.fixture
async def echoing(pods):
    """A server in the Pod, which answers in capitals once its input has ended."""

    async def handle(reader, writer):
        writer.write((await reader.read(-1)).upper())
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    pods.server = server.sockets[0].getsockname()
    yield
    server.close()
