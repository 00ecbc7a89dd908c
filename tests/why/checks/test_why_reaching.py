"""What keeps proxies from serving a Service, as a running proxy tells it."""

from __future__ import annotations

import asyncio
import socket

from free_ports import free_node_port
from seamark import testing
from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import ENDPOINT_SLICES, SERVICES
from seamark.why.look import look_at_service


async def test_a_node_port_that_another_program_has_is_told_by_the_proxy_of_up():
    port = free_node_port()
    with socket.create_server(("127.0.0.1", port)):
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
