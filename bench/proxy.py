"""The userspace engine beside HAProxy in TCP mode, in one run: both forward to the same backends on loopback.

Connections per second (one request each), requests on connections that stay open, throughput in one direction, the
memory of 1,000 open connections, and the requests that a rolling replacement of all backends under load loses.
Compare the proxy's CPU time per connection, request and gigabyte: rates depend on other load on the machine.  Both
proxies have one thread.
Run: ``python -m bench proxy [--seconds 3] [--rounds 3]``; needs Debian's haproxy and wrk.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from bench.rig.dns_servers import free_port

_TICK = os.sysconf("SC_CLK_TCK")
_PIECE = bytes(1 << 20)
OPEN = 1000

_COMMON = (
    "global\n  nbthread 1\n  maxconn 8000\ndefaults\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n"
)
_PROXY = _COMMON + "listen proxy\n  mode tcp\n  bind 127.0.0.1:{at}\n  server one 127.0.0.1:{to}\n"
_BACKEND = _COMMON + (
    "listen backend\n  mode http\n  bind 127.0.0.1:{at}\n"
    "  http-request return status 200 content-type text/plain string hello\n"
)


class Proxy(msgspec.Struct):
    """A proxy under test: where it listens, and its process."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def lead_to(self, ports: Sequence[int]) -> None:
        """Have the engine forward to these backends from now on."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{' '.join(map(str, ports))}\n".encode())
        self.process.stdin.flush()

    @property
    def cpu(self) -> float:
        """Seconds of CPU time so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    @property
    def memory(self) -> int:
        """Resident kilobytes."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.pid}/status").read_text())
        return int(found[1]) if found else 0


class Cost(msgspec.Struct):
    rate: float  # per second
    cpu: float  # seconds of the proxy's CPU time each


@contextmanager
def running(command: list[str], port: int) -> Iterator[Proxy]:
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port)):
                break
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with {process.returncode}")
            time.sleep(0.05)
        yield Proxy(port, process)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def haproxy(text: str, directory: Path, port: int, to: int = 0) -> Iterator[Proxy]:
    config = directory / f"haproxy-{port}.cfg"
    config.write_text(text.format(at=port, to=to))
    with running(["haproxy", "-db", "-f", str(config)], port) as proxy:
        yield proxy


@contextmanager
def proxies(directory: Path, backend: int) -> Iterator[dict[str, Proxy]]:
    """HAProxy and the userspace engine, both in front of the same backend."""
    theirs, ours = free_port(), free_port()
    engine = [sys.executable, "-m", "bench.rig.userspace", str(ours), str(backend)]
    with haproxy(_PROXY, directory, theirs, backend) as peer, running(engine, ours) as engine_process:
        yield {"haproxy": peer, "seamark": engine_process}


# --- loads -------------------------------------------------------------------------------------------


def requests(proxy: Proxy, seconds: float, *, kept: bool) -> Cost:
    """HTTP requests by ``wrk``: on connections that are kept open, or each on a connection of its own."""
    before = proxy.cpu
    said = subprocess.run(_load(proxy, seconds, kept=kept), capture_output=True, text=True, check=True).stdout
    count = _requests(said)
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])  # type: ignore[index]  # likewise
    if failed := re.search(r"Socket errors: connect (\d+), read \d+, write (\d+), timeout (\d+)", said):
        print(f"  errors: {failed[0]}")
    return Cost(rate, (proxy.cpu - before) / count)


def _load(proxy: Proxy, seconds: float, *, kept: bool) -> list[str]:
    more = [] if kept else ["-H", "Connection: close"]
    return ["wrk", "-t1", "-c50", f"-d{seconds:g}s", *more, f"http://127.0.0.1:{proxy.port}/"]


def _requests(said: str) -> int:
    return int(re.search(r"(\d+) requests in", said)[1])  # type: ignore[index]  # wrk always says it


def throughput(proxy: Proxy, seconds: float) -> Cost:
    """Gigabytes that one client sends on one connection."""
    before, began, pieces = proxy.cpu, time.monotonic(), 0
    with socket.create_connection(("127.0.0.1", proxy.port)) as sock:
        while time.monotonic() < began + seconds:
            sock.sendall(_PIECE)
            pieces += 1
        sock.shutdown(socket.SHUT_WR)
        sock.recv(1)  # the sink has read all
    gigabytes = pieces * len(_PIECE) / 1e9
    return Cost(gigabytes / (time.monotonic() - began), (proxy.cpu - before) / gigabytes)


def memory_per_connection(proxy: Proxy) -> float:
    """Kilobytes of each of many open connections that have carried something."""
    before = proxy.memory
    with contextlib.ExitStack() as stack:
        for _ in range(OPEN):
            sock = stack.enter_context(socket.create_connection(("127.0.0.1", proxy.port)))
            sock.sendall(b"x" * 1000)
        time.sleep(1)
        return (proxy.memory - before) / OPEN


def rolling(directory: Path, seconds: float, *, kept: bool) -> tuple[int, int]:
    """Requests while backends are replaced one by one, as a rollout does it; and how many of them got no answer.

    A backend that leaves accepts nothing more and finishes what it has begun.  With connections that are kept open it
    stays until they end: which of them it would close between two requests is not the proxy's choice.
    """
    with contextlib.ExitStack() as stack:

        def another() -> Proxy:
            return stack.enter_context(haproxy(_BACKEND, directory, free_port()))

        backends, port = [another() for _ in range(3)], free_port()
        command = [sys.executable, "-m", "bench.rig.userspace", str(port), str(backends[0].port)]
        engine = stack.enter_context(running(command, port))
        engine.lead_to([each.port for each in backends])
        load = subprocess.Popen(_load(engine, seconds, kept=kept), stdout=subprocess.PIPE, text=True)
        while load.poll() is None:
            backends.append(another())
            engine.lead_to([each.port for each in backends[1:]])
            time.sleep(0.1)  # the engine is told beside us; kubelets wait for endpoints in the same way
            leaving = backends.pop(0)
            if not kept:
                leaving.process.send_signal(signal.SIGUSR1)
        said = load.stdout.read() if load.stdout else ""
    errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", said)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    lost = sum(map(int, errors.groups())) if errors else 0
    return _requests(said), lost + (int(refused[1]) if refused else 0)


@contextmanager
def sink() -> Iterator[int]:
    """A backend that reads everything, and answers with one byte at the end."""

    def read(sock: socket.socket) -> None:
        buffer = bytearray(1 << 20)
        with sock, contextlib.suppress(OSError):
            while sock.recv_into(buffer):
                pass
            sock.sendall(b"k")

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=read, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=1024) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]


# --- the report --------------------------------------------------------------------------------------


def compare(what: str, unit: str, scale: float, found: dict[str, list[Cost]]) -> None:
    middle = {name: sorted(costs, key=lambda cost: cost.cpu)[len(costs) // 2] for name, costs in found.items()}
    base = middle["haproxy"]
    for name, cost in middle.items():
        ratio = (
            "" if cost is base else f"   {cost.cpu / base.cpu:.2f} × the CPU, {cost.rate / base.rate:.2f} × the rate"
        )
        print(f"  {what:<22} {name:<8} {cost.rate:9.1f}/s {cost.cpu * scale:8.1f} {unit}{ratio}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0, help="of load per round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if shutil.which("haproxy") is None or shutil.which("wrk") is None:
        print("  skipped: needs haproxy and wrk (Debian packages of these names)")
        return 0
    rounds, seconds = range(options.rounds), options.seconds
    with tempfile.TemporaryDirectory() as name:
        directory, port = Path(name), free_port()
        with haproxy(_BACKEND, directory, port), proxies(directory, port) as tested:
            for what, kept in (("connections", False), ("requests, kept open", True)):
                found: dict[str, list[Cost]] = {each: [] for each in tested}
                for _ in rounds:
                    for each, proxy in tested.items():
                        found[each].append(requests(proxy, seconds, kept=kept))
                compare(what, "µs CPU", 1e6, found)
        for what, kept in (("connections", False), ("requests, kept open", True)):
            count, lost = rolling(directory, seconds, kept=kept)
            print(f"  {'rolling replacement':<22} {'seamark':<8} {count} {what}, lost: {lost}", flush=True)
        with sink() as port, proxies(directory, port) as tested:
            found = {each: [] for each in tested}
            for _ in rounds:
                for each, proxy in tested.items():
                    found[each].append(throughput(proxy, seconds))
            compare("gigabytes", "ms CPU", 1e3, found)
            for each, proxy in tested.items():
                print(f"  {'memory per connection':<22} {each:<8} {memory_per_connection(proxy):9.1f} kB", flush=True)
    return 0
