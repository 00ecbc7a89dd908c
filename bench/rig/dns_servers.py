"""Starts the DNS servers under test, and measures one round of ``dnsperf``."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dns.query
import dns.zone
import msgspec

ZONES = ("cluster.local", "in-addr.arpa")
_TICK = os.sysconf("SC_CLK_TCK")


class Measured(msgspec.Struct):
    """Queries per second, and microseconds of CPU time per query."""

    rate: float
    user: float
    system: float

    @property
    def cpu(self) -> float:
        return self.user + self.system


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def measure(port: int, pids: list[int], asked: Path, *, seconds: float) -> Measured:
    before = [_times(pid) for pid in pids]
    command = ["dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", str(asked), "-l", str(seconds), "-c", "20"]
    text = subprocess.run([*command, "-q", "100"], capture_output=True, text=True, check=True).stdout
    after = [_times(pid) for pid in pids]
    completed = int(re.search(r"Queries completed:\s+(\d+)", text)[1])  # type: ignore[index]  # dnsperf always says it
    rate = float(re.search(r"Queries per second:\s+([\d.]+)", text)[1])  # type: ignore[index]  # likewise
    user = sum(a[0] - b[0] for a, b in zip(after, before, strict=True))
    system = sum(a[1] - b[1] for a, b in zip(after, before, strict=True))
    return Measured(rate, user / _TICK / completed * 1e6, system / _TICK / completed * 1e6)


def _times(pid: int) -> tuple[int, int]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]), int(fields[12])


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += _family(int(child))
    return found


def _wait_for(port: int, process: subprocess.Popen[str]) -> None:
    """Wait until a DNS server answers at this address."""
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0\7cluster\5local\0\0\6\0\1"
    deadline = time.monotonic() + 30
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(0.1)
        sock.connect(("127.0.0.1", port))
        while time.monotonic() < deadline and process.poll() is None:
            try:
                sock.send(query)
                sock.recv(512)
            except OSError:
                time.sleep(0.05)
                continue
            return
    raise RuntimeError(f"no answer from {process.args}")


@contextmanager
def _running(command: list[str], port: int) -> Iterator[tuple[int, list[int]]]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True)
    try:
        _wait_for(port, process)
        yield port, _family(process.pid)
    finally:
        process.terminate()
        process.wait()


def seamark_dns(kubeconfig: Path, workers: int, *more: str) -> object:
    port = free_port()
    command = [sys.executable, "-m", "seamark", "dns", "--kubeconfig", str(kubeconfig), "--forward", "none"]
    return _running([*command, "--listen", f"127.0.0.1:{port}", "--workers", str(workers), *more], port)


def transferred_zones(kubeconfig: Path, directory: Path) -> dict[str, Path]:
    """Zone files with exactly the records that Seamark serves, for the peer."""
    found = {}
    with seamark_dns(kubeconfig, 1, "--transfer-to", "127.0.0.1") as (port, _):  # type: ignore[attr-defined]  # a context manager
        for zone in ZONES:
            messages = dns.query.xfr("127.0.0.1", zone, port=port)
            found[zone] = directory / f"{zone}.zone"
            lines = []
            for message in messages:
                for rrset in message.answer:
                    owner = rrset.name.derelativize(dns.name.from_text(zone))
                    lines += [
                        f"{owner} {rrset.ttl} IN {dns.rdatatype.to_text(rrset.rdtype)} "
                        + item.to_text(origin=dns.name.from_text(zone), relativize=False)
                        for item in rrset
                    ]
            lines.insert(1, f"{zone}. 5 IN NS ns.dns.{zone}.")
            lines.insert(2, f"ns.dns.{zone}. 5 IN A 127.0.0.1")
            found[zone].write_text("\n".join(lines[:-1]) + "\n")
    return found


def nsd(zones: dict[str, Path], directory: Path, processes: int) -> object:
    port = free_port()
    config = directory / f"nsd-{port}.conf"
    listed = "".join(f"zone:\n  name: {zone}\n  zonefile: {path}\n" for zone, path in zones.items())
    config.write_text(
        f"server:\n  ip-address: 127.0.0.1\n  port: {port}\n  server-count: {processes}\n  reuseport: yes\n"
        f'  username: ""\n  zonesdir: {directory}\n  pidfile: {directory}/nsd-{port}.pid\n'
        f"  xfrdfile: {directory}/xfrd-{port}\n  zonelistfile: {directory}/zones-{port}\n"
        f"  cookie-secret-file: {directory}/cookies-{port}\n"
        f"  xfrdir: {directory}\n  rrl-ratelimit: 0\nremote-control:\n  control-enable: no\n{listed}"
    )
    return _running(["nsd", "-d", "-c", str(config)], port)


def knot(zones: dict[str, Path], directory: Path, processes: int) -> object:
    port = free_port()
    config = directory / f"knot-{port}.conf"
    listed = "".join(f"  - domain: {zone}\n    file: {path}\n" for zone, path in zones.items())
    config.write_text(
        f"server:\n  listen: 127.0.0.1@{port}\n  udp-workers: {processes}\n  tcp-workers: 1\n"
        f"  rundir: {directory}/knot-{port}\ndatabase:\n  storage: {directory}/knot-{port}\n"
        f"log:\n  - target: stderr\n    any: error\nzone:\n{listed}"
    )
    (directory / f"knot-{port}").mkdir()
    return _running(["knotd", "-c", str(config)], port)
