"""ReplicaSet: a number of Pods from one template."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.resource import REPLICA_SETS
from seamark.kinds.values.fields import Errors
from seamark.kinds.workloads import workload
from seamark.kinds.workloads.replicated import Replicated


class ReplicaSetKind(Replicated):
    resource = REPLICA_SETS
    singular = "replicaset"
    shape_name = "io.k8s.api.apps.v1.ReplicaSet"
    short_names = ("rs",)
    subresources = (workload.SCALE, workload.status_of("ReplicaSet"))

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = workload.not_negative(spec["replicas"], "spec.replicas")
        errors += workload.not_negative(spec.get("minReadySeconds", 0), "spec.minReadySeconds")
        # The sentence names the deployment here too.
        errors += workload.selector_mistakes(spec, "deployment")
        return errors + workload.replicated_template_mistakes(spec, "ReplicaSet")


REPLICA_SET = ReplicaSetKind()
