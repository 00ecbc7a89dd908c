"""The cluster for the DNS benchmark: a private Seamark, filled through its API."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dns.message
import msgspec

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import ENDPOINT_SLICES, NAMESPACES, NODES, PODS, SERVICES

NAMESPACE = "bench"
_AT_ONCE = 32


def service_address(number: int) -> str:
    return str(ipaddress.ip_address("10.96.16.0") + number)


def endpoint_address(number: int, endpoint: int) -> str:
    return str(ipaddress.ip_address("10.40.0.0") + number * 8 + endpoint)


def reversed_address(address: str) -> str:
    return ipaddress.ip_address(address).reverse_pointer


@contextmanager
def running(directory: Path, verb: str = "apiserver", *more: str) -> Iterator[Path]:
    """Run an API server (or all of Seamark); yields its kubeconfig."""
    data = directory / "cluster"
    command = [sys.executable, "-m", "seamark", verb, "--data-dir", str(data), "--api-port", "0", *more]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("DNS "):
                (directory / "dns").write_text(line.split()[1])
            if line.strip() == "ready":
                break
        yield data / "kubeconfig"
    finally:
        process.terminate()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


async def fill(kubeconfig: Path, *, services: int, headless: int, endpoints: int) -> None:
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    slots = asyncio.Semaphore(_AT_ONCE)

    async with RemoteCluster(load(kubeconfig)) as cluster:
        await cluster.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})

        async def make(resource: Any, obj: dict[str, Any]) -> None:
            async with slots:
                await cluster.create(resource, obj, namespace=NAMESPACE)

        async with asyncio.TaskGroup() as tasks:
            for number in range(services):
                spec = {"ports": ports, "clusterIP": service_address(number)}
                tasks.create_task(make(SERVICES, {"metadata": {"name": f"web-{number}"}, "spec": spec}))
            for number in range(headless):
                name = f"db-{number}"
                spec = {"ports": ports, "clusterIP": "None"}
                tasks.create_task(make(SERVICES, {"metadata": {"name": name}, "spec": spec}))
                labels = {"kubernetes.io/service-name": name, "endpointslice.kubernetes.io/managed-by": "bench"}
                places = [
                    {
                        "addresses": [endpoint_address(number, n)],
                        "hostname": f"{name}-{n}",
                        "conditions": {"ready": True},
                    }
                    for n in range(endpoints)
                ]
                obj = {"metadata": {"name": name, "labels": labels}, "addressType": "IPv4", "endpoints": places}
                tasks.create_task(make(ENDPOINT_SLICES, {**obj, "ports": ports}))


class Delays(msgspec.Struct):
    """Seconds from each acknowledged change to the first right answer."""

    of_slices: list[float] = []  # after writing an EndpointSlice: the delay from the API to DNS
    of_pods: list[float] = []  # after writing a Pod's readiness: includes the endpoints controllers


async def staleness(directory: Path, changes: int) -> Delays:
    """Measure the delays; after the first right answer no later one may be wrong."""
    with running(directory, "up", "--nodes", "0", "--dns-port", "0") as kubeconfig:
        host, _, port = (directory / "dns").read_text().rpartition(":")
        async with RemoteCluster(load(kubeconfig)) as cluster:
            await _prepare(cluster)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
                sock.settimeout(10)
                sock.connect((host, int(port)))
                for name in ("pods", "slices"):
                    _until(sock, name, 2)
                found = Delays()
                for number in range(changes):
                    ready = bool(number % 2)
                    found.of_slices.append(await _change(sock, "slices", _write_slice(cluster, ready), ready))
                    found.of_pods.append(await _change(sock, "pods", _report(cluster, 1, ready=ready), ready))
                return found


async def _prepare(cluster: RemoteCluster) -> None:
    await cluster.create(NODES, {"metadata": {"name": "node"}})
    for name, more in (("pods", {"selector": {"app": "db"}}), ("slices", {})):
        spec: dict[str, Any] = {"clusterIP": "None", "ports": [{"port": 80}], **more}
        await cluster.create(SERVICES, {"metadata": {"name": name}, "spec": spec}, namespace="default")
    for number in range(2):
        pod = {"nodeName": "node", "containers": [{"name": "c", "image": "x"}]}
        metadata = {"name": f"db-{number}", "labels": {"app": "db"}}
        await cluster.create(PODS, {"metadata": metadata, "spec": pod}, namespace="default")
        await _report(cluster, number, ready=True)
    labels = {"kubernetes.io/service-name": "slices", "endpointslice.kubernetes.io/managed-by": "bench"}
    metadata = {"name": "slices", "labels": labels}
    obj = {"metadata": metadata, "addressType": "IPv4", "endpoints": _places(ready=True), "ports": []}
    await cluster.create(ENDPOINT_SLICES, obj, namespace="default")


def _places(*, ready: bool) -> list[dict[str, Any]]:
    states = (("10.60.0.1", True), ("10.60.0.2", ready))
    return [{"addresses": [address], "conditions": {"ready": state}} for address, state in states]


async def _write_slice(cluster: RemoteCluster, ready: bool) -> None:
    await cluster.patch(ENDPOINT_SLICES, "slices", {"endpoints": _places(ready=ready)}, namespace="default")


async def _report(cluster: RemoteCluster, number: int, *, ready: bool) -> None:
    address = f"10.50.0.{number + 1}"
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
    await cluster.patch(PODS, f"db-{number}", {"status": status}, namespace="default", subresource="status")


async def _change(sock: socket.socket, name: str, change: Awaitable[None], ready: bool) -> float:
    await change
    acknowledged = time.perf_counter()
    right = _until(sock, name, 2 if ready else 1)
    for _ in range(50):
        assert _count(sock, name) == (2 if ready else 1), "an answer went back to what it was before"
    return max(0.0, right - acknowledged)


_QUERIES = {
    name: dns.message.make_query(f"{name}.default.svc.cluster.local", "A", use_edns=False).to_wire()
    for name in ("pods", "slices")
}


def _count(sock: socket.socket, name: str) -> int:
    sock.send(_QUERIES[name])
    return int.from_bytes(sock.recv(512)[6:8], "big")


def _until(sock: socket.socket, name: str, count: int) -> float:
    """Ask until the answer has ``count`` addresses; returns the time of that answer."""
    deadline = time.perf_counter() + 20
    while _count(sock, name) != count:
        assert time.perf_counter() < deadline, "the change never arrived"
        time.sleep(0.0002)
    return time.perf_counter()
