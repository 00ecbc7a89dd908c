"""ReplicaSet, and ReplicationController, its predecessor, whose selector is a plain map of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.resource import REPLICA_SETS, REPLICATION_CONTROLLERS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, required
from seamark.kinds.values.times import age
from seamark.kinds.workloads import workload
from seamark.kinds.workloads.scale import SCALE


class Replicated(workload.Workload):
    """What both kinds share: a number of Pods from one template, and how they are counted and shown."""

    columns = (
        Column("Name", format="name"),
        Column("Desired", "integer"),
        Column("Current", "integer"),
        Column("Ready", "integer"),
        Column("Age"),
        *workload.CONTAINER_COLUMNS,
        workload.SELECTOR_COLUMN,
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
        """The cell of the column SELECTOR."""
        return workload.selector_cell(selector)


class ReplicaSetKind(Replicated):
    resource = REPLICA_SETS
    singular = "replicaset"
    shape_name = "io.k8s.api.apps.v1.ReplicaSet"
    short_names = ("rs",)
    subresources = (SCALE, status_of("ReplicaSet"))

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = workload.not_negative(spec["replicas"], "spec.replicas")
        errors += workload.not_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
        # Kubernetes' message says deployment here too.
        errors += workload.selector_mistakes(spec, "deployment")
        return errors + workload.replicated_template_mistakes(spec, "ReplicaSet")


class ReplicationControllerKind(Replicated):
    resource = REPLICATION_CONTROLLERS
    singular = "replicationcontroller"
    shape_name = "io.k8s.api.core.v1.ReplicationController"
    short_names = ("rc",)
    subresources = (SCALE, status_of("ReplicationController"))
    field_names = ("status.replicas",)
    default_propagation = "Orphan"  # as before there was a garbage collector

    def default(self, obj: Object) -> None:
        spec, meta = obj["spec"], obj["metadata"]
        self.default_spec(spec)
        template = spec.get("template")
        if template is None:
            return
        workload.default_template(spec)
        if labels := template["metadata"].get("labels"):
            if not spec.get("selector"):
                spec["selector"] = dict(labels)
            if not meta.get("labels"):
                meta["labels"] = dict(labels)

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        selector, template = spec.get("selector") or {}, spec.get("template")
        errors = workload.not_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
        if not selector:
            errors.append(required("spec.selector"))
        errors += workload.not_negative(spec["replicas"], "spec.replicas")
        if template is None:
            errors.append(required("spec.template"))
            return errors
        labels = (template.get("metadata") or {}).get("labels") or {}
        if any(labels.get(key) != value for key, value in selector.items()):
            errors.append(workload.unmatched(labels))
        errors += template_mistakes(template, "spec.template")
        return errors + workload.lasting_mistakes(template["spec"], "ReplicationController")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return self.validate(obj)  # unlike those of other workloads, its selector may change

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.replicas": str(obj["status"].get("replicas", 0))}

    def selector_cell(self, selector: Any) -> str:
        return workload.labels_cell(selector)


REPLICA_SET = ReplicaSetKind()
REPLICATION_CONTROLLER = ReplicationControllerKind()
