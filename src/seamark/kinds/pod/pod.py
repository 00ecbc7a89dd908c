"""Pod: its rules for creation, update, status and deletion; the details are in the other modules of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.pod import row as pod_row
from seamark.kinds.pod import selector_fields
from seamark.kinds.pod.binding import BIND, EVICT
from seamark.kinds.pod.defaults import default_pod, default_spec
from seamark.kinds.pod.resources import quality_of_service
from seamark.kinds.pod.scheduling import merge_label_keys
from seamark.kinds.pod.status import agree_on_addresses, keep_observed_generations, own_texts, status_mistakes
from seamark.kinds.pod.update import ephemeral_mistakes, prepare_resize, resize_mistakes, update_mistakes
from seamark.kinds.pod.validation import new_pod_mistakes
from seamark.kinds.pod.warnings import spec_warnings
from seamark.kinds.resource import PODS
from seamark.kinds.subresource import CHANGE, STREAM, Part, Subresource, proxy, status_of
from seamark.kinds.values.addresses import ip_warnings
from seamark.kinds.values.fields import Errors
from seamark.kinds.values.metadata import dns_label, keep_accessories


class EphemeralContainers(Part, frozen=True):
    """Where ``kubectl debug`` adds a container to a running Pod."""

    def prepare(self, kind: Kind, obj: Object, old: Object) -> None:
        keep_accessories(obj["metadata"], old["metadata"])
        obj["status"] = old["status"]
        containers = obj["spec"].get("ephemeralContainers")
        obj["spec"] = {key: value for key, value in old["spec"].items() if key != "ephemeralContainers"}
        if containers:
            obj["spec"]["ephemeralContainers"] = containers
        _count_change(obj, old)

    def validate(self, kind: Kind, obj: Object, old: Object) -> Errors:
        return ephemeral_mistakes(obj, old)


class Resize(Part, frozen=True):
    """Where the resources of a running Pod's containers change."""

    def prepare(self, kind: Kind, obj: Object, old: Object) -> None:
        keep_accessories(obj["metadata"], old["metadata"])
        obj["status"] = old["status"]
        prepare_resize(obj, old)
        _count_change(obj, old)

    def validate(self, kind: Kind, obj: Object, old: Object) -> Errors:
        return resize_mistakes(obj, old)


_RESIZED = tuple(
    ("spec", containers, "*", field)
    for containers in ("containers", "initContainers")
    for field in ("resources", "resizePolicy")
)


class PodKind(Kind):
    resource = PODS
    singular = "pod"
    shape_name = "io.k8s.api.core.v1.Pod"
    short_names = ("po",)
    categories = ("all",)
    delete_answers_object = True
    graceful = True
    has_twins = True
    subresources = (
        Subresource("attach", STREAM, "PodAttachOptions"),
        BIND,
        EphemeralContainers("ephemeralcontainers", CHANGE, "Pod", edits=(("spec", "ephemeralContainers"),)),
        EVICT,
        Subresource("exec", STREAM, "PodExecOptions"),
        Subresource("log", ("get",), "Pod"),
        Subresource("portforward", STREAM, "PodPortForwardOptions"),
        proxy("PodProxyOptions"),
        Resize("resize", CHANGE, "Pod", edits=_RESIZED),
        status_of("Pod", reset=(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences"))),
    )
    columns = pod_row.COLUMNS
    field_names = selector_fields.NAMES

    # --- create ------------------------------------------------------------------------------------

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        default_spec(spec)
        default_pod(spec)
        self.default_status(obj)

    def default_status(self, obj: Object) -> None:
        if status := obj.get("status"):
            agree_on_addresses(status)

    def prepare_create(self, obj: Object) -> None:
        spec, meta = obj["spec"], obj["metadata"]
        meta["generation"] = 1
        status: Object = {"phase": "Pending", "qosClass": quality_of_service(spec)}
        if spec.get("schedulingGates"):
            status["conditions"] = [_gated(meta.get("creationTimestamp"))]
        obj["status"] = status
        if spec.get("affinity") or spec.get("topologySpreadConstraints"):
            merge_label_keys(obj)

    def validate(self, obj: Object) -> Errors:
        return new_pod_mistakes(obj)

    # --- update ------------------------------------------------------------------------------------

    def prepare_update(self, obj: Object, old: Object) -> None:
        obj["status"] = old["status"]
        _count_change(obj, old)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return update_mistakes(obj, old)

    # --- status ------------------------------------------------------------------------------------

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        meta, status, before = obj["metadata"], obj["status"], old["status"]
        # Old kubelets corrupt ownerReferences in status updates, which would break garbage collection.
        meta.pop("ownerReferences", None)
        if owners := old["metadata"].get("ownerReferences"):
            meta["ownerReferences"] = owners
        if not status.get("qosClass") and before.get("qosClass"):
            status["qosClass"] = before["qosClass"]
        keep_observed_generations(status, before)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return status_mistakes(obj, old)

    def own_texts(self, status: bytes) -> dict[bytes, str] | None:
        return own_texts(status)

    # --- deletion ----------------------------------------------------------------------------------

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        spec = obj["spec"]
        if not spec.get("nodeName") or obj["status"].get("phase") in ("Failed", "Succeeded"):
            return 0  # there is no running container for a kubelet to stop
        grace = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        return grace if grace >= 0 else 1

    # --- what people see ---------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        if old is not None:
            return []
        name = obj["metadata"].get("name", "")
        sentences = []
        if wrong := dns_label(name):
            # Go prints a list in brackets.
            sentences.append(
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS "
                f"label is recommended: [{' '.join(wrong)}]"
            )
        return sentences + spec_warnings(obj["metadata"], obj["spec"], "")

    def status_warnings(self, obj: Object) -> list[str]:
        """Warnings about addresses that are not written in the usual way."""
        status = obj["status"]
        return [
            sentence
            for field in ("podIPs", "hostIPs")
            for i, entry in enumerate(status.get(field) or ())
            for sentence in ip_warnings(f"status.{field}[{i}].ip", entry.get("ip", ""))
        ]

    def fields(self, obj: Object) -> Mapping[str, str]:
        return selector_fields.of(obj)

    def fields_in(self, value: bytes) -> Mapping[str, str]:
        return selector_fields.of_stored(value)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return pod_row.row(obj, now)

    def row_conditions(self, obj: Object) -> Sequence[Object]:
        return pod_row.conditions(obj)


def _count_change(obj: Object, old: Object) -> None:
    generation = old["metadata"].get("generation", 0) + (obj["spec"] != old["spec"])
    if generation:
        obj["metadata"]["generation"] = generation


def _gated(now: str | None) -> Object:
    return {
        "type": "PodScheduled",
        "status": "False",
        "lastProbeTime": None,
        "lastTransitionTime": now,
        "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    }


POD = PodKind()
