"""Node: validation of taints, Pod ranges and resources, and the row of ``kubectl get nodes``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.pod.resources import quantity_mistakes
from seamark.kinds.pod.scheduling import TAINT_EFFECTS
from seamark.kinds.resource import NODES
from seamark.kinds.subresource import proxy, status_of
from seamark.kinds.values import metadata
from seamark.kinds.values.addresses import both_families, cidr_mistakes, cidr_warnings
from seamark.kinds.values.fields import (
    Errors,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    repeated,
    required,
)
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import NOT_READY_TAINT

UNKNOWN = "<unknown>"


class NodeKind(Kind):
    resource = NODES
    singular = "node"
    shape_name = "io.k8s.api.core.v1.Node"
    short_names = ("no",)
    subresources = (
        proxy("NodeProxyOptions"),
        status_of("Node"),
    )
    columns = (
        Column("Name", format="name"),
        Column("Status"),
        Column("Roles"),
        Column("Age"),
        Column("Version"),
        Column("Internal-IP", priority=1),
        Column("External-IP", priority=1),
        Column("OS-Image", priority=1),
        Column("Kernel-Version", priority=1),
        Column("Container-Runtime", priority=1),
    )
    field_names = ("spec.unschedulable",)

    def default(self, obj: Object) -> None:
        spec, status = obj["spec"], obj["status"]
        _agree_on_pod_ranges(spec)
        if status.get("capacity") and "allocatable" not in status:
            status["allocatable"] = dict(status["capacity"])

    def prepare_create(self, obj: Object) -> None:
        _drop_config(obj, {})
        # A new Node gets no Pods until a controller removes this taint, whatever its status says.
        taints = obj["spec"].get("taints") or []
        if not any((taint.get("key"), taint.get("effect")) == (NOT_READY_TAINT, "NoSchedule") for taint in taints):
            obj["spec"]["taints"] = [*taints, {"key": NOT_READY_TAINT, "effect": "NoSchedule"}]

    def validate(self, obj: Object) -> Errors:
        errors = taint_mistakes(obj["spec"].get("taints") or (), "metadata.taints")
        errors += _resource_mistakes(obj["status"])
        return errors + _pod_range_mistakes(obj["spec"].get("podCIDRs") or [])

    def prepare_update(self, obj: Object, old: Object) -> None:
        obj["status"] = old["status"]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        return errors + _change_mistakes(obj, old)

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        _drop_config(obj, old.get("status") or {})

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return _change_mistakes(obj, old)

    # --- what people see -----------------------------------------------------------------------------

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec = obj["spec"]
        sentences = []
        if spec.get("configSource") is not None:
            sentences.append("spec.configSource: the feature is no longer supported")
        if spec.get("externalID"):
            sentences.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
        for i, text in enumerate(spec.get("podCIDRs") or ()):
            sentences += cidr_warnings(f"spec.podCIDRs[{i}]", text)
        return sentences

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"spec.unschedulable": "true" if obj["spec"].get("unschedulable") else "false"}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, status = obj["metadata"], obj["status"]
        info = status.get("nodeInfo") or {}
        kernel = info.get("kernelVersion") or UNKNOWN
        if kernel != UNKNOWN and info.get("architecture"):
            kernel = f"{kernel} ({info['architecture']})"
        return [
            meta.get("name", ""),
            _state(obj),
            ",".join(_roles(meta)) or "<none>",
            age(now, meta.get("creationTimestamp")),
            info.get("kubeletVersion", ""),
            _address(status, "InternalIP"),
            _address(status, "ExternalIP"),
            info.get("osImage") or UNKNOWN,
            kernel,
            info.get("containerRuntimeVersion") or UNKNOWN,
        ]


def _drop_config(obj: Object, before: Object) -> None:
    """Drop what a kubelet said of its configuration by ConfigMaps, which is gone; what was stored may stay."""
    if before.get("config") is None:
        obj["status"].pop("config", None)


def _agree_on_pod_ranges(spec: Object) -> None:
    """Make ``podCIDR`` the first of ``podCIDRs``; if they differ, ``podCIDR`` wins, because old clients set only it."""
    first, ranges = spec.get("podCIDR"), spec.get("podCIDRs")
    if first and (not ranges or ranges[0] != first):
        spec["podCIDRs"] = [first]
    elif ranges and not first:
        spec["podCIDR"] = ranges[0]


def taint_mistakes(taints: Sequence[Object], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for i, taint in enumerate(taints):
        at = f"{path}[{i}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += [invalid(f"{at}.key", key, sentence) for sentence in metadata.qualified_name(key)]
        if sentences := metadata.label_value(value):
            errors.append(invalid(f"{at}.value", value, ";".join(sentences)))
        if not effect:
            errors.append(required(f"{at}.effect"))
        elif effect not in TAINT_EFFECTS:
            errors.append(not_supported(f"{at}.effect", effect, TAINT_EFFECTS))
        if (key, effect) in seen:
            twice = duplicate(at, go_names.TAINT(taint))
            errors.append(
                FieldError(at, twice.reason, f"{twice.message}: taints must be unique by key and effect pair")
            )
        seen.add((key, effect))
    return errors


def _resource_mistakes(status: Object) -> Errors:
    errors: Errors = []
    for key in ("capacity", "allocatable"):
        for name, quantity in sorted((status.get(key) or {}).items()):
            errors += quantity_mistakes(name, quantity, f"status.{key}.{name}")
    return errors


def _pod_range_mistakes(ranges: list[str]) -> Errors:
    errors: Errors = []
    path = "spec.podCIDRs"
    for i, text in enumerate(ranges):
        errors += [invalid(f"{path}[{i}]", text, sentence) for sentence in cidr_mistakes(text)]
    if len(ranges) > 1:
        if len(ranges) > 2 or not both_families(ranges):
            errors.append(invalid(path, ranges, "may specify no more than one CIDR for each IP family"))
        errors += [duplicate(f"{path}[{i}]", ranges[i]) for i in repeated(ranges)]
    return errors


def _change_mistakes(obj: Object, old: Object) -> Errors:
    errors = _resource_mistakes(obj["status"])
    seen = set()
    for i, address in enumerate(obj["status"].get("addresses") or ()):
        pair = (address.get("type", ""), address.get("address", ""))
        if pair in seen:
            errors.append(duplicate(f"status.addresses[{i}]", go_names.NODE_ADDRESS(address)))
        seen.add(pair)
    before, after = old["spec"], obj["spec"]
    had, has = before.get("podCIDRs") or [], after.get("podCIDRs") or []
    if had:
        changes = 1 if len(had) != len(has) else sum(a != b for a, b in zip(had, has, strict=True))
        errors += [forbidden("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')] * changes
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        errors.append(forbidden("spec.providerID", 'node updates may not change providerID except from "" to valid'))
    errors += taint_mistakes(after.get("taints") or (), "metadata.taints")
    if before.get("externalID") != after.get("externalID"):
        errors.append(forbidden("spec.externalID", "may not be updated"))
    return errors


def _state(obj: Object) -> str:
    conditions = {c.get("type"): c.get("status") for c in obj["status"].get("conditions") or ()}
    words = [("Ready" if conditions["Ready"] == "True" else "NotReady") if "Ready" in conditions else "Unknown"]
    if obj["spec"].get("unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def _roles(meta: Object) -> list[str]:
    roles = set()
    for key, value in (meta.get("labels") or {}).items():
        if key.startswith("node-role.kubernetes.io/"):
            roles.add(key.removeprefix("node-role.kubernetes.io/"))
        elif key == "kubernetes.io/role":
            roles.add(value)
    return sorted(role for role in roles if role)


def _address(status: Object, kind: str) -> str:
    return next((a.get("address", "") for a in status.get("addresses") or () if a.get("type") == kind), "<none>")


NODE = NodeKind()
