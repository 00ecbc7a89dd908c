"""RuntimeClass: which container runtime the Pods that name it run in, where those run, and what each costs on top."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.admission import Plugin, Request
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.pod.resources import container_mistakes, round_up
from seamark.kinds.pod.scheduling import toleration_mistakes
from seamark.kinds.pod.warnings import DEPRECATED_LABELS
from seamark.kinds.resource import PODS, RUNTIME_CLASSES
from seamark.kinds.values.fields import Errors, alike, duplicate, immutable, invalid, repeated, required
from seamark.kinds.values.metadata import dns_label, validate_labels
from seamark.kinds.values.quantity import amount
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import HOW_PODS_ARE

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

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        chosen = (obj.get("scheduling") or {}).get("nodeSelector") or {}
        return [f"scheduling.nodeSelector: {DEPRECATED_LABELS[key]}" for key in chosen if key in DEPRECATED_LABELS]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta.get("name", ""), obj.get("handler", ""), age(now, meta.get("creationTimestamp"))]


def _toleration_mistakes(tolerations: list[Object], path: str) -> Errors:
    errors = toleration_mistakes(tolerations, f"{path}.tolerations")  # Kubernetes' own path
    again = repeated(tuple(toleration.get(key, "") for key in _KEYS) for toleration in tolerations)
    return errors + [duplicate(f"{path}[{i}]", go_names.TOLERATION(tolerations[i])) for i in again]


class RuntimeClasses(Plugin):
    """A Pod takes over the overhead, the node selector and the tolerations of the class that it names.

    A class whose handler is one of our two ways to have Pods is remembered on the Pod, for the kubelet.
    """

    resources = frozenset({PODS})

    def mutate(self, request: Request) -> None:
        spec = request.obj["spec"]
        found = self._class_of(request)
        overhead = _overhead(found)
        if overhead is None and spec.get("overhead"):
            raise request.forbidden(
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
            )
        if overhead is not None:
            if spec.get("overhead") is not None and not _equal(spec["overhead"], overhead):
                raise request.forbidden("pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
            spec["overhead"] = overhead
        if found.get("handler") in ("processes", "simulated"):
            request.obj["metadata"].setdefault("annotations", {}).setdefault(HOW_PODS_ARE, found["handler"])
        scheduling = found.get("scheduling") or {}
        if wanted := scheduling.get("nodeSelector"):
            own = spec.get("nodeSelector") or {}
            for key in wanted.keys() & own.keys():
                if wanted[key] != own[key]:
                    raise request.forbidden(
                        f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]}; "
                        f"pod.spec.nodeSelector[{key}] = {own[key]}"
                    )
            spec["nodeSelector"] = {**own, **wanted}
        if tolerations := scheduling.get("tolerations"):
            spec["tolerations"] = _merged([*(spec.get("tolerations") or []), *tolerations])

    def _class_of(self, request: Request) -> Object:
        name = request.obj["spec"].get("runtimeClassName")
        if not name:
            return {}
        found = request.others.get(RUNTIME_CLASSES, name)
        if found is None:
            raise request.forbidden(f'pod rejected: RuntimeClass "{name}" not found')
        return found


def _overhead(runtime_class: Object) -> dict[str, str] | None:
    overhead = runtime_class.get("overhead")
    return None if overhead is None else overhead.get("podFixed") or {}


def _equal(one: dict[str, str], other: dict[str, str]) -> bool:
    return one.keys() == other.keys() and all(amount(one[name]) == amount(other[name]) for name in one)


def _merged(tolerations: list[Object]) -> list[Object]:
    """Without those that a later one covers, which is looked up: there may be thousands in a Pod and in its class."""
    kept: list[Object] = []
    seen: set[bytes] = set()
    longest: dict[tuple[str, str, str | None], float] = {}  # by key, effect and value; None if any value is tolerated
    for each in reversed(tolerations):
        itself = alike(each)
        if itself not in seen and not _covered(each, longest):
            kept.append(each)
        seen.add(itself)
        value = None if each.get("operator") == "Exists" else each.get("value", "")
        place = each.get("key", ""), each.get("effect", ""), value
        seconds = _seconds(each) if each.get("effect") == "NoExecute" else math.inf
        longest[place] = max(seconds, longest.get(place, seconds))
    return kept[::-1]


def _covered(narrow: Object, longest: dict[tuple[str, str, str | None], float]) -> bool:
    """Whether one of these tolerates all that this one does."""
    key, enough = narrow.get("key", ""), _seconds(narrow)
    for effect in ("", narrow.get("effect", "")):
        places: list[tuple[str, str, str | None]] = [(key, effect, None), ("", effect, None)]
        if narrow.get("operator", "Equal") == "Equal":
            places.append((key, effect, narrow.get("value", "")))
        if any(place in longest and longest[place] >= enough for place in places):
            return True
    return False


def _seconds(toleration: Object) -> float:
    """How long it tolerates: for ever if it does not say."""
    seconds = toleration.get("tolerationSeconds")
    return math.inf if seconds is None else float(seconds)


RUNTIME_CLASS = RuntimeClassKind()
