"""A cluster of our own, for the controllers that only such a cluster needs."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from own_cluster import OwnCluster, own_cluster


@pytest_asyncio.fixture
async def own() -> AsyncIterator[OwnCluster]:
    async with own_cluster() as cluster:
        yield cluster
