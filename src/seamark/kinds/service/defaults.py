"""Defaults of a Service: constant ones, and on an update the addresses and ports that it had before."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.service.types import (
    CLUSTER_IP,
    EXTERNAL_NAME,
    LOAD_BALANCER,
    NODE_PORT,
    allocates_node_ports,
    drop,
    externally_accessible,
    has_cluster_ip,
    needs_health_check,
    node_ports,
)

AFFINITY_SECONDS = 3 * 60 * 60
TRAFFIC_POLICIES = ("Cluster", "Local")


def fill_in(obj: Object) -> None:
    """Fill in constant defaults; they are the same for create, update and patch."""
    spec = obj["spec"]
    affinity = spec.setdefault("sessionAffinity", "None")
    if affinity == "None":
        drop(spec, "sessionAffinityConfig")
    elif affinity == "ClientIP":
        config = (spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}
        if config.get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    kind = spec.setdefault("type", CLUSTER_IP)
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if externally_accessible(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in (CLUSTER_IP, NODE_PORT, LOAD_BALANCER):
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == LOAD_BALANCER:
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        for ingress in obj["status"]["loadBalancer"].get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def strip_internal_policy(spec: Object) -> None:
    """Drop ``internalTrafficPolicy`` of an ExternalName Service; an unknown value is kept, so validation rejects it."""
    if spec.get("type") == EXTERNAL_NAME and spec.get("internalTrafficPolicy") in TRAFFIC_POLICIES:
        drop(spec, "internalTrafficPolicy")


def pluralise(spec: Object) -> None:
    """Set ``clusterIPs`` of a new Service from ``clusterIP``, for old clients; never the other way round."""
    if spec.get("clusterIP") and not spec.get("clusterIPs"):
        spec["clusterIPs"] = [spec["clusterIP"]]


def inherit(spec: Object, old: Object) -> None:
    """Keep allocated values that the update leaves out, so that the original manifest can be applied again."""
    if has_cluster_ip(old) and has_cluster_ip(spec):
        if not spec.get("clusterIP") and old.get("clusterIP"):
            spec["clusterIP"] = old["clusterIP"]
        if not spec.get("clusterIPs") and old.get("clusterIPs"):
            spec["clusterIPs"] = list(old["clusterIPs"])
    if allocates_node_ports(old) and allocates_node_ports(spec):
        _inherit_node_ports(spec, old)
    if needs_health_check(old) and needs_health_check(spec) and not spec.get("healthCheckNodePort"):
        spec["healthCheckNodePort"] = old.get("healthCheckNodePort", 0)
    _follow_cluster_ip(spec, old)


def _inherit_node_ports(spec: Object, old: Object) -> None:
    """Keep node ports, matched by port name, unless the update gives the same node port to another port."""
    in_use = set(node_ports(old)) & set(node_ports(spec))
    known = {port.get("name", ""): port.get("nodePort", 0) for port in old.get("ports") or ()}
    for port in spec.get("ports") or ():
        before = known.get(port.get("name", ""), 0)
        if not port.get("nodePort") and before and before not in in_use:
            port["nodePort"] = before


def _follow_cluster_ip(spec: Object, old: Object) -> None:
    """Let ``clusterIPs`` follow a changed ``clusterIP``, because an old client may not know ``clusterIPs``."""
    before, now = old.get("clusterIP", ""), spec.get("clusterIP", "")
    same = (spec.get("clusterIPs") or []) == (old.get("clusterIPs") or [])
    if before == now:
        if not spec.get("clusterIPs") and old.get("clusterIPs"):
            spec["clusterIPs"] = list(old["clusterIPs"])
    elif same and before and not now:
        drop(spec, "clusterIPs")
    elif same and now:
        spec["clusterIPs"] = [now]
