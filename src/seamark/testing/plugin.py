"""The pytest fixtures.  Registered as a ``pytest11`` entry point; importing this costs next to nothing."""

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
    """One cluster for the whole session: give each test a namespace of its own."""
    from seamark.testing.cluster import TestCluster

    with TestCluster() as cluster:
        yield cluster
