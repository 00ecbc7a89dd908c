"""DaemonSet: one Pod per node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.resource import DAEMON_SETS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes, printed
from seamark.kinds.values.numbers import int64
from seamark.kinds.values.times import age
from seamark.kinds.workloads import workload

# This annotation counts changes of the template; before apps/v1 it was a field.
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


class DaemonSetKind(workload.Workload):
    resource = DAEMON_SETS
    singular = "daemonset"
    shape_name = "io.k8s.api.apps.v1.DaemonSet"
    short_names = ("ds",)
    names_pods = False
    subresources = (status_of("DaemonSet"),)
    columns = (
        Column("Name", format="name"),
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        Column("Up-to-date", "integer"),
        Column("Available", "integer"),
        Column("Node Selector"),
        Column("Age"),
        *workload.CONTAINER_COLUMNS,
        workload.SELECTOR_COLUMN,
    )
    new_status = {  # noqa: RUF012 - declared in the base class
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 0,
        "numberReady": 0,
    }
    counts = (
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    )

    def default_spec(self, spec: Object) -> None:
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
        if strategy["type"] == "RollingUpdate":
            rolling = strategy.setdefault("rollingUpdate", {})
            rolling.setdefault("maxUnavailable", 1)
            rolling.setdefault("maxSurge", 0)
        spec.setdefault("revisionHistoryLimit", 10)

    def prepare_create(self, obj: Object) -> None:
        super().prepare_create(obj)
        _annotate(obj, 1)

    def prepare_update(self, obj: Object, old: Object) -> None:
        super().prepare_update(obj, old)
        before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "0")
        _annotate(obj, (int64(before) or 0) + (obj["spec"]["template"] != old["spec"]["template"]))

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
        if before is not None:
            _annotate(obj, int64(before) or 0)

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        selector, template, limit = spec.get("selector"), spec["template"], spec.get("revisionHistoryLimit")
        errors = label_selector_mistakes(selector, "spec.selector")
        errors += workload.unselected_mistakes(spec)
        if selector is not None and not selector.get("matchLabels") and not selector.get("matchExpressions"):
            errors.append(invalid("spec.selector", printed(selector), "empty selector is invalid for daemonset"))
        errors += template_mistakes(template, "spec.template")
        errors += workload.lasting_mistakes(template["spec"], "DaemonSet")
        errors += workload.not_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
        errors += _strategy_mistakes(spec["updateStrategy"])
        if limit is not None:
            errors += workload.not_negative(limit, "spec.revisionHistoryLimit")
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        template = spec["template"]
        return [
            meta.get("name", ""),
            status.get("desiredNumberScheduled", 0),
            status.get("currentNumberScheduled", 0),
            status.get("numberReady", 0),
            status.get("updatedNumberScheduled", 0),
            status.get("numberAvailable", 0),
            workload.labels_cell(template["spec"].get("nodeSelector")),
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(template),
            workload.selector_cell(spec.get("selector")),
        ]


def _annotate(obj: Object, generation: int) -> None:
    meta = obj["metadata"]
    meta["annotations"] = {**(meta.get("annotations") or {}), TEMPLATE_GENERATION: str(generation)}


def _strategy_mistakes(strategy: Object) -> Errors:
    path, kind, rolling = "spec.updateStrategy", strategy["type"], strategy.get("rollingUpdate")
    if kind == "OnDelete":
        return []
    if kind != "RollingUpdate":
        return [not_supported(path, go_names.DEPLOYMENT_STRATEGY(strategy), ("RollingUpdate", "OnDelete"))]
    if rolling is None:
        return [required(f"{path}.rollingUpdate")]
    path = f"{path}.rollingUpdate"
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    errors = workload.share_mistakes(unavailable, f"{path}.maxUnavailable")
    errors += workload.share_mistakes(surge, f"{path}.maxSurge")
    errors += workload.more_than_all(unavailable, f"{path}.maxUnavailable")
    errors += workload.more_than_all(surge, f"{path}.maxSurge")
    if workload.share_value(unavailable) and workload.share_value(surge):
        errors.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not workload.share_value(unavailable) and not workload.share_value(surge):
        errors.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


DAEMON_SET = DaemonSetKind()
