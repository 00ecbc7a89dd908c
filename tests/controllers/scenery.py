"""Objects as users send them, and whether a cluster is as it should be."""

from batch_plans import endpoints_plan, slices_plan

from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, NODES, PODS, SERVICES
from seamark.rules import hints, mirroring
from seamark.rules.membership import judge, selects
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service
from seamark.rules.slices import objects as slices_objects
from seamark.rules.slices.objects import identity
from seamark.rules.slices.state import Topology

NS = "default"
RESOURCES = {resource.kind: resource for resource in (SERVICES, PODS, NODES, ENDPOINTS, ENDPOINT_SLICES)}


def service(name="web", **spec):
    labels = spec.pop("labels", {})
    annotations = spec.pop("annotations", {})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NS, "labels": labels, "annotations": annotations},
        "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}], **spec},
    }


def pod(name, *, number=None, ready=True, node="node-a", app="web", since="2026-01-02T00:00:00Z", **more):
    number = int("".join(filter(str.isdigit, name)) or 1) if number is None else number
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NS, "labels": {"app": app}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "example/app:1"}]},
        "status": {
            "phase": "Running",
            "podIPs": [{"ip": f"10.{number // 60000}.{number // 250 % 240}.{number % 250 + 1}"}],
            "conditions": [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}],
            **more,
        },
    }


def node(name="node-a", zone="zone-a"):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def hand_made(name="ext", ips=("192.168.0.1",), **meta):
    return {
        "apiVersion": "v1",
        "kind": "Endpoints",
        "metadata": {"name": name, "namespace": NS, **meta},
        "subsets": [{"addresses": [{"ip": ip} for ip in ips], "ports": [{"port": 80}]}],
    }


async def put(cluster, *objects):
    for obj in objects:
        await cluster.create(RESOURCES[obj["kind"]], obj, namespace=obj["metadata"].get("namespace", ""))


async def report(cluster, obj):
    """What a kubelet does: the status of a Pod is not taken from its creation."""
    name, namespace = obj["metadata"]["name"], obj["metadata"]["namespace"]
    await cluster.patch(PODS, name, {"status": obj["status"]}, namespace=namespace, subresource="status")


async def flip(cluster, name, ready):
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-03T00:00:00Z"}
    await cluster.patch(PODS, name, {"status": {"conditions": [condition]}}, namespace=NS)


async def assert_right(cluster):
    """Everything is as a fresh look would have it, every endpoint is listed once, and no slice is too full."""
    listed = {
        resource: (await cluster.list(resource, as_=type_)).items
        for resource, type_ in (
            (SERVICES, Service),
            (PODS, Pod),
            (NODES, Node),
            (ENDPOINTS, Endpoints),
            (ENDPOINT_SLICES, EndpointSlice),
        )
    }
    nodes = {each.metadata.name: each for each in listed[NODES]}
    topology = Topology(hints.ZoneCpus(nodes.values()).shares, hinted=True)
    by_name = {each.metadata.name: each for each in listed[ENDPOINTS]}
    services = {each.metadata.name: each for each in listed[SERVICES]}
    for web in services.values():
        pods = [each for each in listed[PODS] if selects(web, each)]
        slices = [each for each in listed[ENDPOINT_SLICES] if each.service_name == web.metadata.name]
        own = [each for each in slices if slices_objects.ours(each)]
        assert not endpoints_plan(web, pods, by_name.get(web.metadata.name)), web.metadata.name
        assert not slices_plan(web, pods, own, nodes=nodes, topology=topology).changes, web.metadata.name
        if web.managed:
            found = sorted(identity(endpoint) for each in own for endpoint in each.endpoints)
            verdicts = [(each, judge(web, each, nodes.get(each.spec.node_name))) for each in pods]
            wanted = sorted(
                (tuple(sorted(verdict.addresses(family))), verdict.hostname, NS, each.metadata.name)
                for each, verdict in verdicts
                for family in web.families
                if verdict.in_slices and verdict.addresses(family)
            )
            assert found == wanted
        assert all(len(each.endpoints) <= 100 for each in own)
    for name in services.keys() | by_name.keys():
        mirrored = [each for each in listed[ENDPOINT_SLICES] if mirroring.ours(each) and each.service_name == name]
        assert not mirroring.plan(services.get(name), by_name.get(name), mirrored).changes, name
