"""What keeps proxies from serving a Service, as a running proxy tells it."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest

from seamark import testing
from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import ENDPOINT_SLICES, SERVICES
from seamark.why.look import look_at_service


@contextlib.contextmanager
def another_program():
    """Listens on a port that a Service may have as its node port."""
    with socket.socket() as program:
        for port in range(32767, 30000, -1):
            with contextlib.suppress(OSError):
                program.bind(("127.0.0.1", port))
                program.listen()
                yield port
                return
        pytest.skip("no port for Services is free on this machine")


async def test_a_node_port_that_another_program_has_is_told_by_the_proxy_of_up():
    with another_program() as port:
        behind = testing.Cluster().start()
        try:
            async with RemoteCluster(load(behind.kubeconfig, environ={})) as cluster:
                await cluster.create(
                    SERVICES,
                    {
                        "metadata": {"name": "web"},
                        "spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": port}]},
                    },
                    namespace="default",
                )
                await cluster.create(
                    ENDPOINT_SLICES,
                    {
                        "metadata": {"name": "web", "labels": {"kubernetes.io/service-name": "web"}},
                        "addressType": "IPv4",
                        "endpoints": [{"addresses": ["10.9.9.9"]}],
                        "ports": [{"port": 80, "protocol": "TCP"}],
                    },
                    namespace="default",
                )
                while (report := await look_at_service(cluster, ("default", "web"))).healthy:
                    await asyncio.sleep(0.02)
                assert report.cause.code.value == "NodePortNotServed", report.findings
                assert f"127.0.0.1:{port}/TCP cannot be served: Address already in use" in report.cause.cause
        finally:
            await asyncio.to_thread(behind.stop)
