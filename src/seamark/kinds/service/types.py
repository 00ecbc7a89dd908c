"""The types of Services: which fields each type uses, and which are cleared when the type changes.

On an update, fields that the new type does not use are dropped if the user did not change them; if the user changed
them together with the type, they are kept, and validation rejects them.
"""

from __future__ import annotations

from typing import Any

from seamark.errors import Object

CLUSTER_IP = "ClusterIP"
NODE_PORT = "NodePort"
LOAD_BALANCER = "LoadBalancer"
EXTERNAL_NAME = "ExternalName"
TYPES = (CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT)

NONE = "None"  # the clusterIP of a headless Service


def has_cluster_ip(spec: Object) -> bool:
    """Whether the type has a clusterIP, which may be "None"."""
    return spec.get("type") != EXTERNAL_NAME


def has_node_ports(spec: Object) -> bool:
    return spec.get("type") in (NODE_PORT, LOAD_BALANCER)


def allocates_node_ports(spec: Object) -> bool:
    """Whether every port gets a node port, even if the user requests none."""
    if spec.get("type") == LOAD_BALANCER:
        return bool(spec.get("allocateLoadBalancerNodePorts", True))
    return spec.get("type") == NODE_PORT


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == LOAD_BALANCER and spec.get("externalTrafficPolicy") == "Local"


def externally_accessible(spec: Object) -> bool:
    kind = spec.get("type")
    return kind in (LOAD_BALANCER, NODE_PORT) or (kind == CLUSTER_IP and bool(spec.get("externalIPs")))


def is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == [NONE]


def node_ports(spec: Object) -> list[int]:
    """The node ports of all ports, in order; a node port that two ports share is listed twice."""
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def drop(spec: Object, *keys: str) -> None:
    for key in keys:
        spec.pop(key, None)


def _unchanged(spec: Object, old: Object, *keys: str) -> bool:
    nothing: tuple[Any, ...] = (None, "", 0, [])
    return all(spec.get(key) == old.get(key) or (spec.get(key) in nothing and old.get(key) in nothing) for key in keys)


def wipe_unneeded(spec: Object, old: Object) -> None:
    """Drop fields that the new type does not use and the user did not change."""
    if has_cluster_ip(old) and not has_cluster_ip(spec):
        if _unchanged(spec, old, "clusterIP", "clusterIPs"):
            drop(spec, "clusterIP", "clusterIPs")
        for key in ("ipFamilies", "ipFamilyPolicy"):
            if _unchanged(spec, old, key):
                drop(spec, key)
    # Ports may be added or removed in the same update, as long as no node port is new.
    if has_node_ports(old) and not has_node_ports(spec) and set(node_ports(spec)) <= set(node_ports(old)):
        for port in spec.get("ports") or ():
            drop(port, "nodePort")
    if needs_health_check(old) and not needs_health_check(spec) and _unchanged(spec, old, "healthCheckNodePort"):
        drop(spec, "healthCheckNodePort")
    if old.get("type") == LOAD_BALANCER and spec.get("type") != LOAD_BALANCER:
        for key in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if _unchanged(spec, old, key):
                drop(spec, key)
    if (
        externally_accessible(old)
        and not externally_accessible(spec)
        and _unchanged(spec, old, "externalTrafficPolicy")
    ):
        drop(spec, "externalTrafficPolicy")
