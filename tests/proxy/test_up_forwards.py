"""``seamark up`` serves node ports on loopback: in this process, over real sockets."""

import asyncio
import socket
import sys
from contextlib import asynccontextmanager

import pytest

from free_ports import free_node_port, free_port, reachable_address
from seamark.access.informers import Informers
from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.kinds.resource import ENDPOINT_SLICES, EVENTS, SERVICES
from seamark.proxy.feed import RouteFeed
from seamark.proxy.userspace.engine import UserspaceEngine
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from turns import until


@asynccontextmanager
async def up(directory, **settings):
    said = {"data_dir": str(directory), "ephemeral": True, "dns_port": 0, "api": {"port": 0}, "nodes": {"count": 1}}
    daemon = Daemon(settled({**said, **settings}), EVERYTHING)
    async with daemon.running():
        yield daemon, daemon.api.cluster("apiserver")


@asynccontextmanager
async def backend(name, host):
    async def serve(reader, writer):
        while await reader.readline():
            writer.write(f"{name}\n".encode())
        writer.close()

    server = await asyncio.start_server(serve, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def ask(port, host="127.0.0.1"):
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"?\n")
    answer = await reader.readline()
    writer.close()
    return answer.decode().strip()


async def until_it_answers(port, answer, host="127.0.0.1"):
    while True:
        try:
            if await ask(port, host) == answer:
                return
        except OSError:
            pass
        await asyncio.sleep(0.01)


async def expose(cluster, node_port, address, backend, name="web", type="NodePort", port=80):
    ports = [{"port": port, "nodePort": node_port}]
    service = {"metadata": {"name": name}, "spec": {"type": type, "ports": ports}}
    slice = {
        "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": backend, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address]}],
    }
    await cluster.create(SERVICES, service, namespace="default")
    await cluster.create(ENDPOINT_SLICES, slice, namespace="default")


async def test_a_node_port_reaches_a_process_of_this_machine(tmp_path):
    host, at = reachable_address(), free_node_port()
    async with up(tmp_path) as (_, cluster), backend("here", host) as port:
        await expose(cluster, at, host, port)
        await until_it_answers(at, "here")


@pytest.mark.skipif(sys.platform != "linux", reason="not all of 127.0.0.0/8 is this machine here")
async def test_a_load_balancer_has_an_address_that_answers(tmp_path):
    host, at = reachable_address(), free_port()
    async with up(tmp_path) as (_, cluster), backend("here", host) as port:
        await expose(cluster, free_node_port(), host, port, type="LoadBalancer", port=at)
        while not (ingress := (await cluster.get(SERVICES, "web", namespace="default"))["status"]["loadBalancer"]):
            await asyncio.sleep(0.01)
        await until_it_answers(at, "here", ingress["ingress"][0]["ip"])


async def test_simulated_pods_refuse_at_once(tmp_path):
    host, at, after = reachable_address(), free_node_port(), free_node_port()
    async with up(tmp_path) as (_, cluster), backend("here", host) as port:
        await expose(cluster, at, "10.244.1.5", 8080)
        await expose(cluster, after, host, port, "after")
        await until_it_answers(after, "here")  # so the one before has been carried out, too
        with pytest.raises(ConnectionRefusedError):
            await ask(at)


async def test_a_port_of_another_program_is_told_everywhere_and_fails_nothing(tmp_path):
    host, at = reachable_address(), free_node_port()
    other = socket.create_server(("127.0.0.1", at))
    async with up(tmp_path) as (daemon, cluster), backend("here", host) as port:
        await expose(cluster, at, host, port)
        await until(lambda: daemon.presence("").not_served)
        problem = f"nodePort 127.0.0.1:{at}/TCP cannot be served: Address already in use"
        assert daemon.presence("").not_served == (f"default/web: {problem}",)
        assert b'"not_served":["default/web' in (tmp_path / "running.json").read_bytes()
        assert "seamark_proxy_places_not_served 1" in daemon.metrics.text()
        assert set(daemon.supervisor.problems().values()) == {None}
        while not (events := [e for e in (await cluster.list(EVENTS)).items if e["reason"] == "FailedToListen"]):
            await asyncio.sleep(0.01)
        (event,) = events
        service = await cluster.get(SERVICES, "web", namespace="default")
        assert event["involvedObject"]["uid"] == service["metadata"]["uid"]
        assert event["message"] == f"{problem}; it is tried again"
        other.close()
        await until_it_answers(at, "here")
        assert b'"not_served":[]' in (tmp_path / "running.json").read_bytes()


async def test_it_can_be_turned_off(tmp_path):
    async with up(tmp_path, userspace={"enabled": False}) as (daemon, _):
        assert "proxy" not in daemon.supervisor.parts
        assert daemon.presence("").node_ports == ()


async def test_traffic_goes_on_while_the_api_server_is_away(tmp_path):
    """A proxy of its own, over HTTPS, keeps serving what it knows, connections and new ones."""
    host, at = reachable_address(), free_node_port()
    engine = UserspaceEngine(node_ports_at=("127.0.0.1",), take_addresses=False)
    tasks = []
    try:
        async with (
            backend("here", host) as port,
            up(tmp_path, userspace={"enabled": False}) as (daemon, cluster),
            RemoteCluster(load(daemon.kubeconfig_path), agent="test") as remote,
        ):
            await expose(cluster, at, host, port)
            informers = Informers(remote)
            feed = RouteFeed(informers, engine, Surroundings(ThisNode("")))
            tasks = [asyncio.create_task(informers.run()), asyncio.create_task(feed.run())]
            await until_it_answers(at, "here")
            await daemon.api.close()
            await until(lambda: not informers.connected)
            assert await ask(at) == "here"
            for task in reversed(tasks):
                task.cancel()
                await asyncio.wait([task])
    finally:
        for task in tasks:
            task.cancel()
