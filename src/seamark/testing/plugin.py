"""The pytest fixtures.

pytest imports this module in every run (entry point ``pytest11``), so the fixtures import the cluster when first used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from seamark.testing.cluster import TestCluster


@pytest.fixture
def seamark() -> Iterator[TestCluster]:
    """A private, empty cluster for this test: API server, controllers and DNS."""
    from seamark.testing.cluster import TestCluster

    with TestCluster() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def seamark_session() -> Iterator[TestCluster]:
    """One cluster for the whole session: let each test use its own namespace."""
    from seamark.testing.cluster import TestCluster

    with TestCluster() as cluster:
        yield cluster
