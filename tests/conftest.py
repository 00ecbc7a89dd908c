"""What every test can use.  Keep it small: fixtures of one package belong into that package's own conftest."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import hypothesis
import pytest

import etcd_server

# No time limits in tests: a slow machine is not a bug, and generating examples on one is slow too.
hypothesis.settings.register_profile(
    "seamark",
    deadline=None,
    derandomize="CI" in os.environ,  # as hypothesis' own profile for CI: a change is judged by the same examples
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile("seamark")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Soak tests run only when asked for by name, as `make soak` does."""
    if "soak" in config.option.markexpr:
        return
    soaking = [item for item in items if item.get_closest_marker("soak")]
    if soaking:
        items[:] = [item for item in items if item not in soaking]
        config.hook.pytest_deselected(items=soaking)


@pytest.fixture(autouse=True)
def log_as_it_was() -> Iterator[None]:
    """A test that runs a command sets up that command's log: the tests after it must still see every warning."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for added in [each for each in root.handlers if each not in handlers]:
        root.removeHandler(added)


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[etcd_server.EtcdCluster]:
    """A real etcd of one member, shared by the tests of a session: each takes a prefix of its own."""
    if etcd_server.binary() is None:
        pytest.skip("no etcd binary runs here")
    cluster = etcd_server.EtcdCluster(tmp_path_factory.mktemp("etcd"))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
