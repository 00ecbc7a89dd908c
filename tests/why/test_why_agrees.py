"""``why`` never disagrees with the controllers, over random clusters: on what is ready, hinted and mirrored."""

import asyncio

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from memory_cluster import MemoryCluster
from running import running
from worlds import NODES, node, pods

from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, PODS, SERVICES
from seamark.kinds.resource import NODES as NODE_RESOURCE
from seamark.rules import hints
from seamark.why.case import Case
from seamark.why.codes import Code, Family
from seamark.why.explain import explain
from seamark.why.observe import observe
from virtual_time import VirtualClock

NAMESPACES = ("default", "other")

named = {"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}
numbered = {"name": "plain", "port": 99, "targetPort": 99, "protocol": "TCP"}


@st.composite
def services(draw):
    """Of every type, with and without a selector, in two namespaces."""
    name = draw(st.sampled_from(["web", "db", "all", "ext", "none"]))
    spec = {
        "selector": draw(
            st.sampled_from([{"app": "web"}, {"app": "web", "x": "y"}, {"app": "db"}, {"app": "wbe"}, {}])
        ),
        "ports": draw(st.sampled_from([[numbered], [named], [named, numbered]])),
        "ipFamilies": draw(st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]])),
        "publishNotReadyAddresses": draw(st.sampled_from([False, False, True])),
        "trafficDistribution": draw(st.sampled_from([None, None, "PreferClose", "PreferSameNode"])),
        "type": draw(st.sampled_from(["ClusterIP", "ClusterIP", "NodePort", "ExternalName"])),
        "clusterIP": draw(st.sampled_from(["None", "10.96.0.1"])),
    }
    spec["ipFamilyPolicy"] = "RequireDualStack" if len(spec["ipFamilies"]) == 2 else "SingleStack"
    if spec["type"] == "ExternalName":
        spec["externalName"] = "example.com"
    meta = {"name": name, "namespace": draw(st.sampled_from(NAMESPACES))}
    if draw(st.booleans()):
        meta["annotations"] = {"service.kubernetes.io/topology-mode": "Auto"}
    return {"kind": "Service", "metadata": meta, "spec": {k: v for k, v in spec.items() if v is not None}}


@st.composite
def endpoints(draw):
    """Hand-made: for some Service or for none, ready or not, with and without leave to mirror, some not an address."""
    written = ["192.168.0.1", "192.168.0.2", "fd00::9", "db.example.com"]
    addresses = draw(st.lists(st.sampled_from(written), min_size=1, unique=True))
    kind = draw(st.sampled_from(["addresses", "addresses", "notReadyAddresses"]))
    labels = draw(st.sampled_from([{}, {}, {"endpointslice.kubernetes.io/skip-mirror": "true"}]))
    name = draw(st.sampled_from(["ext", "none", "lost"]))
    return {
        "kind": "Endpoints",
        "metadata": {"name": name, "namespace": draw(st.sampled_from(NAMESPACES)), "labels": labels},
        "subsets": [{kind: [{"ip": ip} for ip in addresses], "ports": [{"name": "web", "port": 80}]}],
    }


@st.composite
def clusters(draw):
    made = {}
    for service in draw(st.lists(services(), min_size=1, max_size=5)):
        made["Service", service["metadata"]["namespace"], service["metadata"]["name"]] = service
    for each in draw(st.lists(endpoints(), max_size=2)):
        made["Endpoints", each["metadata"]["namespace"], each["metadata"]["name"]] = each
    for pod in draw(st.lists(pods(), max_size=10)):
        obj = msgspec.json.decode(msgspec.json.encode(pod))
        obj["kind"] = "Pod"
        obj["metadata"]["namespace"] = draw(st.sampled_from(NAMESPACES))
        made["Pod", obj["metadata"]["namespace"], obj["metadata"]["name"]] = obj
    for each in (*NODES.values(), *draw(more_nodes)):
        made["Node", each.name] = {"kind": "Node", **msgspec.to_builtins(each)}
    return list(made.values())


# Besides three like ones: a node that is larger, one of which too little is known, one that takes no part.
more_nodes = st.lists(
    st.sampled_from(
        [
            node("node-d", zone="zone-a", cpu="64"),
            node("node-e", zone=""),
            node("node-e", zone="zone-a", cpu=""),
            node("node-f", zone="", ready=False),
        ]
    ),
    max_size=1,
)

RESOURCES = {"Service": SERVICES, "Endpoints": ENDPOINTS, "Pod": PODS, "Node": NODE_RESOURCE}


async def settled(objects):
    cluster = MemoryCluster()
    resources = [(RESOURCES[obj["kind"]], obj) for obj in objects]
    # Endpoints that belong to nobody are swept away when the controllers start, so those come later.
    early = [(resource, obj) for resource, obj in resources if resource is not ENDPOINTS]
    late = [(resource, obj) for resource, obj in resources if resource is ENDPOINTS]
    for resource, obj in early:
        await cluster.create(resource, obj)
    async with running(cluster) as controllers:
        await controllers.settle()
        for resource, obj in late:
            key = (resource.kind, obj["metadata"]["namespace"], obj["metadata"]["name"])
            if key not in cluster._objects:
                await cluster.create(resource, obj)
        await controllers.settle()
        world = await observe(cluster, "", clock=VirtualClock(0.0))
    return cluster, world


def ready_endpoints(cluster, key):
    """What the slices on the server list as ready for a Service, with the family."""
    return [
        (each["addressType"], endpoint)
        for each in cluster.objects(ENDPOINT_SLICES, key[0])
        if each["metadata"]["labels"].get("kubernetes.io/service-name") == key[1]
        for endpoint in each["endpoints"] or ()
        if endpoint.get("conditions", {}).get("ready", True)
    ]


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_ready_addresses_are_those_the_controllers_write(objects):
    cluster, world = asyncio.run(settled(objects))
    for key, service in world.services.items():
        case = Case(world, service)
        listed = ready_endpoints(cluster, key)
        # Hand-written Endpoints of a family that the Service lacks are mirrored, but proxies do not use them.
        used = [endpoint for family, endpoint in listed if service.headless or family in service.families]
        assert set(case.ready_addresses) == {ip for endpoint in used for ip in endpoint["addresses"]}, key
        told = explain(world, key)
        # Where the controllers have settled, none is said to be late, and no user to have written by hand.
        accused = [finding for finding in told.findings if finding.code.family is Family.BOOKKEEPING]
        assert accused == [], (key, accused)
        assert case.ready_addresses or service.external or not told.healthy, key
        ready = {row.name for row in told.pods if row.ready}
        assert ready == {each.pod.metadata.name for each in case.ready}
        check_hints(service, told, listed)
        check_mirror(service, told, cluster)


WITHHELD = {
    Code.HINTS_NODES_INCOMPLETE,
    Code.HINTS_ONE_ZONE,
    Code.HINTS_TOO_FEW_ENDPOINTS,
    Code.HINTS_UNBALANCED,
    Code.HINTS_ENDPOINT_WITHOUT_ZONE,
}


def check_hints(service, told, listed):
    """Where hints are shared out, ``why`` says that they are withheld if, and only if, some family has none."""
    codes = {finding.code for finding in told.findings}
    assert Code.HINTS_MISSING not in codes
    if service.managed and hints.mode(service) == "topology":
        families = {family for family, _ in listed}
        hinted = {family for family, endpoint in listed if "hints" in endpoint}
        assert bool(codes & WITHHELD) == (families != hinted)


def check_mirror(service, told, cluster):
    """``why`` reports what is no address if, and only if, the mirroring controller leaves something out."""
    namespace, name = service.key
    assert Code.ENDPOINTS_NOT_MIRRORED not in {finding.code for finding in told.findings}
    for each in cluster.objects(ENDPOINTS, namespace):
        skip = "endpointslice.kubernetes.io/skip-mirror" in each["metadata"].get("labels", {})
        if each["metadata"]["name"] == name and not service.managed and not service.external and not skip:
            ready = [address["ip"] for subset in each.get("subsets") or () for address in subset.get("addresses", ())]
            if ready:
                invalid = {finding.code for finding in told.findings} & {Code.ENDPOINTS_INVALID_ADDRESS}
                assert bool(invalid) == ("db.example.com" in ready)
