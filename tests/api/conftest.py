"""A server for the tests of the API's spine, its authority, and one that it trusts when it calls others."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from called_servers import Trusted
from served import Served, served

from seamark.api.certificates import Authority


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    async with served() as server:
        yield server


@pytest.fixture(scope="session")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Trusted:
    return Trusted(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of servers on loopback; a test that changes it makes its own."""
    made = Authority(tmp_path_factory.mktemp("pki"))
    made.prepare(["127.0.0.1"])
    return made


@pytest.fixture
def trust(authority: Authority) -> ssl.SSLContext:
    """What makes a client believe such a server."""
    return ssl.create_default_context(cafile=str(authority.ca_path))
