"""What the cluster adds to every Pod (tolerance of short trouble, a priority, its zone), and what it refuses.

The classes are plug-ins of admission (:mod:`seamark.kinds.admission`).
"""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.admission import Plugin, Request
from seamark.kinds.pod.scheduling import USUAL_TOLERATIONS
from seamark.kinds.resource import NODES, PODS
from seamark.kinds.subresource import LabelsOf
from seamark.kinds.wellknown import REGION_LABEL, ZONE_LABEL

# The classes every cluster has; without a class a Pod has priority 0.
_PRIORITIES = {"system-cluster-critical": 2000000000, "system-node-critical": 2000001000}


def tolerate_briefly(spec: Object) -> None:
    """Every Pod outlasts five minutes of trouble with its node, unless it says something about such trouble itself."""
    tolerations = spec.get("tolerations") or []
    missing = [
        dict(usual)
        for usual in USUAL_TOLERATIONS
        if not any(_covers(toleration, usual["key"]) for toleration in tolerations)
    ]
    if missing:
        spec["tolerations"] = [*tolerations, *missing]


def _covers(toleration: Object, key: str) -> bool:
    return toleration.get("key", "") in (key, "") and toleration.get("effect", "") in ("NoExecute", "")


class Tolerations(Plugin):
    """DefaultTolerationSeconds."""

    resources = frozenset({PODS})
    operations = ("CREATE", "UPDATE")

    def mutate(self, request: Request) -> None:
        tolerate_briefly(request.obj["spec"])


class Priority(Plugin):
    """Sets the priority that the class has; refuses a Pod that sets another one itself."""

    resources = frozenset({PODS})
    operations = ("CREATE", "UPDATE")

    def mutate(self, request: Request) -> None:
        spec = request.obj["spec"]
        if request.old is not None:
            before = request.old["spec"]
            for field in ("priority", "preemptionPolicy"):
                if field not in spec and field in before:
                    spec[field] = before[field]
            return
        name = spec.get("priorityClassName", "")
        priority = _PRIORITIES.get(name) if name else 0
        if priority is None:
            raise request.forbidden(f"no PriorityClass with name {name} was found")
        for field, computed, what in (
            ("priority", priority, "the integer value of priority"),
            ("preemptionPolicy", "PreemptLowerPriority", "the string value of PreemptionPolicy"),
        ):
            if spec.get(field, computed) != computed:
                raise request.forbidden(
                    f"{what} ({spec[field]}) must not be provided in pod spec; priority admission controller computed "
                    f"{computed} from the given PriorityClass name"
                )
            spec[field] = computed


class RuntimeClasses(Plugin):
    """There are no RuntimeClasses here, so no Pod can ask for one, or for the overhead of one."""

    resources = frozenset({PODS})

    def mutate(self, request: Request) -> None:
        spec = request.obj["spec"]
        if spec.get("runtimeClassName"):
            raise request.forbidden(f'pod rejected: RuntimeClass "{spec["runtimeClassName"]}" not found')
        if spec.get("overhead"):
            raise request.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )


class PodTopologyLabels(Plugin):
    """A Pod that is created on a node carries its zone; one that is bound later gets it then."""

    resources = frozenset({PODS})

    def mutate(self, request: Request) -> None:
        copy_topology(request.obj, request.others.labels_of)


def copy_topology(pod: Object, labels_of: LabelsOf) -> None:
    """A Pod on a node carries the node's zone and region as labels, unless it has its own."""
    node = pod["spec"].get("nodeName")
    found = labels_of(NODES, node) if node else None
    if not found:
        return
    labels = pod["metadata"].get("labels") or {}
    copied = {key: found[key] for key in (ZONE_LABEL, REGION_LABEL) if found.get(key) and key not in labels}
    if copied:
        pod["metadata"]["labels"] = {**labels, **copied}
