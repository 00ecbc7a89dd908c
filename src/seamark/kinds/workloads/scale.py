"""The scale of a workload: how many Pods it should have and has, and which they are (autoscaling/v1 Scale)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import CHANGE, View
from seamark.kinds.values.fields import invalid, refuse
from seamark.kinds.values.selectors import from_label_selector, from_pairs
from seamark.kinds.values.times import age

SCALES = Resource("autoscaling", "v1", "scales", "Scale")


class ScaleKind(Kind):
    """What a Scale looks like; it is never stored and has no path of its own, only a subresource's."""

    resource = SCALES
    singular = "scale"
    shape_name = "io.k8s.api.autoscaling.v1.Scale"
    verbs = ()
    columns = (Column("Name"), Column("Desired", "integer"), Column("Available", "integer"), Column("Age"))

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [
            meta["name"],
            obj["spec"].get("replicas", 0),
            obj["status"]["replicas"],
            age(now, meta.get("creationTimestamp")),
        ]


class ScaleView(View, frozen=True):
    """A workload as its Scale: the number of replicas and nothing else."""

    def show(self, kind: Kind, obj: Object) -> Object:
        return of(kind, obj)

    def change(self, kind: Kind, obj: Object, given: Object) -> Object:
        return apply(kind, obj, given)


SCALE = ScaleView(
    "scale", CHANGE, "Scale", group="autoscaling", version="v1", sent=ScaleKind(), shares=(("spec", "replicas"),)
)


def of(kind: Kind, obj: Object) -> Object:
    """The Scale of a workload of this kind."""
    meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    scale: Object = {
        "kind": "Scale",
        "apiVersion": SCALES.api_version,
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {"replicas": spec["replicas"]} if spec.get("replicas") else {},
        "status": {"replicas": status.get("replicas", 0)},
    }
    if selector := _selector_text(kind, spec):
        scale["status"]["selector"] = selector
    return scale


def _selector_text(kind: Kind, spec: Object) -> str:
    selector = spec.get("selector")
    # Only the core group's ReplicationController has a selector of plain pairs.
    return str(from_label_selector(selector) if kind.resource.group else from_pairs(selector or {}))


def apply(kind: Kind, current: Object, given: Object) -> Object:
    """A copy of the workload with the replicas a Scale asks for.

    It carries the version and uid that the Scale names, so that the write fails if they are not the workload's.
    """
    meta, asked = current["metadata"], given.get("metadata") or {}
    replicas = (given.get("spec") or {}).get("replicas", 0)
    if replicas < 0:
        wrong = [invalid("spec.replicas", replicas, "must be greater than or equal to 0")]
        raise refuse(SCALES, meta.get("name", ""), wrong)
    changed = dict(meta)
    for key in ("uid", "resourceVersion"):
        if asked.get(key):
            changed[key] = asked[key]
        else:
            changed.pop(key, None)
    return {**current, "metadata": changed, "spec": {**current["spec"], "replicas": replicas}}
