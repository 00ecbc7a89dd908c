"""RuntimeClass: which container runtime the Pods that name it run in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.pod.resources import container_mistakes, round_up
from seamark.kinds.pod.scheduling import toleration_mistakes
from seamark.kinds.resource import RUNTIME_CLASSES
from seamark.kinds.values.fields import Errors, duplicate, immutable, invalid, required
from seamark.kinds.values.metadata import dns_label, validate_labels
from seamark.kinds.values.times import age

_KEYS = ("key", "operator", "value", "effect")


class RuntimeClassKind(Kind):
    resource = RUNTIME_CLASSES
    singular = "runtimeclass"
    shape_name = "io.k8s.api.node.v1.RuntimeClass"
    columns = (Column("Name", format="name"), Column("Handler"), Column("Age"))
    create_on_update: ClassVar[bool] = True
    unconditional_update: ClassVar[bool] = False

    def default(self, obj: Object) -> None:
        round_up((obj.get("overhead") or {}).get("podFixed") or {})

    def validate(self, obj: Object) -> Errors:
        handler = obj.get("handler", "")
        errors: Errors = []
        if (overhead := obj.get("overhead")) is not None:
            errors += container_mistakes({"limits": overhead.get("podFixed") or {}}, "overhead", set())
        scheduling = obj.get("scheduling") or {}
        errors += validate_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        errors += _toleration_mistakes(scheduling.get("tolerations") or [], "scheduling.tolerations")
        # Declared rules are checked after all others.
        if not handler:
            return [*errors, required("handler")]
        return errors + [invalid("handler", handler, sentence) for sentence in dns_label(handler)]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        fixed = obj.get("handler") == old.get("handler")
        return errors if fixed else [*errors, immutable("handler", None)]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta.get("name", ""), obj.get("handler", ""), age(now, meta.get("creationTimestamp"))]


def _toleration_mistakes(tolerations: list[Object], path: str) -> Errors:
    errors = toleration_mistakes(tolerations, f"{path}.tolerations")  # Kubernetes' own path
    seen = [tuple(toleration.get(key, "") for key in _KEYS) for toleration in tolerations]
    return errors + [
        duplicate(f"{path}[{i}]", toleration) for i, toleration in enumerate(tolerations) if seen[i] in seen[:i]
    ]


RUNTIME_CLASS = RuntimeClassKind()
