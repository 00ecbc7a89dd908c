"""Deployment: defaults, rules and the line ``kubectl get deployments`` shows."""

from __future__ import annotations

from typing import Any

from seamark.errors import Object
from seamark.kinds import workload
from seamark.kinds.fields import Errors, invalid, not_supported
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import DEPLOYMENTS
from seamark.kinds.times import age


class DeploymentKind(Kind):
    resource = DEPLOYMENTS
    singular = "deployment"
    shape = "io.k8s.api.apps.v1.Deployment"
    short_names = ("deploy",)
    categories = ("all",)
    subresources = (workload.SCALE, workload.status_of("Deployment"))
    columns = (
        Column("Name", format="name"),
        Column("Ready"),
        Column("Up-to-date"),
        Column("Available"),
        Column("Age"),
        Column("Containers", priority=1),
        Column("Images", priority=1),
        Column("Selector", priority=1),
    )

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        spec.setdefault("replicas", 1)
        spec.setdefault("revisionHistoryLimit", 10)
        spec.setdefault("progressDeadlineSeconds", 600)
        strategy = spec.setdefault("strategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", "25%")
            rolling.setdefault("maxSurge", "25%")
        workload.default_template(spec)
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object) -> None:
        workload.begin(obj, {})

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = workload.not_negative(spec["replicas"], "spec.replicas")
        errors += workload.selector_required(spec)
        errors += workload.selected_template_mistakes(spec, "spec.template")
        if spec["strategy"]["type"] not in ("Recreate", "RollingUpdate"):
            errors.append(not_supported("spec.strategy", spec["strategy"], ("Recreate", "RollingUpdate")))
        return errors

    def prepare_update(self, obj: Object, old: Object) -> None:
        workload.carry_on(obj, old)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        if obj["spec"].get("selector") != old["spec"].get("selector"):
            errors.append(invalid("spec.selector", obj["spec"].get("selector"), "field is immutable"))
        return errors

    def row(self, obj: Object, now: float) -> list[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
            status.get("updatedReplicas", 0),
            status.get("availableReplicas", 0),
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(spec["template"]),
            workload.selector_text(spec.get("selector")),
        ]


DEPLOYMENT = DeploymentKind()
