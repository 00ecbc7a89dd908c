"""Services, slices and a node for routing tests, short to write and, for properties, at random."""

import msgspec
from hypothesis import strategies as st

from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.service import Service
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from seamark.rules.routing.table import RouteTable

HERE = ThisNode("node-a", "zone-a", ("192.168.50.10", "fd00:50::10"))
AROUND = Surroundings(HERE, cluster_cidrs=("10.244.0.0/16", "fd00:10:244::/56"))


def service(name="web", *, ip="10.96.0.1", ports=None, labels=None, ingress=(), created="2026-01-01T00:00:00Z", **spec):
    ips = [ip] if isinstance(ip, str) else list(ip)
    body = {
        "clusterIP": ips[0],
        "clusterIPs": ips,
        "ports": [{"port": 80, "protocol": "TCP"}] if ports is None else ports,
        **spec,
    }
    meta = {"name": name, "namespace": "default", "labels": labels or {}, "creationTimestamp": created}
    status = {"loadBalancer": {"ingress": list(ingress)}}
    return msgspec.convert({"metadata": meta, "spec": body, "status": status}, Service)


def endpoint(address, node="node-a", *, ready=True, serving=None, terminating=None, zones=(), nodes=(), **more):
    hints = {}
    if zones:
        hints["forZones"] = [{"name": each} for each in zones]
    if nodes:
        hints["forNodes"] = [{"name": each} for each in nodes]
    conditions = {"ready": ready, "serving": serving, "terminating": terminating}
    body = {"addresses": [address], "conditions": conditions, **more}
    return {**body, **({"nodeName": node} if node else {}), **({"hints": hints} if hints else {})}


def retiring(address, node="node-a", **more):
    return endpoint(address, node, ready=False, serving=True, terminating=True, **more)


def slice(name, *endpoints, of="web", ports=None, family="IPv4", labels=None):
    meta = {
        "name": name,
        "namespace": "default",
        "labels": {**({"kubernetes.io/service-name": of} if of else {}), **(labels or {})},
    }
    listed = [{"name": "", "port": 8080, "protocol": "TCP"}] if ports is None else ports
    body = {"metadata": meta, "addressType": family, "endpoints": list(endpoints), "ports": listed}
    return msgspec.convert(body, EndpointSlice)


def table(*objects, around=AROUND):
    made = RouteTable(around)
    for each in objects:
        put(made, each)
    return made


def put(into, each):
    return into.put_service(each) if isinstance(each, Service) else into.put_slice(each)


def routes(*objects, around=AROUND, of="web"):
    return table(*objects, around=around).routes(f"default/{of}")


def route(*objects, around=AROUND, of="web"):
    """The only route of a Service."""
    (found,) = routes(*objects, around=around, of=of).routes
    return found


def shown(backends):
    return [f"{each.address}:{each.port}" for each in backends]


def reasons(choice):
    return {each.backend.address: each.reason.name for each in choice.left_out}


# --- at random -----------------------------------------------------------------------------------------

names = st.sampled_from(["web", "db", "shop"])
booleans = st.sampled_from([None, True, False])
endpoints = st.builds(
    endpoint,
    st.integers(1, 6).map(lambda number: f"10.244.1.{number}"),
    st.sampled_from(["node-a", "node-b", None]),
    ready=booleans,
    serving=booleans,
    terminating=booleans,
    zones=st.lists(st.sampled_from(["zone-a", "zone-b"]), max_size=1),
    nodes=st.lists(st.sampled_from(["node-a", "node-b"]), max_size=1),
)
slices = st.builds(
    lambda name, listed, of, port, labels: slice(
        name, *listed, of=of, ports=[{"name": "", "port": port, "protocol": "TCP"}], labels=labels
    ),
    st.sampled_from(["s-1", "s-2", "s-3"]),
    st.lists(endpoints, max_size=4),
    names,
    st.sampled_from([8080, 9090]),
    st.sampled_from([{}, {}, {}, {"service.kubernetes.io/headless": ""}]),
)
services = st.builds(
    lambda name, policies, externals, type, affinity, labels: service(
        name,
        ip={"web": "10.96.0.1", "db": "10.96.0.2", "shop": "10.96.0.3"}[name],
        ports=[{"port": 80, "protocol": "TCP", "nodePort": 30080 if type != "ClusterIP" else 0}],
        internalTrafficPolicy=policies[0],
        externalTrafficPolicy=policies[1],
        externalIPs=externals,
        type=type,
        ingress=[{"ip": "198.51.100.1"}],
        sessionAffinity=affinity,
        labels=labels,
    ),
    names,
    st.tuples(st.sampled_from(["Cluster", "Local"]), st.sampled_from(["Cluster", "Local"])),
    st.lists(st.sampled_from(["198.51.100.1", "198.51.100.2", "10.96.0.2"]), max_size=2, unique=True),
    st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer"]),
    st.sampled_from(["None", "ClientIP"]),
    st.sampled_from([{}, {}, {}, {"service.kubernetes.io/service-proxy-name": "other"}]),
)
