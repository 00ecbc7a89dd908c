"""What every cluster has from its first moment."""

import asyncio
from functools import partial

from served import NETWORK

from seamark import errors
from seamark.api import bootstrap
from seamark.api.bootstrap import (
    advertised_address,
    api_service,
    dns_service,
    make_namespaces,
    make_own_pod,
    make_own_service,
    make_ranges,
    warn_of_other_ranges,
)
from seamark.api.settings import ServiceNetwork
from seamark.cli.keeping.manifests import manifest_of
from seamark.kinds.resource import PODS


async def test_namespaces_and_ranges_are_made_once(api):
    cluster = api.api.cluster("test")
    before = await api.store.revision()
    await make_namespaces(cluster)
    await make_ranges(cluster, NETWORK)
    assert await api.store.revision() == before
    assert (await api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes"))["spec"]["cidrs"] == list(
        NETWORK.ranges
    )


async def test_the_default_range_gets_a_second_family_but_no_other_range(api, caplog):
    cluster, path = api.api.cluster("test"), "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"
    await api.delete(path)
    await make_ranges(cluster, ServiceNetwork(ranges=("10.96.0.0/16",)))
    await make_ranges(cluster, NETWORK)
    assert (await api.get(path))["spec"]["cidrs"] == list(NETWORK.ranges)
    await warn_of_other_ranges(cluster, NETWORK)
    assert not caplog.messages
    other = ServiceNetwork(ranges=("10.200.0.0/16",))
    await make_ranges(cluster, other)
    await warn_of_other_ranges(cluster, other)
    assert caplog.messages == [
        "Services get addresses of 10.96.0.0/16,fd00:96::/112, as the ServiceCIDR kubernetes says, "
        "not of 10.200.0.0/16; delete it to change that"
    ]
    assert (await api.get(path))["spec"]["cidrs"] == list(NETWORK.ranges)


async def test_the_servers_own_service_is_kept_right(api):
    cluster = api.api.cluster("test")
    await make_own_service(cluster, api_service(NETWORK, "192.0.2.1", 6443))
    base = "/api/v1/namespaces/default"
    service = await api.get(f"{base}/services/kubernetes")
    assert service["spec"]["clusterIP"] == "10.96.0.1"
    before = await api.store.revision()
    await make_own_service(cluster, api_service(NETWORK, "192.0.2.1", 6443))
    assert await api.store.revision() == before
    await api.merge(f"{base}/endpoints/kubernetes", {"subsets": None})
    await api.delete("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    await make_own_service(cluster, api_service(NETWORK, "192.0.2.1", 6443))
    endpoints = await api.get(f"{base}/endpoints/kubernetes")
    assert endpoints["subsets"][0]["addresses"] == [{"ip": "192.0.2.1"}]
    slices = await api.get("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes")
    assert slices["endpoints"][0]["addresses"] == ["192.0.2.1"]
    assert slices["metadata"]["labels"] == {"kubernetes.io/service-name": "kubernetes"}
    await make_own_service(cluster, api_service(NETWORK, "192.0.2.9", 6444))  # moved
    assert (await api.get(f"{base}/endpoints/kubernetes"))["subsets"][0]["ports"][0]["port"] == 6444


async def test_what_is_deleted_is_made_again(api, monkeypatch, caplog):
    cluster, rounds = api.api.cluster("test"), asyncio.Queue()
    monkeypatch.setattr(bootstrap, "REPAIR_SECONDS", 0)

    async def refused():
        raise errors.Forbidden("no")

    makes = {"what is refused": refused, "namespaces": partial(make_namespaces, cluster)}
    keeping = asyncio.create_task(bootstrap.keep(makes, lambda: rounds.put_nowait(None)))
    await rounds.get()
    before = await api.get("/api/v1/namespaces/kube-node-lease")
    going = await api.delete("/api/v1/namespaces/kube-node-lease")
    await api.put("/api/v1/namespaces/kube-node-lease/finalize", {**going, "spec": {}})
    while (await api.ask("GET", "/api/v1/namespaces/kube-node-lease")).status != 200:
        await rounds.get()
    assert (await api.get("/api/v1/namespaces/kube-node-lease"))["metadata"]["uid"] != before["metadata"]["uid"]
    for _ in range(3):
        await rounds.get()
    keeping.cancel()
    assert caplog.messages == ["what is refused could not be kept right: no"]  # told once


async def test_without_an_address_there_is_only_the_service(api):
    await make_own_service(api.api.cluster("test"), api_service(ServiceNetwork(), "", 6443))
    assert (await api.ask("GET", "/api/v1/namespaces/default/endpoints/kubernetes")).status == 404


def test_an_address_others_can_use(monkeypatch):
    assert advertised_address("192.0.2.5") == "192.0.2.5"
    assert not advertised_address("127.0.0.1").startswith("127.")

    class Unreachable:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def connect(self, _):
            raise OSError("no route")

    monkeypatch.setattr(bootstrap.socket, "socket", Unreachable)
    assert advertised_address("0.0.0.0") == ""


async def test_cluster_dns_has_its_service(api):
    await make_own_service(api.api.cluster("test"), dns_service(NETWORK, "192.0.2.1", 1053))
    service = await api.get("/api/v1/namespaces/kube-system/services/kube-dns")
    assert (service["spec"]["clusterIP"], service["metadata"]["labels"]["k8s-app"]) == ("10.96.0.10", "kube-dns")
    assert [(port["name"], port["protocol"], port["port"]) for port in service["spec"]["ports"]] == [
        ("dns", "UDP", 53),
        ("dns-tcp", "TCP", 53),
    ]
    slices = await api.get("/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns")
    assert [(port["name"], port["protocol"], port["port"]) for port in slices["ports"]] == [
        ("dns", "UDP", 1053),
        ("dns-tcp", "TCP", 1053),
    ]


async def test_this_process_is_a_pod_that_nothing_drains_or_evicts(api):
    cluster, path = api.api.cluster("test"), "/api/v1/namespaces/kube-system/pods/seamark-node-1"
    await bootstrap.make_priority_classes(cluster)
    await make_own_pod(cluster, "node-1")
    pod = await api.get(path)
    assert "kubernetes.io/config.mirror" in pod["metadata"]["annotations"]
    assert pod["spec"]["nodeName"] == "node-1"
    assert {"operator": "Exists", "effect": "NoExecute"} in pod["spec"]["tolerations"]
    before = await api.store.revision()
    await make_own_pod(cluster, "node-1")
    assert await api.store.revision() == before
    await cluster.delete(PODS, "seamark-node-1", namespace="kube-system", grace_seconds=0)
    await make_own_pod(cluster, "node-1")
    assert (await api.get(path))["metadata"]["uid"] != pod["metadata"]["uid"]
    assert manifest_of("pods", await api.get(path)) is None, "an export is what people made"
