"""The userspace engine alone, in a process of its own: ``python -m bench._userspace NODE_PORT BACKEND_PORT``."""

from __future__ import annotations

import asyncio
import sys

import msgspec
import uvloop

from seamark.proxy.engine import Update
from seamark.proxy.userspace.engine import UserspaceEngine
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.service import Service
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.rules.routing.table import RouteTable


def table(node_port: int, backend: int) -> RouteTable:
    """A Service with a node port, and one backend on loopback."""
    made = RouteTable(Surroundings(ThisNode("")))
    meta = {"name": "web", "namespace": "default"}
    ports = [{"port": 80, "nodePort": node_port, "protocol": "TCP"}]
    spec = {"type": "NodePort", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": ports}
    made.put_service(msgspec.convert({"metadata": meta, "spec": spec}, Service))
    slice = {
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": backend, "protocol": "TCP"}],
        "endpoints": [{"addresses": ["127.0.0.1"]}],
    }
    made.put_slice(msgspec.convert(slice, EndpointSlice))
    return made


async def serve(node_port: int, backend: int) -> None:
    engine = UserspaceEngine(node_ports_at=("127.0.0.1",), take_addresses=False)
    await engine.start()
    routes = table(node_port, backend)
    await engine.apply(Update({key: routes.routes(key) for key in routes}, routes.surroundings, everything=True))
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
