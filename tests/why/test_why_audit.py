"""The audit: what is orphaned, duplicated, stale or foreign, and what may be removed without being missed."""

import pytest
from memory_cluster import MemoryCluster
from running import running
from scenery import hand_made, node, pod, put, service

from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, SERVICES
from seamark.why.audit import Defect
from seamark.why.look import look_through
from virtual_time import HastyClock

NAME = "kubernetes.io/service-name"
BY = "endpointslice.kubernetes.io/managed-by"


def endpoint_slice(name, labels, *addresses, **meta):
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": "default", "labels": labels, **meta},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    }


def selectorless(name):
    made = service(name)
    del made["spec"]["selector"]
    return made


async def audited(cluster):
    found, _ = await look_through(cluster, "", clock=HastyClock())
    return {problem.metadata.name: problem for problem in found}


@pytest.fixture
async def settled():
    """A cluster on which the controllers have worked and then stopped."""
    cluster = MemoryCluster()

    async def settle(*objects):
        async with running(cluster) as controllers:
            await put(cluster, node(), *objects)
            await controllers.settle()
        return cluster

    return settle


async def test_nothing_is_wrong_with_what_the_controllers_wrote(settled):
    cluster = await settled(
        service(), pod("web-1"), pod("web-2", ready=False), selectorless("ext"), hand_made("ext"), service("empty")
    )
    assert await audited(cluster) == {}


async def test_another_namespace_is_not_judged_by_what_was_read_of_it(settled):
    cluster = await settled(service(), pod("web-1"))
    elsewhere = selectorless("web")
    elsewhere["metadata"]["namespace"] = "shop"
    await put(cluster, elsewhere)
    assert await look_through(cluster, "shop", clock=HastyClock()) == ([], ())


async def test_orphans(settled):
    cluster = await settled(service(), pod("web-1"))
    await put(
        cluster,
        hand_made("lost"),
        hand_made("lock", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"}),
        endpoint_slice("lost-1", {NAME: "lost"}, "10.9.9.9"),
        endpoint_slice("theirs", {NAME: "lost", BY: "mesh.example.com"}, "10.9.9.9"),
    )
    found = await audited(cluster)
    assert found["lost"].defect is Defect.ORPHANED
    assert found["lost"].removable
    assert "lock" not in found  # an election's lock is no address book
    assert found["lost-1"].removable
    assert found["theirs"].defect is Defect.ORPHANED
    assert not found["theirs"].removable  # its maker decides


async def test_leftovers(settled):
    cluster = await settled(service(), pod("web-1"), service("alias"), selectorless("ext"), hand_made("ext"))
    await cluster.patch(SERVICES, "web", {"spec": {"selector": None}}, namespace="default")
    await cluster.patch(SERVICES, "alias", {"spec": {"type": "ExternalName"}}, namespace="default")
    await cluster.delete(ENDPOINTS, "ext", namespace="default")
    found = await audited(cluster)
    assert {problem.defect for problem in found.values()} == {Defect.STALE}
    assert all(problem.removable for problem in found.values())
    kinds = sorted(problem.resource.kind for problem in found.values())
    assert kinds == ["EndpointSlice", "EndpointSlice", "Endpoints", "Endpoints"]  # the mirror went with its Endpoints


async def test_edited_endpoints_go_stale_slices_are_left_to_their_controller(settled):
    cluster = await settled(service(), pod("web-1"), service("api"), pod("api-1", app="api"))
    subsets = {"subsets": [{"addresses": [{"ip": "10.9.9.9"}], "ports": [{"port": 8080}]}]}
    await cluster.patch(ENDPOINTS, "web", subsets, namespace="default")
    name = next(
        e["metadata"]["name"] for e in cluster.objects(ENDPOINT_SLICES) if e["metadata"]["labels"][NAME] == "api"
    )
    dead = {"endpoints": [{"addresses": ["10.8.8.8"], "conditions": {"ready": True}}]}
    await cluster.patch(ENDPOINT_SLICES, name, dead, namespace="default")
    found = await audited(cluster)
    assert found["web"].removable
    assert "10.9.9.9" in found["web"].why
    assert found[name].defect is Defect.STALE
    assert not found[name].removable  # without a controller that would be an outage


async def test_foreign_and_duplicated(settled):
    cluster = await settled(service(), pod("web-1"), selectorless("ext"), hand_made("ext"))
    await put(
        cluster,
        endpoint_slice("nameless", {}, "10.9.9.9"),
        endpoint_slice("beside", {NAME: "web"}, "10.7.7.7"),
        endpoint_slice("mesh", {NAME: "web", BY: "mesh.example.com"}, "10.7.7.8"),
        {**endpoint_slice("twin", {NAME: "ext"}, "192.168.0.1"), "ports": [{"name": "", "port": 80}]},
    )
    found = await audited(cluster)
    assert found["nameless"].defect is Defect.FOREIGN
    assert found["beside"].defect is Defect.FOREIGN
    assert found["mesh"].defect is Defect.FOREIGN
    assert Defect.DUPLICATED in {problem.defect for problem in found.values()}
    assert not any(problem.removable for problem in found.values())


async def test_an_earlier_service_s_slices(settled):
    cluster = await settled(service(), pod("web-1"))
    old = [{"apiVersion": "v1", "kind": "Service", "name": "web", "uid": "gone", "controller": True}]
    made = endpoint_slice(
        "web-old", {NAME: "web", BY: "endpointslice-controller.k8s.io"}, "10.9.9.9", ownerReferences=old
    )
    await put(cluster, made)
    found = await audited(cluster)
    assert found["web-old"].removable
    assert "earlier" in found["web-old"].why


async def test_what_settles_by_itself_is_not_reported(settled):
    cluster = await settled(service(), pod("web-1"))
    await put(cluster, hand_made("lost"))

    class Meanwhile(HastyClock):
        async def sleep(self, seconds):
            await cluster.delete(ENDPOINTS, "lost", namespace="default")

    found, _ = await look_through(cluster, "", clock=Meanwhile())
    assert found == []
