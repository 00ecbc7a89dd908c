"""What every test can use.  Keep it small: fixtures of one package belong into that package's own conftest."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import hypothesis
import pytest

import etcd_server

# No time limits in tests: a slow machine is not a bug, and generating examples on one is slow too.
hypothesis.settings.register_profile(
    "seamark",
    max_examples=50,  # of each property, in each run: others each time; half as many as usual, as there are 160 of them
    deadline=None,
    derandomize="CI" in os.environ,  # as hypothesis' own profile for CI: a change is judged by the same examples
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    print_blob=True,
)
hypothesis.settings.load_profile("seamark")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Look for no garbage in what is collected: that took a sixth of the time, and more whenever a test looks."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Soak tests run only when asked for by name, as `make soak` does."""
    soaking = [] if "soak" in config.option.markexpr else [item for item in items if item.get_closest_marker("soak")]
    if soaking:
        items[:] = [item for item in items if not item.get_closest_marker("soak")]
        config.hook.pytest_deselected(items=soaking)
    if "PYTEST_XDIST_WORKER" in os.environ:
        places = _places({item.path for item in items})
        items.sort(key=lambda item: places[item.path])


# --- the order for several workers -----------------------------------------------------------------

# Seconds that files take, where that is long.  They need not be right: a file that is missing here begins later.
SECONDS = {
    "test_conformance_proxy.py": 190,
    "test_conformance_api.py": 140,
    "test_conformance_userspace.py": 110,
    "test_store_outage.py": 95,
    "test_conformance_controllers.py": 90,
    "test_ansible.py": 80,
    "test_cli_everyday.py": 80,
    "test_kubectl_manifests.py": 70,
    "test_testing_page.py": 60,
    "test_running_journey.py": 55,
    "test_why.py": 50,
    "test_up_life.py": 50,
    "test_controllers_process.py": 45,
    "test_discovery_restarts.py": 45,
    "test_kubectl_everyday.py": 40,
    "test_workloads.py": 40,
    "test_why_evidence.py": 30,
    "test_kubectl.py": 30,
    "test_server_life.py": 30,
    "test_conformance_dns.py": 30,
    "test_why_catalogue.py": 25,
    "test_etcd.py": 25,
    "test_outages.py": 40,
    "test_kubectl_identity.py": 15,
    "test_cli_demo.py": 15,
    "test_every_view.py": 15,
    "test_planted_bugs.py": 10,
    "test_backup.py": 10,
    "test_daemon.py": 10,
    "test_why_names.py": 10,
}
WAITING = {"journeys", "robustness"}  # most of their time they wait for other processes; all other tests compute


def _places(files: set[Path]) -> dict[Path, tuple[float, Path]]:
    """What to sort files by: workers take them one by one, in that order (``--dist loadfile``).

    The longest begin first, so that none is left alone at the end.  Files that wait are spread evenly among those that
    compute, so that there is always work for all cores.
    """
    places: dict[Path, tuple[float, Path]] = {}
    for waits, usual in ((True, 5), (False, 1.5)):
        seconds = {file: SECONDS.get(file.name, usual) for file in files if WAITING.isdisjoint(file.parts) != waits}
        before = 0.0
        for file in sorted(seconds, key=lambda file: (-seconds[file], file)):
            places[file] = before / sum(seconds.values()), file
            before += seconds[file]
    return places


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
    is_long = item.get_closest_marker("soak") is not None
    signal.setitimer(signal.ITIMER_REAL, 0 if is_long else HANGING_SECONDS)
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
