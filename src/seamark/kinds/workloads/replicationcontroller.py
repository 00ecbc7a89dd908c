"""ReplicationController: what ReplicaSets were before; its selector is plain pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seamark.errors import Object
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.resource import REPLICATION_CONTROLLERS
from seamark.kinds.values.fields import Errors, required
from seamark.kinds.workloads import workload
from seamark.kinds.workloads.replicated import Replicated


class ReplicationControllerKind(Replicated):
    resource = REPLICATION_CONTROLLERS
    singular = "replicationcontroller"
    shape_name = "io.k8s.api.core.v1.ReplicationController"
    short_names = ("rc",)
    subresources = (workload.SCALE, workload.status_of("ReplicationController"))
    field_names = ("status.replicas",)

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
        return self.validate(obj)  # its selector, unlike those of others, may change

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"status.replicas": str(obj["status"].get("replicas", 0))}

    def selector_cell(self, selector: Any) -> str:
        return workload.labels_cell(selector)


REPLICATION_CONTROLLER = ReplicationControllerKind()
