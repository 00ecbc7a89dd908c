"""The pure plans against what the real controllers were recorded to do.

Every recorded scenario is played into a cluster in memory; at each mark the plans are asked and carried out until they
want nothing more, and the outcome is compared with the replay tool's own eyes.
"""

import msgspec
import pytest
from batch_plans import endpoints_plan, slices_plan
from memory_cluster import MemoryCluster
from recordings import NS, check, load, observe, play, steps

from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from seamark.rules import mirroring
from seamark.rules.hints import ZoneCpus
from seamark.rules.membership import selects
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices import objects as slices_objects
from seamark.rules.slices.state import Topology

# A slice taken out of the controller's hands is not made up for at once: the controller's patience, not the plan's.
NOT_THE_PLANS = ("slices/managed-by-taken-away",)


@pytest.mark.parametrize(("nodes", "case"), load("hand", without=NOT_THE_PLANS) + load("random"))
async def test_a_recorded_scenario(nodes, case):
    cluster = MemoryCluster()
    for node in nodes:
        await cluster.create(NODES, node)
    known = set()
    states = []
    for step in steps(case):
        if step == "settle" or "settle" in step:
            await converge(cluster, known)
            states.append(observe(cluster))
        else:
            await play(cluster, step)
            # Recorded controllers see every step, not only the state at the mark.
            if "delete" in step or "patch" in step or "patch_slices" in step or "delete_slices" in step:
                await converge(cluster, known, services_only=True)
    check(case, states)


async def views(cluster, resource, type_):
    return (await cluster.list(resource, namespace="" if resource is NODES else NS, as_=type_)).items


async def converge(cluster, known, *, services_only=False):
    """Carry out the plans until they want nothing; ``known`` are the Services that have been seen."""
    for _ in range(10):
        before = cluster.version
        services = await views(cluster, SERVICES, Service)
        gone = known - {service.metadata.name for service in services}
        known |= {service.metadata.name for service in services}
        for endpoints_object in await views(cluster, ENDPOINTS, Endpoints):
            if endpoints_object.metadata.name in gone and not endpoints_object.leader_lock:
                await cluster.delete(ENDPOINTS, endpoints_object.metadata.name, namespace=NS)
        if services_only:
            return
        for service in services:
            await apply(cluster, service)
        for endpoints_object in await views(cluster, ENDPOINTS, Endpoints):
            await mirror(cluster, endpoints_object.metadata.name)
        if cluster.version == before:
            return
    raise AssertionError("the plans never come to rest")


async def apply(cluster, service):
    pods = [pod for pod in await views(cluster, PODS, Pod) if selects(service, pod)]
    nodes = {node.metadata.name: node for node in await views(cluster, NODES, Node)}
    current = [e for e in await views(cluster, ENDPOINTS, Endpoints) if e.metadata.name == service.metadata.name]
    await write(cluster, ENDPOINTS, endpoints_plan(service, pods, current[0] if current else None))
    slices = [
        s
        for s in await views(cluster, ENDPOINT_SLICES, EndpointSlice)
        if slices_objects.ours(s) and s.service_name == service.metadata.name
    ]
    plan = slices_plan(service, pods, slices, nodes=nodes, topology=Topology(shares=ZoneCpus(nodes.values()).shares))
    await write(cluster, ENDPOINT_SLICES, plan.changes)


async def mirror(cluster, name):
    services = {s.metadata.name: s for s in await views(cluster, SERVICES, Service)}
    objects = {e.metadata.name: e for e in await views(cluster, ENDPOINTS, Endpoints)}
    slices = [
        s for s in await views(cluster, ENDPOINT_SLICES, EndpointSlice) if mirroring.ours(s) and s.service_name == name
    ]
    plan = mirroring.plan(services.get(name), objects.get(name), slices)
    await write(cluster, ENDPOINT_SLICES, plan.changes)


async def write(cluster, resource, changes):
    for obj in changes.create:
        await cluster.create(resource, obj, namespace=NS)
    for obj in changes.update:
        await cluster.update(resource, obj, namespace=NS)
    for obj in changes.delete:
        await cluster.delete(resource, obj.metadata.name, namespace=NS)


def test_views_survive_the_wire():
    raw = {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": None, "ports": None}
    assert msgspec.convert(raw, EndpointSlice).endpoints is None
