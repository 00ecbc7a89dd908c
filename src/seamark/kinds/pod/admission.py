"""What the cluster adds to every Pod: tolerance of short trouble, and its zone.

The classes are plug-ins of admission (:mod:`seamark.kinds.admission`).
"""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.admission import Others, Plugin, Request
from seamark.kinds.pod.scheduling import USUAL_TOLERATIONS
from seamark.kinds.resource import NODES, PODS
from seamark.kinds.wellknown import REGION_LABEL, ZONE_LABEL


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


class PodTopologyLabels(Plugin):
    """A Pod that is created on a node carries its zone; one that is bound later gets it then."""

    resources = frozenset({PODS})

    def mutate(self, request: Request) -> None:
        copy_topology(request.obj, request.others)


def copy_topology(pod: Object, others: Others) -> None:
    """A Pod on a node carries the node's zone and region as labels, unless it has its own."""
    node = pod["spec"].get("nodeName")
    found = others.labels_of(NODES, node) if node else None
    if not found:
        return
    labels = pod["metadata"].get("labels") or {}
    copied = {key: found[key] for key in (ZONE_LABEL, REGION_LABEL) if found.get(key) and key not in labels}
    if copied:
        pod["metadata"]["labels"] = {**labels, **copied}
