"""What every test can use.  Keep it small: fixtures of one package belong into that package's own conftest."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

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


# --- tests that hang -------------------------------------------------------------------------------

HANGING_SECONDS = 240.0  # before pytest's own faulthandler_timeout, which shows threads but no tasks
_STDERR = pytest.StashKey[int]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STDERR] = os.dup(2)  # before pytest begins to capture what tests print


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Print the name of a test that takes very long, and where each of its tasks waits.  It goes on all the same."""

    def tell(number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(RuntimeError):  # the test has no event loop
            waiting.extend(map(_place, asyncio.all_tasks()))
        os.write(item.config.stash[_STDERR], "\n".join(["", *waiting, ""]).encode())

    waiting = [f"{item.nodeid} still runs"]
    before = signal.signal(signal.SIGALRM, tell)
    signal.setitimer(signal.ITIMER_REAL, HANGING_SECONDS)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _place(task: asyncio.Task[Any]) -> str:
    """The lines that lead to where a task waits."""
    found: list[str] = [f"- {task.get_name()}"]
    at: object = task.get_coro()
    while at is not None:
        frame = getattr(at, "cr_frame", None) or getattr(at, "ag_frame", None)
        if frame is not None:
            found.append(f"    {frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        at = getattr(at, "cr_await", None) or getattr(at, "ag_await", None)
    return "\n".join(found)


# --- fixtures --------------------------------------------------------------------------------------


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
