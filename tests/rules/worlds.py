"""Services, Pods, Nodes and slices for tests, short to write and, for properties, at random."""

import msgspec
from hypothesis import strategies as st

from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service

NS = "default"


def service(name="web", *, uid="svc-1", selector=None, ports=None, labels=None, annotations=None, **spec):
    body = {
        "selector": {"app": "web"} if selector is None else selector,
        "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}] if ports is None else ports,
        "clusterIP": "10.96.0.1",
        "ipFamilies": ["IPv4"],
        **spec,
    }
    meta = {
        "name": name,
        "namespace": NS,
        "uid": uid,
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": labels or {},
        "annotations": annotations or {},
    }
    return msgspec.convert({"metadata": meta, "spec": body}, Service)


def pod(name="a", *, ips=("10.1.0.1",), ready=True, node="node-a", labels=None, terminating=False, ports=(), **more):
    conditions = []
    if ready is not None:
        since = more.pop("since", "2026-01-02T00:00:00Z")
        conditions = [{"type": "Ready", "status": str(ready), "lastTransitionTime": since}]
    body = {
        "metadata": {
            "name": name,
            "namespace": NS,
            "uid": more.pop("uid", f"uid-{name}"),
            "labels": {"app": "web"} if labels is None else labels,
        },
        "spec": {
            "nodeName": node,
            "hostname": more.pop("hostname", ""),
            "subdomain": more.pop("subdomain", ""),
            "containers": [{"ports": list(ports)}],
            "initContainers": more.pop("init_containers", []),
        },
        "status": {
            "phase": more.pop("phase", "Running"),
            "podIPs": [{"ip": ip} for ip in ips],
            "conditions": conditions,
        },
    }
    assert not more, more
    if terminating:
        body["metadata"]["deletionTimestamp"] = "2026-01-03T00:00:00Z"
    return msgspec.convert(body, Pod)


def node(name="node-a", *, zone="zone-a", ready=True, cpu="4", labels=None):
    all_labels = {"topology.kubernetes.io/zone": zone, **(labels or {})} if zone else dict(labels or {})
    body = {
        "metadata": {"name": name, "labels": all_labels},
        "status": {
            "allocatable": {"cpu": cpu} if cpu else {},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }
    return msgspec.convert(body, Node)


NODES = {f"node-{z}": node(f"node-{z}", zone=f"zone-{z}") for z in "abc"}


class Slices:
    """A store of slices that carries out changes as the API server would."""

    def __init__(self, slices=()):
        self.version = 0
        self.by_name = {s.metadata.name: s for s in slices}

    def __iter__(self):
        return iter(self.by_name.values())

    def create(self, made):
        self.version += 1
        name = f"{made.metadata.generate_name}{self.version:04d}"
        return self._store(made, name=name, generation=1)

    def update(self, changed):
        self.version += 1
        name = changed.metadata.name
        return self._store(changed, name=name, generation=self.by_name[name].metadata.generation + 1)

    def delete(self, name):
        return self.by_name.pop(name)

    def _store(self, endpoint_slice, **meta):
        meta = msgspec.structs.replace(endpoint_slice.metadata, resource_version=f"v{self.version}", **meta)
        stored = msgspec.structs.replace(endpoint_slice, metadata=meta)
        # Over the wire and back, as it would come from an informer.
        stored = msgspec.json.decode(msgspec.json.encode(stored), type=EndpointSlice)
        self.by_name[stored.metadata.name] = stored
        return stored

    def carry_out(self, changes, *, at_most=1000):
        """Write what is wanted, in the controller's order, but no more than so many objects; yields what changed."""
        for made in changes.create[:at_most]:
            yield self.create(made).metadata.name
        at_most -= len(changes.create)
        for changed in changes.update[: max(at_most, 0)]:
            yield self.update(changed).metadata.name
        at_most -= len(changes.update)
        for gone in changes.delete[: max(at_most, 0)]:
            yield self.delete(gone.metadata.name).metadata.name


# --- at random -------------------------------------------------------------------------------------

pod_names = st.sampled_from([f"p{i}" for i in range(12)])


@st.composite
def pods(draw, names=pod_names):
    name = draw(names)
    number = int(name[1:]) + 1
    families = draw(st.sampled_from([("4",), ("4", "6"), ("6",), ()]))
    ips = tuple(f"10.1.0.{number}" if family == "4" else f"fd00::{number:x}" for family in families)
    return pod(
        name,
        ips=ips,
        ready=draw(st.sampled_from([True, True, False, None])),
        node=draw(st.sampled_from(["node-a", "node-b", "node-c", "ghost"])),
        labels=draw(st.sampled_from([{"app": "web"}, {"app": "web", "x": "y"}, {"app": "db"}])),
        terminating=draw(st.sampled_from([False, False, False, True])),
        ports=draw(
            st.sampled_from(
                [
                    (),
                    ({"name": "http", "containerPort": 8080, "protocol": "TCP"},),
                    ({"name": "http", "containerPort": 9090, "protocol": "TCP"},),
                    ({"name": "http", "containerPort": 8080, "protocol": "UDP"},),
                ]
            )
        ),
        hostname=draw(st.sampled_from(["", "h"])),
        subdomain=draw(st.sampled_from(["", "web"])),
        phase=draw(st.sampled_from(["Running", "Running", "Running", "Succeeded"])),
        uid=f"uid-{name}-{draw(st.integers(0, 1))}",
    )


named = {"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}
numbered = {"name": "plain", "port": 99, "targetPort": 99, "protocol": "TCP"}


@st.composite
def services(draw, **fixed):
    more = {
        "ports": draw(st.sampled_from([[numbered], [named], [named, numbered]])),
        "ipFamilies": draw(st.sampled_from([["IPv4"], ["IPv6"], ["IPv4", "IPv6"]])),
        "publishNotReadyAddresses": draw(st.sampled_from([False, False, True])),
        "labels": draw(st.sampled_from([{}, {"team": "a"}, {"team": "b"}])),
        "trafficDistribution": draw(st.sampled_from([None, None, "PreferClose", "PreferSameNode"])),
        "annotations": draw(st.sampled_from([{}, {}, {}, {"service.kubernetes.io/topology-mode": "Auto"}])),
        **fixed,
    }
    return service(**more)
