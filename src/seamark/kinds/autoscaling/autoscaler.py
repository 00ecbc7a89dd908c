"""HorizontalPodAutoscaler in autoscaling/v2, the version in which it is stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.autoscaling.behaviour import behaviour_mistakes, default_behaviour
from seamark.kinds.autoscaling.metrics import cpu_metric, metrics_cell, metrics_mistakes, target_mistakes
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.resource import AUTOSCALERS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, invalid, required
from seamark.kinds.values.times import age


class AutoscalerKind(CountedKind):
    resource = AUTOSCALERS
    singular = "horizontalpodautoscaler"
    shape_name = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler"
    short_names = ("hpa",)
    categories = ("all",)
    subresources = (status_of("HorizontalPodAutoscaler"),)
    columns = (
        Column("Name", format="name"),
        Column("Reference"),
        Column("Targets"),
        Column("MinPods"),
        Column("MaxPods"),
        Column("Replicas"),
        Column("Age"),
    )
    sibling_versions = ("autoscaling/v1", "autoscaling/v2")
    new_status: ClassVar[Object | None] = {"currentMetrics": None, "desiredReplicas": 0}

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("minReplicas", 1)
        if not spec.get("metrics"):
            spec["metrics"] = [cpu_metric(80)]
        if (behaviour := spec.get("behavior")) is not None:
            default_behaviour(behaviour)

    def validate(self, obj: Object) -> Errors:
        return _spec_mistakes(obj["spec"], None)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return _spec_mistakes(obj["spec"], old["spec"])

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status = obj["status"]
        return [
            invalid(f"status.{field}", status[field], "must be greater than or equal to 0")
            for field in ("currentReplicas", "desiredReplicas")
            if (status.get(field) or 0) < 0
        ]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        target, least = spec.get("scaleTargetRef") or {}, spec.get("minReplicas")
        return [
            meta.get("name", ""),
            f"{target.get('kind', '')}/{target.get('name', '')}",
            metrics_cell(spec.get("metrics") or [], status.get("currentMetrics") or []),
            "<unset>" if least is None else str(least),
            spec.get("maxReplicas", 0),
            status.get("currentReplicas", 0),
            age(now, meta.get("creationTimestamp")),
        ]


def _spec_mistakes(spec: Object, before: Object | None) -> Errors:
    errors: Errors = []
    least, most = spec.get("minReplicas"), spec.get("maxReplicas", 0)
    if least is not None and least < 0:
        errors.append(invalid("spec.minReplicas", least, "must be greater than or equal to 0"))
    if least is not None and most < least:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
    target, was = spec.get("scaleTargetRef") or {}, (before or {}).get("scaleTargetRef") or {}
    errors += target_mistakes(target, "spec.scaleTargetRef", any_version=before is not None and target == was)
    errors += metrics_mistakes(spec.get("metrics") or [], "spec.metrics", least)
    if (behaviour := spec.get("behavior")) is not None:
        errors += behaviour_mistakes(behaviour, "spec.behavior")
    # Declared rules are checked after all others.
    if most == 0:
        errors.append(required("spec.maxReplicas"))
    elif most < 0:
        errors.append(invalid("spec.maxReplicas", most, "must be greater than or equal to 1"))
    return errors


AUTOSCALER = AutoscalerKind()
