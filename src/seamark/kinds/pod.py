"""Pod: what it becomes when created, what may change, how it ends, and what people see of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seamark.errors import Object
from seamark.kinds.age import age
from seamark.kinds.fields import Errors
from seamark.kinds.kind import Column, Kind, Subresource
from seamark.kinds.podspec_defaults import default_pod, default_spec
from seamark.kinds.podspec_resources import quality_of_service
from seamark.kinds.podspec_validation import spec_mistakes
from seamark.kinds.resource import PODS

_STREAM = ("create", "get")
_CHANGE = ("get", "patch", "update")


class PodKind(Kind):
    resource = PODS
    singular = "pod"
    shape = "io.k8s.api.core.v1.Pod"
    short_names = ("po",)
    categories = ("all",)
    delete_answers_object = True
    subresources = (
        Subresource("attach", _STREAM, "PodAttachOptions"),
        Subresource("binding", ("create",), "Binding"),
        Subresource("ephemeralcontainers", _CHANGE, "Pod"),
        Subresource("eviction", ("create",), "Eviction", group="policy", version="v1"),
        Subresource("exec", _STREAM, "PodExecOptions"),
        Subresource("log", ("get",), "Pod"),
        Subresource("portforward", _STREAM, "PodPortForwardOptions"),
        Subresource("proxy", ("create", "delete", "get", "patch", "update"), "PodProxyOptions"),
        Subresource("resize", _CHANGE, "Pod"),
        Subresource("status", _CHANGE, "Pod"),
    )
    columns = (
        Column("Name", format="name"),
        Column("Ready"),
        Column("Status"),
        Column("Restarts"),
        Column("Age"),
        Column("IP", priority=1),
        Column("Node", priority=1),
        Column("Nominated Node", priority=1),
        Column("Readiness Gates", priority=1),
    )
    field_names = (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    )

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        default_spec(spec)
        default_pod(spec)
        if status := obj.get("status"):
            _agree_on_addresses(status)

    def prepare_create(self, obj: Object) -> None:
        spec = obj["spec"]
        obj["metadata"]["generation"] = 1
        _tolerate_briefly(spec)
        spec["priority"] = 0
        spec["preemptionPolicy"] = "PreemptLowerPriority"
        obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(spec)}

    def validate(self, obj: Object) -> Errors:
        return spec_mistakes(obj["spec"], "spec")

    def prepare_update(self, obj: Object, old: Object) -> None:
        spec, before = obj["spec"], old["spec"]
        _tolerate_briefly(spec)
        for field in ("priority", "preemptionPolicy"):
            if field not in spec and field in before:
                spec[field] = before[field]
        obj["status"] = old["status"]
        obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + (spec != before)

    def grace_seconds(self, obj: Object, asked: int | None) -> int:
        spec = obj["spec"]
        if not spec.get("nodeName") or obj["status"].get("phase") in ("Failed", "Succeeded"):
            return 0
        grace = asked if asked is not None else spec.get("terminationGracePeriodSeconds") or 0
        return grace if grace >= 0 else 1

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        status, before = obj["status"], old["status"]
        if not status.get("qosClass") and before.get("qosClass"):
            status["qosClass"] = before["qosClass"]

    def fields(self, obj: Object) -> Mapping[str, str]:
        spec, status = obj["spec"], obj["status"]
        addresses = status.get("podIPs")
        return {
            "spec.nodeName": spec.get("nodeName", ""),
            "spec.restartPolicy": spec.get("restartPolicy", ""),
            "spec.schedulerName": spec.get("schedulerName", ""),
            "spec.serviceAccountName": spec.get("serviceAccountName", ""),
            "spec.hostNetwork": "true" if spec.get("hostNetwork") else "false",
            "status.phase": status.get("phase", ""),
            "status.podIP": addresses[0].get("ip", "") if addresses else "",
            "status.nominatedNodeName": status.get("nominatedNodeName", ""),
        }

    def row(self, obj: Object, now: float) -> list[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        return [
            meta.get("name", ""),
            f"0/{len(spec['containers'])}",
            status.get("phase", ""),
            "0",
            age(meta.get("creationTimestamp"), now),
            status.get("podIP") or "<none>",
            spec.get("nodeName") or "<none>",
            status.get("nominatedNodeName") or "<none>",
            "<none>",
        ]


def _agree_on_addresses(status: Object) -> None:
    """``podIP`` is the first of ``podIPs`` and ``hostIP`` of ``hostIPs``; where they differ the single one wins."""
    for one, many in (("podIP", "podIPs"), ("hostIP", "hostIPs")):
        first, listed = status.get(one), status.get(many)
        if first and (not listed or listed[0].get("ip") != first):
            status[many] = [{"ip": first}]
        elif listed and not first and listed[0].get("ip"):
            status[one] = listed[0]["ip"]


def _tolerate_briefly(spec: Object) -> None:
    """Every Pod outlasts five minutes of trouble with its node, unless it says something about such trouble itself."""
    tolerations = spec.get("tolerations") or []
    missing = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
        if not any(t.get("key", "") in (key, "") and t.get("effect", "") in ("NoExecute", "") for t in tolerations)
    ]
    if missing:
        spec["tolerations"] = [*tolerations, *missing]


POD = PodKind()
