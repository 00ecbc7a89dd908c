"""PriorityClass: the number that a Pod's ``priorityClassName`` stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Forbidden, Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import PRIORITY_CLASSES
from seamark.kinds.values.fields import Errors, forbidden, immutable, not_supported
from seamark.kinds.values.refusals import named
from seamark.kinds.values.times import age

PREEMPT = "PreemptLowerPriority"

_HIGHEST = 1_000_000_000  # of those that users define
_RESERVED = "system-"

# The classes that every cluster has.
SYSTEM_VALUES = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_DESCRIPTIONS = {
    "system-node-critical": "Used for system critical pods that must not be moved from their current node.",
    "system-cluster-critical": "Used for system critical pods that must run in the cluster, but can be moved to "
    "another node if necessary.",
}
SYSTEM_CLASSES: tuple[Object, ...] = tuple(
    {"metadata": {"name": name}, "value": value, "description": _DESCRIPTIONS[name]}
    for name, value in SYSTEM_VALUES.items()
)


class PriorityClassKind(Kind):
    resource = PRIORITY_CLASSES
    singular = "priorityclass"
    shape_name = "io.k8s.api.scheduling.v1.PriorityClass"
    short_names = ("pc",)
    columns = (
        Column("Name", format="name"),
        Column("Value", "integer"),
        Column("Global-Default", "boolean"),
        Column("Age"),
        Column("PreemptionPolicy"),
    )

    def default(self, obj: Object) -> None:
        obj.setdefault("preemptionPolicy", PREEMPT)

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1

    def validate(self, obj: Object) -> Errors:
        name, errors = obj["metadata"].get("name", ""), Errors()
        if name.startswith(_RESERVED):
            if wrong := _system_mistake(name, obj):
                sentence = f"priority class names with '{_RESERVED}' prefix are reserved for system use only. error: "
                errors.append(forbidden("metadata.name", sentence + wrong))
        elif obj["value"] > _HIGHEST:
            errors.append(forbidden("value", f"maximum allowed value of a user defined priority is {_HIGHEST}"))
        if obj["preemptionPolicy"] not in (PREEMPT, "Never"):
            errors.append(not_supported("preemptionPolicy", obj["preemptionPolicy"], (PREEMPT, "Never")))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        if obj["value"] != old["value"]:
            errors.append(forbidden("value", "may not be changed in an update."))
        if obj["preemptionPolicy"] != old.get("preemptionPolicy"):
            errors.append(immutable("preemptionPolicy", obj["preemptionPolicy"]))
        return errors

    def check_deletion(self, name: str) -> None:
        if name in SYSTEM_VALUES:
            reason = "this is a system priority class and cannot be deleted"
            details = named(self.resource, name)
            raise Forbidden(f'{self.resource.qualified} "{name}" is forbidden: {reason}', details=details)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [
            meta.get("name", ""),
            obj["value"],
            obj.get("globalDefault", False),
            age(now, meta.get("creationTimestamp")),
            obj.get("preemptionPolicy", ""),
        ]


def _system_mistake(name: str, obj: Object) -> str:
    if name not in SYSTEM_VALUES:
        return f"{name} is not a known system priority class"
    if obj["value"] != SYSTEM_VALUES[name]:
        return f"value of {name} PriorityClass must be {SYSTEM_VALUES[name]}"
    return f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""


PRIORITY_CLASS = PriorityClassKind()
