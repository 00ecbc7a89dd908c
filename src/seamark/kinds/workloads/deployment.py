"""Deployment: defaults, validation and the row of ``kubectl get deployments``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.resource import DEPLOYMENTS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.times import age
from seamark.kinds.workloads import workload
from seamark.kinds.workloads.scale import SCALE


class DeploymentKind(workload.Workload):
    resource = DEPLOYMENTS
    singular = "deployment"
    shape_name = "io.k8s.api.apps.v1.Deployment"
    short_names = ("deploy",)
    subresources = (SCALE, status_of("Deployment", reset=(("spec",), ("metadata", "labels"))))
    columns = (
        Column("Name", format="name"),
        Column("Ready"),
        Column("Up-to-date"),
        Column("Available"),
        Column("Age"),
        *workload.CONTAINER_COLUMNS,
        workload.SELECTOR_COLUMN,
    )
    counts = (
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    )

    def default_spec(self, spec: Object) -> None:
        super().default_spec(spec)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        ready, limit = spec.get("minReadySeconds", 0), spec.get("revisionHistoryLimit")
        errors = workload.not_negative(spec["replicas"], "spec.replicas")
        errors += workload.selector_mistakes(spec, "deployment")
        errors += workload.replicated_template_mistakes(spec, "ReplicaSet")
        errors += _strategy_mistakes(spec["strategy"])
        errors += workload.not_negative(ready, "spec.minReadySeconds")
        if limit is not None:
            errors += workload.not_negative(limit, "spec.revisionHistoryLimit")
        if (deadline := spec.get("progressDeadlineSeconds")) is not None:
            path = "spec.progressDeadlineSeconds"
            errors += workload.not_negative(deadline, path)
            if deadline <= ready:
                errors.append(invalid(path, deadline, "must be greater than minReadySeconds"))
        return errors

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        obj["metadata"].pop("labels", None)  # a status update may not change the labels of a Deployment
        if labels := old["metadata"].get("labels"):
            obj["metadata"]["labels"] = labels

    def status_mistakes(self, status: Object) -> Errors:
        parts = ("updatedReplicas", "readyReplicas", "availableReplicas")
        errors = workload.not_more_than(status, parts, "replicas", "status.replicas")
        return errors + workload.not_more_than(status, ("availableReplicas",), "readyReplicas", "readyReplicas")

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
            status.get("updatedReplicas", 0),
            status.get("availableReplicas", 0),
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(spec["template"]),
            workload.selector_cell(spec.get("selector")),
        ]


def _strategy_mistakes(strategy: Object) -> Errors:
    path, kind, rolling = "spec.strategy", strategy["type"], strategy.get("rollingUpdate")
    if kind == "Recreate":
        if rolling is None:
            return []
        return [forbidden(f"{path}.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")]
    if kind != "RollingUpdate":
        return [not_supported(path, go_names.DEPLOYMENT_STRATEGY(strategy), ("Recreate", "RollingUpdate"))]
    path = f"{path}.rollingUpdate"
    if rolling is None:
        return [required(path, "this should be defaulted and never be nil")]
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    errors = workload.share_mistakes(unavailable, f"{path}.maxUnavailable")
    errors += workload.share_mistakes(surge, f"{path}.maxSurge")
    if not workload.share_value(unavailable) and not workload.share_value(surge):
        errors.append(invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0"))
    return errors + workload.more_than_all(unavailable, f"{path}.maxUnavailable")


DEPLOYMENT = DeploymentKind()
