"""A cluster whose Pods can be reached: a real API server, and a server in front of it that forwards ports of Pods.

The programs "in" the Pods are servers in the test's own process that answer with the name of their Pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import ssl
from unittest import mock

from portforward_server import PortForwardServer

import seamark.testing.cluster as testing
from seamark.access.credentials import Fixed, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.remote import RemoteCluster
from seamark.forwarding import loopback
from seamark.kinds.resource import ENDPOINT_SLICES, PODS, SERVICES

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
contexts: [{{name: c, context: {{cluster: c, user: ""}}}}]
current-context: c
"""


class ForwardedCluster:
    def __init__(self, front):
        self.front = front
        self.connection = Connection(front.url, Fixed(Identity()))
        self.cluster = RemoteCluster(self.connection)
        self._servers = []

    async def program(self, name, host="127.0.0.1"):
        """A program that answers its name and what it reads, once its client has sent everything; its address."""

        async def answer(reader, writer):
            writer.write(name.encode() + b":" + await reader.read(-1))
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(answer, host, 0)
        self._servers.append(server)
        return server.sockets[0].getsockname()[:2]

    async def pod(self, name, labels=None, *, ports=(8080,), phase="Running", ready=True):
        """A Pod that runs, with a program at each of its ports."""
        listed = [{"name": f"port-{number}", "containerPort": number} for number in ports]
        pod = {
            "metadata": {"name": name, "labels": labels or {}},
            "spec": {"containers": [{"name": "c", "image": "i", "ports": listed}]},
        }
        made = await self.cluster.create(PODS, pod, namespace="default")
        made["status"] = {
            "phase": phase,
            "podIP": "10.1.0.1",
            "podIPs": [{"ip": "10.1.0.1"}],
            "conditions": [{"type": "Ready", "status": str(ready)}],
        }
        await self.cluster.update(PODS, made, namespace="default", subresource="status")
        self.front.pods["default", name] = {number: await self.program(name) for number in ports}
        return made

    async def remove_pod(self, name):
        del self.front.pods["default", name]
        for tunnel in self.front.tunnels:
            if tunnel.pod == name:
                await tunnel.websocket.close()
        await self.cluster.delete(PODS, name, namespace="default", grace_seconds=0)

    async def service(self, name, ports, **spec):
        await self.cluster.create(
            SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports, **spec}}, namespace="default"
        )

    async def endpoints(self, service, endpoints, ports):
        """The only EndpointSlice of a Service; ``endpoints`` maps addresses to names of Pods, or to None."""
        made = {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {"name": service, "labels": {"kubernetes.io/service-name": service}},
            "addressType": "IPv4",
            "endpoints": [
                {
                    "addresses": [address],
                    "conditions": {"ready": True},
                    **({"targetRef": {"kind": "Pod", "namespace": "default", "name": pod}} if pod else {}),
                }
                for address, pod in endpoints.items()
            ],
            "ports": ports,
        }
        await self.cluster.patch(
            ENDPOINT_SLICES, service, made, namespace="default", type="apply", field_manager="test", force=True
        )

    async def close(self):
        await self.cluster.close()
        for server in self._servers:
            server.close()


@contextlib.contextmanager
def addresses_of_its_own():
    """Services have other addresses in each test: those of one name would have the same one in two tests at a time."""
    real, shift = loopback._address, secrets.randbelow(2**32)
    with mock.patch.object(loopback, "_address", lambda number: real(number + shift)):
        yield


@contextlib.asynccontextmanager
async def forwarded_cluster(*, refusal=0):
    behind = testing.Cluster(parts=()).start()
    try:
        tls = ssl.create_default_context(cafile=str(behind.ca))
        way = (behind.url, {"Authorization": f"Bearer {behind.token}"}, tls)
        with addresses_of_its_own():
            async with PortForwardServer(way, refusal=refusal) as front:
                made = ForwardedCluster(front)
                try:
                    yield made
                finally:
                    await made.close()
    finally:
        # In a thread, because it waits until its connections are closed, and their other ends are in this loop.
        await asyncio.to_thread(behind.stop)


async def ask(host, port, text=b"hello"):
    """What a program answers; empty if the connection was closed."""
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(text)
        writer.write_eof()
        return await reader.read(-1)
    except ConnectionError:
        return b""
    finally:
        writer.close()
