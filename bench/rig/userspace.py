"""The userspace engine alone, in a process of its own: ``python -m bench.rig.userspace NODE_PORT BACKEND_PORT``.

Each line that it reads has the ports of the backends that take the place of those before.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec
import uvloop

from seamark.proxy.engine import Update
from seamark.proxy.userspace.engine import UserspaceEngine
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.service import Service
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.rules.routing.table import RouteTable


def table(node_port: int, backends: Sequence[int]) -> RouteTable:
    """A Service with a node port, and backends on loopback: a slice for each, because each has a port of its own."""
    made = RouteTable(Surroundings(ThisNode("")))
    meta = {"name": "web", "namespace": "default"}
    ports = [{"port": 80, "nodePort": node_port, "protocol": "TCP"}]
    spec = {"type": "NodePort", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": ports}
    made.put_service(msgspec.convert({"metadata": meta, "spec": spec}, Service))
    labels = {"kubernetes.io/service-name": "web"}
    for backend in backends:
        slice = {
            "metadata": {"name": f"web-{backend}", "namespace": "default", "labels": labels},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": backend, "protocol": "TCP"}],
            "endpoints": [{"addresses": ["127.0.0.1"]}],
        }
        made.put_slice(msgspec.convert(slice, EndpointSlice))
    return made


async def serve(node_port: int, backend: int) -> None:
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    engine = UserspaceEngine(node_ports_at=("127.0.0.1",), take_addresses=False)
    await engine.start()
    backends = [backend]
    while backends:
        routes = table(node_port, backends)
        await engine.apply(Update({key: routes.routes(key) for key in routes}, routes.surroundings, everything=True))
        print("ready", flush=True)
        backends = [int(each) for each in (await lines.readline()).split()]
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2])))
