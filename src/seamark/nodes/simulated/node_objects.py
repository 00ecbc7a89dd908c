"""The content of simulated Nodes, alive and dead.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256
from uuid import UUID

import msgspec
from msgspec.structs import replace

from seamark.errors import Object
from seamark.kinds.pod.resources import is_extended
from seamark.kinds.values import times
from seamark.kinds.values.quantity import canonical
from seamark.kinds.wellknown import (
    HOSTNAME_LABEL,
    HOW_PODS_ARE,
    KUBELET_PORT,
    NOT_READY_TAINT,
    REGION_LABEL,
    SIMULATED_ANNOTATION,
    UNREACHABLE_TAINT,
    UNSCHEDULABLE_TAINT,
    ZONE_LABEL,
)
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.simulated.sites import Site, Sites
from seamark.rules.objects.node import Node, NodeCondition, Taint

_HEALTHY = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)
_LOST = ("NodeStatusUnknown", "Kubelet stopped posting node status.")


class System(msgspec.Struct, frozen=True):
    """What a Node tells of the system on its machine."""

    kernel: str = "6.1.0-seamark"
    image: str = "Seamark"
    architecture: str = "amd64"  # as Go calls it


SIMULATED = System()


# --- content -----------------------------------------------------------------------------------------


def labels(settings: NodeSettings, name: str, system: System = SIMULATED) -> dict[str, str]:
    """The labels that a Node is created with."""
    number = settings.number(name) or 1
    found = {
        HOSTNAME_LABEL: name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": system.architecture,
        "beta.kubernetes.io/os": "linux",
        "beta.kubernetes.io/arch": system.architecture,
    }
    if zone := settings.zone(number):
        found[ZONE_LABEL] = zone
    if name in settings.run_on:
        found[HOW_PODS_ARE] = "processes"
    if settings.region:
        found[REGION_LABEL] = settings.region
    return found


def new(settings: NodeSettings, name: str, place: Site, *, now: float, system: System = SIMULATED) -> Object:
    """A Node as its kubelet registers it."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": labels(settings, name, system),
            "annotations": {SIMULATED_ANNOTATION: "true"},
        },
        "spec": {"podCIDRs": list(place.pod_cidrs)},
        "status": {
            **description(settings, name, place.addresses, system),
            "conditions": msgspec.to_builtins(healthy((), now=now)),
        },
    }


def description(settings: NodeSettings, name: str, addresses: Iterable[str], system: System) -> Object:
    """The part of the status in which a kubelet describes its machine."""
    amounts = {
        "cpu": canonical(settings.cpu),
        "memory": canonical(settings.memory),
        "ephemeral-storage": canonical(settings.storage),
        "pods": canonical(str(settings.pods)),
    }
    identity = UUID(bytes=sha256(name.encode()).digest()[:16])
    return {
        "addresses": [
            *({"type": "InternalIP", "address": address} for address in addresses),
            {"type": "Hostname", "address": name},
        ],
        "capacity": amounts,
        "allocatable": amounts,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": KUBELET_PORT}},
        "nodeInfo": {
            "machineID": identity.hex,
            "systemUUID": str(identity),
            "bootID": str(identity),
            "kernelVersion": system.kernel,
            "osImage": system.image,
            "containerRuntimeVersion": "seamark://1.0.0",
            "kubeletVersion": settings.version,
            "kubeProxyVersion": settings.version,
            "operatingSystem": "linux",
            "architecture": system.architecture,
        },
    }


def registration(settings: NodeSettings, node: Node, sites: Sites, system: System = SIMULATED) -> tuple[Object, Object]:
    """The patches for an existing Node: of the object and of its status; empty if nothing has to change.

    Other fields that users have set (labels, extended resources) stay.
    """
    wanted = labels(settings, node.name, system)
    missing = {key: value for key, value in wanted.items() if key not in node.metadata.labels}
    changes: Object = {"metadata": {"labels": missing}} if missing else {}
    hosts = tuple(a.address for a in node.status.addresses if a.type == "InternalIP")
    if not node.spec.pod_cidrs or not hosts:
        place = sites.take(node.name)
        hosts = hosts or place.addresses
        if not node.spec.pod_cidrs:
            changes["spec"] = {"podCIDRs": list(place.pod_cidrs)}
    told = description(settings, node.name, hosts, system)
    told["allocatable"] = {**told["allocatable"], **unannounced(node)}
    known = msgspec.json.decode(msgspec.json.encode(node.status))
    differs = {
        key: value
        for key, value in told.items()
        if (not value.items() <= known.get(key, {}).items() if isinstance(value, dict) else value != known.get(key))
    }
    return changes, differs


def unannounced(node: Node) -> dict[str, str]:
    """The extended resources that a user gave the Node as its capacity; a kubelet makes them allocatable."""
    capacity, allocatable = node.status.capacity, node.status.allocatable
    return {name: str(q) for name, q in capacity.items() if is_extended(name) and allocatable.get(name) != q}


# --- health ------------------------------------------------------------------------------------------


def healthy(conditions: Iterable[NodeCondition], *, now: float) -> tuple[NodeCondition, ...]:
    """The conditions of a Node with a healthy kubelet; conditions of other controllers stay."""
    known = {condition.type: condition for condition in conditions}
    text = times.text(now)
    own = []
    for type, status, reason, message in _HEALTHY:
        was = known.pop(type, None)
        if was is not None and (was.status, was.reason) == (status, reason):
            own.append(was)
        else:
            since = was.last_transition_time if was is not None and was.status == status else text
            own.append(NodeCondition(type, status, since, reason, message, last_heartbeat_time=text))
    return (*own, *known.values())


def lost(conditions: Iterable[NodeCondition], *, now: float) -> tuple[NodeCondition, ...]:
    """The conditions of a Node with a silent kubelet: those that the kubelet reported become Unknown."""
    own = {type for type, *_ in _HEALTHY}
    reason, message = _LOST
    return tuple(
        replace(c, status="Unknown", last_transition_time=times.text(now), reason=reason, message=message)
        if c.type in own and c.status != "Unknown"
        else c
        for c in conditions
    )


def taints(node: Node, *, alive: bool, now: float) -> tuple[Taint, ...]:
    """The taints that a Node should have.  Those that a user has set stay."""
    wanted: set[tuple[str, str]] = set()
    if not alive:
        wanted |= {(UNREACHABLE_TAINT, "NoSchedule"), (UNREACHABLE_TAINT, "NoExecute")}
    if node.spec.unschedulable:
        wanted.add((UNSCHEDULABLE_TAINT, "NoSchedule"))
    ours = (NOT_READY_TAINT, UNREACHABLE_TAINT, UNSCHEDULABLE_TAINT)
    kept = [t for t in node.spec.taints if t.key not in ours or (t.key, t.effect) in wanted]
    missing = sorted(wanted - {(t.key, t.effect) for t in kept}, reverse=True)
    return (*kept, *(Taint(key, effect, time_added=times.text(now)) for key, effect in missing))
