"""ReplicaSet: a number of Pods from one template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds import workload
from seamark.kinds.fields import Errors
from seamark.kinds.kind import Column
from seamark.kinds.resource import REPLICA_SETS
from seamark.kinds.times import age

COLUMNS = (
    Column("Name", format="name"),
    Column("Desired", "integer"),
    Column("Current", "integer"),
    Column("Ready", "integer"),
    Column("Age"),
    Column("Containers", priority=1),
    Column("Images", priority=1),
    Column("Selector", priority=1),
)
COUNTS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "terminatingReplicas",
    "observedGeneration",
)


def counted_mistakes(status: Object) -> Errors:
    """What ReplicaSets and ReplicationControllers demand of their numbers."""
    parts = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    errors = workload.not_more_than(status, parts, "replicas", "status.replicas")
    return errors + workload.not_more_than(status, ("availableReplicas",), "readyReplicas", "readyReplicas")


class ReplicaSetKind(workload.Workload):
    resource = REPLICA_SETS
    singular = "replicaset"
    shape = "io.k8s.api.apps.v1.ReplicaSet"
    short_names = ("rs",)
    subresources = (workload.SCALE, workload.status_of("ReplicaSet"))
    columns = COLUMNS
    new_status = {"replicas": 0}  # noqa: RUF012 - declared in the base class
    counts = COUNTS

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = workload.not_negative(spec["replicas"], "spec.replicas")
        errors += workload.not_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
        # The sentence names the deployment here too.
        errors += workload.selector_mistakes(spec, "deployment")
        return errors + workload.replicated_template_mistakes(spec, "ReplicaSet")

    def status_mistakes(self, status: Object) -> Errors:
        return counted_mistakes(status)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            spec.get("replicas", 0),
            status.get("replicas", 0),
            status.get("readyReplicas", 0),
            age(now, meta.get("creationTimestamp")),
            *workload.container_cells(spec["template"]),
            workload.selector_cell(spec.get("selector")),
        ]


REPLICA_SET = ReplicaSetKind()
