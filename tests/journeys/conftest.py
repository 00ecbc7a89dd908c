"""What journeys share: a running Seamark, on either store, and kubectl."""

from __future__ import annotations

import shutil
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from seamark_process import Seamark

import etcd_server

Start = Callable[..., Seamark]


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
def server(request: pytest.FixtureRequest, start: Start) -> Seamark:
    """An API server over each kind of store."""
    if request.param == "sqlite":
        return start()
    etcd: etcd_server.EtcdCluster = request.getfixturevalue("etcd")
    return start("--store", f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}")


class Kubectl:
    """The real kubectl against one server."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        self._environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": "/usr/bin:/bin:/usr/local/bin"}
        self.path = shutil.which("kubectl")

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        assert self.path is not None
        return subprocess.run(
            [self.path, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env={**self._environment, **environment},
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """What it prints; a failure is the test's failure."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr or done.stdout}"
        return done.stdout

    def wait(self, *arguments: str) -> str:
        """``kubectl wait`` without its limit of 30 seconds."""
        return self("wait", *arguments, "--timeout=-1s")


@pytest.fixture
def make_kubectl(tmp_path: Path) -> Callable[[Seamark], Kubectl]:
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine")
    return lambda server: Kubectl(server.kubeconfig, tmp_path)
