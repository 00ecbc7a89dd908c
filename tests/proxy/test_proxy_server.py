"""``seamark proxy`` in process: health, metrics and health-check ports, as kube-proxy has them."""

import asyncio
import socket
import time
from contextlib import asynccontextmanager

import msgspec
import pytest
from own_cluster import own_cluster

from free_ports import free_node_port, free_port
from seamark.access.informers import Informers
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, SERVICES
from seamark.kinds.values.times import text
from seamark.metrics import Registry
from seamark.proxy.engine import Unsupported
from seamark.proxy.server import ProxyServer
from seamark.proxy.settings import ProxySettings

TAINT = {"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule", "value": "1"}


class Engine:
    rules = 7

    def __init__(self, failures=0):
        self.updates = []
        self.failures = failures

    async def start(self):
        self.updates.clear()

    async def apply(self, update):
        if self.failures:
            self.failures -= 1
            raise OSError("refused half way")
        self.updates.append(update)

    async def close(self):
        self.updates.append("closed")


@asynccontextmanager
async def proxy(own, engine, report=lambda problem: None, **more):
    ports = free_port(), free_port()
    settings = ProxySettings(healthz=f"127.0.0.1:{ports[0]}", metrics=f"127.0.0.1:{ports[1]}", **more)
    informers = Informers(own.api.cluster("proxy"))
    server = ProxyServer(informers, engine, settings, node_name="node-a", metrics=Registry(), report=report)
    started = asyncio.Event()
    running = asyncio.create_task(server.run(started.set))
    await asyncio.wait([running, asyncio.create_task(started.wait())], return_when=asyncio.FIRST_COMPLETED)
    try:
        yield server, *ports
    finally:
        running.cancel()
        await asyncio.wait([running])


async def asked(port, path="/", method="GET"):
    """Status code, headers and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


async def until(check):
    while not await check():
        await asyncio.sleep(0.01)


def node(**spec):
    return {
        "kind": "Node",
        "metadata": {"name": "node-a"},
        "spec": spec,
        "status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}]},
    }


async def test_health_of_the_proxy_itself():
    async with own_cluster() as own:
        made = await own.cluster.create(NODES, node())
        async with proxy(own, Engine()) as (_, healthz, _):
            code, headers, body = await asked(healthz, "/healthz?x=1")
            assert (code, headers["Content-Type"], headers["X-Content-Type-Options"]) == (
                200,
                "application/json",
                "nosniff",
            )
            told = msgspec.json.decode(body)
            assert (told["healthy"], told["nodeEligible"], sorted(told["status"])) == (True, True, ["IPv4", "IPv6"])
            assert (await asked(healthz, "/other"))[::2] == (404, b"404 page not found\n")
            made["spec"]["taints"] = [TAINT]
            await own.cluster.update(NODES, made)

            async def ineligible():
                return (await asked(healthz, "/healthz"))[0] == 503

            await until(ineligible)
            code, _, body = await asked(healthz, "/livez")
            assert code == 200
            assert "nodeEligible" not in msgspec.json.decode(body)


async def test_metrics_have_kube_proxys_names():
    async with own_cluster() as own, proxy(own, Engine()) as (_, _, metrics):
        code, _, body = await asked(metrics, "/metrics")
        assert code == 200
        assert b"kubeproxy_sync_proxy_rules_duration_seconds_count" in body
        assert b"kubeproxy_sync_proxy_rules_nftables_rules 7" in body
        assert b"kubeproxy_sync_proxy_rules_last_timestamp_seconds 1" in body
        assert (await asked(metrics, "/proxyMode"))[2] == b"nftables"
        assert (await asked(metrics, "/healthz"))[2] == b"ok"
        assert (await asked(metrics, "/other"))[0] == 404


async def test_an_engine_that_refuses_is_asked_again_and_counted():
    async with own_cluster() as own:
        engine = Engine(failures=1)
        async with proxy(own, engine) as (server, _, metrics):
            assert engine.updates[0].everything
            assert server.health.healthy
            assert b"nftables_sync_failures_total 1" in (await asked(metrics, "/metrics"))[2]
    assert engine.updates[-1] == "closed"


async def checked_service(own):
    """A Service whose health a load balancer asks for; its port for that."""
    spec = {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}
    spec["healthCheckNodePort"] = free_node_port()
    await own.cluster.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec}, namespace="default")
    return spec["healthCheckNodePort"]


@pytest.mark.parametrize("addresses", [("primary",), ("127.0.0.0/7",)])
async def test_the_health_check_port_of_a_service(addresses):
    async with own_cluster() as own:
        await own.cluster.create(NODES, node())
        port = await checked_service(own)
        engine = Engine()
        async with proxy(own, engine, node_port_addresses=addresses):
            if addresses != ("primary",):  # loopback never serves node ports
                with pytest.raises(ConnectionError):
                    assert (await asked(port))[0]
                return
            code, headers, body = await asked(port)
            assert (code, headers["X-Load-Balancing-Endpoint-Weight"]) == (503, "0")
            slice = {
                "kind": "EndpointSlice",
                "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": 80, "protocol": "TCP"}],
                "endpoints": [{"addresses": ["10.0.0.1"], "nodeName": "node-a"}],
            }
            await own.cluster.create(ENDPOINT_SLICES, slice, namespace="default")

            async def healthy():
                return (await asked(port, method="POST"))[0] == 200

            await until(healthy)
            body = (await asked(port))[2]
            assert msgspec.json.decode(body) == {
                "service": {"namespace": "default", "name": "web"},
                "localEndpoints": 1,
                "serviceProxyHealthy": True,
            }
            await own.cluster.patch(
                SERVICES, "web", {"spec": {"externalTrafficPolicy": "Cluster"}}, namespace="default"
            )

            async def carried_out():
                return not engine.updates[-1].routes["default/web"].health_checks

            await until(carried_out)
            with pytest.raises(ConnectionRefusedError):
                await asked(port)


async def test_a_port_in_use_is_named():
    async with own_cluster() as own, proxy(own, Engine()) as (_, healthz, _):
        settings = ProxySettings(healthz=f"127.0.0.1:{healthz}", metrics="")
        informers = Informers(own.api.cluster("proxy"))
        second = ProxyServer(informers, Engine(), settings, node_name="b", metrics=Registry())
        with pytest.raises(Unsupported, match=f"cannot listen on 127.0.0.1:{healthz}"):
            await second.run()


@pytest.mark.parametrize(
    "wrong",
    [
        {"cluster_cidrs": ("10.0.0.0",)},
        {"node_port_addresses": ("everywhere",)},
        {"masquerade_bit": 32},
        {"sync_period": 0},
        {"healthz": "nonsense"},
    ],
)
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong)) if "healthz" not in wrong else "listen"):
        ProxySettings(**wrong)


async def test_a_health_check_port_in_use_is_told_once_and_tried_again():
    async with own_cluster() as own:
        await own.cluster.create(NODES, node())
        port, told, engine = await checked_service(own), [], Engine()
        with socket.create_server(("127.0.0.1", port)) as other:
            async with proxy(own, engine, told.append, sync_period=0.01):
                tries = len(engine.updates)
                while len(engine.updates) < tries + 3:
                    await asyncio.sleep(0.01)
                (problem,) = told
                assert problem.reason == "FailedToStartServiceHealthcheck"
                assert str(problem) == (
                    f"default/web: health-check port {port} cannot be served over IPv4: Address already in use"
                )
                other.close()

                async def served():
                    return len(told) > 1 and (await asked(port))[0] == 503

                await until(served)
                assert told[1:] == [None]


async def test_the_time_from_a_change_to_its_routes_is_measured():
    name = b"kubeproxy_network_programming_duration_seconds"
    async with own_cluster() as own:
        engine = Engine()
        async with proxy(own, engine) as (_, _, metrics):
            service = {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}
            await own.cluster.create(SERVICES, service, namespace="default")
            for number, cause in enumerate((time.time() + 3600, time.time() - 3600, None)):
                slice = {
                    "metadata": {"name": f"web-{number}", "labels": {"kubernetes.io/service-name": "web"}},
                    "addressType": "IPv4",
                    "endpoints": [{"addresses": [f"10.0.0.{number + 1}"]}],
                    "ports": [{"port": 80}],
                }
                if cause is not None:
                    annotation = {"endpoints.kubernetes.io/last-change-trigger-time": text(cause)}
                    slice["metadata"]["annotations"] = annotation
                before = len(engine.updates)
                await own.cluster.create(ENDPOINT_SLICES, slice, namespace="default")
                while len(engine.updates) == before:
                    await asyncio.sleep(0.01)

            async def measured():
                return name + b"_count 1\n" in (await asked(metrics, "/metrics"))[2]

            await until(measured)
            page = (await asked(metrics, "/metrics"))[2]
            assert name + b'_bucket{le="0.25"} 1\n' in page
            assert name + b'_bucket{le="300"} 1\n' in page
