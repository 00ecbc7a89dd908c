"""Nodes, Pods, and which are where, for tests of decisions of the scheduler."""

import msgspec

from seamark.nodes.scheduling.occupancy import Occupancy, occupant
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def node(name, zone="", labels=None, taints=(), ready=True, unschedulable=False, cpu="4", memory="8Gi", pods="110"):
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {HOST: name, **({ZONE: zone} if zone else {}), **(labels or {})}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {
                "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods},
            },
        },
        Node,
    )


def pod(name="new", labels=None, owner="", namespace="default", cpu="", deleting=False, **spec):
    resources = {"requests": {"cpu": cpu}} if cpu else {}
    spec.setdefault("containers", [{"name": "a", "resources": resources}])
    meta = {"name": name, "namespace": namespace, "uid": name, "labels": labels or {}}
    if owner:
        meta["ownerReferences"] = [{"uid": owner, "controller": True}]
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


def picture(nodes, **placed):
    """``placed`` are the Pods of each node; in its keyword names underscores stand for dashes."""
    occupancy = Occupancy()
    for one in nodes:
        occupancy.put_node(one)
    for name, pods in placed.items():
        for one in pods:
            occupancy.put(occupant(one, name.replace("_", "-")))
    return occupancy
