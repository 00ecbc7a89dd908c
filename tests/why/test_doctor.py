"""Whether the machinery is well: what is seen is told, and what is not seen is unknown."""

from __future__ import annotations

import asyncio
from typing import Any

import catalogue_cases
import msgspec
import pytest
from catalogue_clusters import NOW, build, clock

from seamark.cli.asking import doctor as command
from seamark.dns.resolve import Told
from seamark.kinds.resource import ENDPOINT_SLICES, SERVICES
from seamark.kinds.values import times
from seamark.rules.objects.node import Node
from seamark.why import doctor
from seamark.why.doctor import State
from seamark.why.views import EndpointSlice


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster in memory makes no reviews; the real server's time is asked by the tests of the verbs."""

    async def server_time(_: object) -> float:
        return NOW

    monkeypatch.setattr(command, "_server_time", server_time)


@pytest.mark.parametrize(
    ("server", "state", "words"),
    [
        (None, State.UNKNOWN, "does not tell"),
        (100.0, State.WELL, "agrees"),
        (99.0, State.WELL, "agrees"),
        (160.0, State.WRONG, "59 s ahead of"),
        (40.0, State.WRONG, "60 s behind"),
    ],
)
def test_clocks(server: float | None, state: State, words: str) -> None:
    check = doctor.clock(server, 100.4, 101.0)
    assert check.state is state
    assert words in check.told


def lease(name: str, holder: str, ago: float) -> dict[str, Any]:
    spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": times.text(NOW - ago)}
    return {"metadata": {"name": name}, "spec": spec}


def test_leaders_renew_their_leases() -> None:
    found = [
        lease("kube-controller-manager", "a", 3),
        lease("seamark-discovery", "b", 600),
        lease("cloud-controller-manager", "", 0),
        lease("left-over", "c", 9999),
    ]
    checks = list(doctor.leaders(found, NOW))
    assert [each.state for each in checks] == [State.WELL, State.WRONG, State.WRONG]
    assert "renewed its Lease 3 s ago" in checks[0].told
    assert "not renewed its Lease for 10m" in checks[1].told
    assert "has no leader" in checks[2].told


def written(after: float) -> EndpointSlice:
    meta = {
        "name": "web-1",
        "namespace": "shop",
        "annotations": {doctor.TRIGGER_TIME_ANNOTATION: times.text(NOW)},
        "managedFields": [{"time": times.text(NOW + after)}],
    }
    return msgspec.convert({"metadata": meta, "addressType": "IPv4", "endpoints": []}, EndpointSlice)


def test_lag() -> None:
    assert doctor.lag([]).state is State.UNKNOWN
    assert doctor.lag([written(2)]).state is State.WELL
    late = doctor.lag([written(2), written(60)])
    assert late.state is State.WRONG
    assert "shop/web-1 took 60 s" in late.told


def node(name: str, ready: str) -> Node:
    status = {"conditions": [{"type": "Ready", "status": ready}], "addresses": [{"type": "InternalIP", "address": ""}]}
    return msgspec.convert({"metadata": {"name": name}, "status": status}, Node)


async def test_nodes_and_their_proxies() -> None:
    assert doctor.nodes([node("a", "True")]).state is State.WELL
    assert doctor.nodes([node("a", "True"), node("b", "False")]).told == "1 of 2 nodes not ready: b"
    assert doctor.proxies({}).state is State.UNKNOWN
    assert doctor.proxies({"a": 200, "b": None}).told == "1 of 2 asked, all up to date"
    assert doctor.proxies({"a": 200, "b": 503}).told == "1 of 2 proxies behind or failing: b"


async def test_what_a_proxy_answers() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await command._health("127.0.0.1", port) == 503
    server.close()
    await server.wait_closed()
    assert await command._health("127.0.0.1", port) is None


def test_names() -> None:
    assert doctor.names("", (), "it does not answer").state is State.UNKNOWN
    assert doctor.names("s", ()).state is State.UNKNOWN
    assert doctor.names("s", [("web.", "10.0.0.1", "10.0.0.1")]).state is State.WELL
    wrong = doctor.names("s", [("web.", "NXDOMAIN", "10.0.0.1"), ("db.", "10.0.0.2", "10.0.0.3")])
    assert wrong.told == "s answers NXDOMAIN for web., which should be 10.0.0.1 (2 of 2 names differ)"


async def test_a_cluster_is_examined() -> None:
    cluster = await build(catalogue_cases.load(catalogue_cases.HERE / "healthy-plain.yaml"))
    checks = {each.about: each for each in await command.examine(cluster, "", "cluster.local", clock=clock())}
    assert checks["slices"].state is State.WELL
    assert checks["nodes"].state is State.WELL
    assert "there is no Service kube-dns" in checks["DNS"].told
    orphan = {
        "metadata": {"name": "lost", "labels": {"kubernetes.io/service-name": "gone"}},
        "addressType": "IPv4",
        "endpoints": [],
    }
    await cluster.create(ENDPOINT_SLICES, orphan, namespace="shop")
    checks = {each.about: each for each in await command.examine(cluster, "", "cluster.local", clock=clock())}
    assert checks["slices"].told == "1 orphaned: EndpointSlice shop/lost"
    assert "1 of " in command._text(list(checks.values())).splitlines()[0]


async def test_dns_is_compared_with_the_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = await build(catalogue_cases.load(catalogue_cases.HERE / "healthy-plain.yaml"))
    answers = [Told("NXDOMAIN", (), "")]

    async def ask(*_: object, **__: object) -> Told:
        return answers[0]

    monkeypatch.setattr("seamark.dns.resolve.ask_server", ask)

    async def told(dns: str) -> doctor.Check:
        return (await command.examine(cluster, dns, "cluster.local", clock=clock()))[-1]

    assert (await told("10.0.0.10")).state is State.WRONG
    dns_service = {"metadata": {"name": "kube-dns"}, "spec": {"clusterIP": "10.0.0.10", "ports": [{"port": 53}]}}
    await cluster.create(SERVICES, dns_service, namespace="kube-system")
    assert (await told("")).state is State.UNKNOWN, "an address of the cluster may lead elsewhere from here"
    answers[0] = Told("SERVFAIL", (), "no answer")
    assert (await told("10.0.0.10")).state is State.UNKNOWN
