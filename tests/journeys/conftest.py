"""What journeys share: a running Seamark, on either store, and kubectl."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Kubectl
from seamark_process import Seamark, Start

import etcd_server


@pytest.fixture(scope="module", autouse=True)
def own_temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What clients in this process leave goes where pytest cleans up.

    The ``kubernetes`` clients write keys to files and remove them when Python ends, but a worker of pytest-xdist ends
    without that.  Other tests keep the directory that all users can reach.
    """
    before, tempfile.tempdir = tempfile.tempdir, str(tmp_path_factory.mktemp("temporary"))
    yield
    tempfile.tempdir = before


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a Seamark; whatever is still running at the end of the test is stopped."""
    running: list[Seamark] = []

    def begin(*arguments: str, name: str = "data", verb: str = "apiserver") -> Seamark:
        running.append(Seamark(tmp_path / name, *arguments, verb=verb))
        return running[-1]

    yield begin
    for server in running:
        if server.process.poll() is None:
            server.stop()


@pytest.fixture(params=["sqlite", "etcd"])
def store(request: pytest.FixtureRequest) -> list[str]:
    """The arguments that choose each kind of store."""
    if request.param == "sqlite":
        return []
    etcd: etcd_server.EtcdCluster = request.getfixturevalue("etcd")
    return ["--store", f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"]


@pytest.fixture
def server(start: Start, store: list[str]) -> Seamark:
    """An API server over each kind of store."""
    return start(*store)


@pytest.fixture
def make_kubectl(tmp_path: Path) -> Callable[[Seamark], Kubectl]:
    return lambda server: Kubectl(server.kubeconfig, tmp_path)
