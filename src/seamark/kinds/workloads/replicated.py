"""What ReplicaSets and ReplicationControllers share: so many Pods from one template, and how they are counted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column
from seamark.kinds.values.fields import Errors
from seamark.kinds.values.times import age
from seamark.kinds.workloads import workload


class Replicated(workload.Workload):
    columns = (
        Column("Name", format="name"),
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        Column("Age"),
        Column("Containers", priority=1),
        Column("Images", priority=1),
        Column("Selector", priority=1),
    )
    new_status = {"replicas": 0}  # noqa: RUF012 - declared in the base class
    counts = (
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "terminatingReplicas",
        "observedGeneration",
    )

    def status_mistakes(self, status: Object) -> Errors:
        parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
        errors = workload.not_more_than(status, parts, "replicas", "status.replicas")
        return errors + workload.not_more_than(status, ("availableReplicas",), "readyReplicas", "readyReplicas")

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            spec.get("replicas", 0),
            status.get("replicas", 0),
            status.get("readyReplicas", 0),
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(spec.get("template")),
            self.selector_cell(spec.get("selector")),
        ]

    def selector_cell(self, selector: Any) -> str:
        """The cell under SELECTOR."""
        return workload.selector_cell(selector)
