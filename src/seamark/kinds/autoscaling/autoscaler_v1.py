"""HorizontalPodAutoscaler in autoscaling/v1, which only knows the use of CPU.

Everything else is in annotations, so that an object survives being read and written in this version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, TypeVar

import msgspec

from seamark.errors import Object
from seamark.kinds.autoscaling.autoscaler import AUTOSCALER
from seamark.kinds.autoscaling.metrics import FIELDS, cpu_metric
from seamark.kinds.counted import CountedKind
from seamark.kinds.language import go_names, inner_json, shapes
from seamark.kinds.language.decode import DecodeError, conform
from seamark.kinds.resource import AUTOSCALERS, AUTOSCALERS_V1
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors

T = TypeVar("T")

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS, _MEASURED, _CONDITIONS, _BEHAVIOUR = (
    _PREFIX + word for word in ("metrics", "current-metrics", "conditions", "behavior")
)
_ANNOTATIONS = {_METRICS, _MEASURED, _CONDITIONS, _BEHAVIOUR}
_TYPES_OF_V2 = AUTOSCALER.shape_name.rpartition(".")[0]
_SPEC = ("maxReplicas", "minReplicas", "scaleTargetRef")
_STATUS = ("observedGeneration", "lastScaleTime", "currentReplicas", "desiredReplicas")


class AutoscalerV1Kind(CountedKind):
    resource = AUTOSCALERS_V1
    singular = AUTOSCALER.singular
    shape_name = "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler"
    short_names = AUTOSCALER.short_names
    categories = AUTOSCALER.categories
    subresources = (status_of("HorizontalPodAutoscaler"),)
    columns = AUTOSCALER.columns
    stored_as = AUTOSCALERS
    sibling_versions = AUTOSCALER.sibling_versions
    new_status: ClassVar[Object | None] = {"currentReplicas": 0, "desiredReplicas": 0}

    def default(self, obj: Object) -> None:
        obj["spec"].setdefault("minReplicas", 1)

    def validate(self, obj: Object) -> Errors:
        return AUTOSCALER.validate(self.to_stored(obj))

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return AUTOSCALER.validate_update(self.to_stored(obj), self.to_stored(old))

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return AUTOSCALER.validate_status(self.to_stored(obj), self.to_stored(old))

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return AUTOSCALER.row(self.to_stored(obj), now)

    def to_stored(self, obj: Object) -> Object:
        spec, status = obj["spec"], obj.get("status") or {}
        meta = dict(obj["metadata"])
        annotations = meta.pop("annotations", None) or {}
        metrics = _list(annotations.get(_METRICS), "MetricSpec", partial(_metric, to=_NEW))
        if (percent := spec.get("targetCPUUtilizationPercentage")) is not None:
            metrics.append(cpu_metric(percent))
        behaviour = _read(annotations.get(_BEHAVIOUR), _behaviour)
        stored_spec = {field: spec[field] for field in _SPEC if field in spec}
        stored_spec["metrics"] = metrics or [cpu_metric(80)]
        if behaviour:
            stored_spec["behavior"] = behaviour
        if kept := {key: value for key, value in annotations.items() if key not in _ANNOTATIONS}:
            meta["annotations"] = kept
        measured = _list(annotations.get(_MEASURED), "MetricStatus", partial(_measurement, to=_NEW))
        stored_status: Object = {field: status[field] for field in _STATUS if status.get(field) not in (None, "")}
        stored_status["currentMetrics"] = measured or None
        stored_status.setdefault("desiredReplicas", 0)
        if not stored_status.get("currentReplicas"):
            stored_status.pop("currentReplicas", None)
        if conditions := _list(annotations.get(_CONDITIONS), "HorizontalPodAutoscalerCondition", _object):
            stored_status["conditions"] = conditions
        return {
            "apiVersion": AUTOSCALERS.api_version,
            "kind": obj.get("kind", AUTOSCALERS.kind),
            "metadata": meta,
            "spec": stored_spec,
            "status": stored_status,
        }

    def from_stored(self, obj: Object) -> Object:
        spec, status = obj["spec"], obj.get("status") or {}
        meta = {**obj["metadata"]}
        annotations = dict(meta.pop("annotations", None) or {})
        shown = {field: spec[field] for field in _SPEC if field in spec}
        others = []
        for metric in spec.get("metrics") or ():
            percent = _cpu(metric)
            if percent is None:
                others.append(_metric(metric, _OLD))
            else:
                shown["targetCPUUtilizationPercentage"] = percent
        if others:
            annotations[_METRICS] = _write(others)
        if (behaviour := spec.get("behavior")) is not None:
            annotations[_BEHAVIOUR] = _write(go_names.SCALING_BEHAVIOUR(behaviour))
        shown_status: Object = {field: status[field] for field in _STATUS if field in status}
        shown_status.setdefault("currentReplicas", 0)
        shown_status.setdefault("desiredReplicas", 0)
        if measured := status.get("currentMetrics"):
            annotations[_MEASURED] = _write([_measurement(found, _OLD) for found in measured])
            used = [(found.get("resource") or {}) for found in measured if found.get("type") == "Resource"]
            for found in used:
                percent = (found.get("current") or {}).get("averageUtilization")
                if found.get("name") == "cpu" and percent is not None:
                    shown_status["currentCPUUtilizationPercentage"] = percent
        if conditions := status.get("conditions"):
            annotations[_CONDITIONS] = _write(conditions)
        if annotations:
            meta["annotations"] = annotations
        return {
            "apiVersion": AUTOSCALERS_V1.api_version,
            "kind": obj.get("kind", AUTOSCALERS.kind),
            "metadata": meta,
            "spec": shown,
            "status": shown_status,
        }


def _cpu(metric: Object) -> int | None:
    """The percentage of CPU that a metric asks for; None if it asks for something else."""
    resource = metric.get("resource") or {}
    if metric.get("type") != "Resource" or resource.get("name") != "cpu":
        return None
    percent: int | None = (resource.get("target") or {}).get("averageUtilization")
    return percent


# --- metrics in the words of the other version ------------------------------------------------------------------------

# (field of a v2 source, field in v1); a target's type follows from the fields it has.
Pairs = tuple[tuple[tuple[str, ...], str], ...]


def _current(path: tuple[str, ...]) -> tuple[str, ...]:
    return ("current", *path[1:]) if path[0] == "target" else path


_PATHS: dict[str, Pairs] = {
    "object": (
        (("describedObject",), "target"),
        (("metric", "name"), "metricName"),
        (("target", "value"), "targetValue"),
        (("metric", "selector"), "selector"),
        (("target", "averageValue"), "averageValue"),
    ),
    "pods": (
        (("metric", "name"), "metricName"),
        (("target", "averageValue"), "targetAverageValue"),
        (("metric", "selector"), "selector"),
    ),
    "external": (
        (("metric", "name"), "metricName"),
        (("metric", "selector"), "metricSelector"),
        (("target", "value"), "targetValue"),
        (("target", "averageValue"), "targetAverageValue"),
    ),
    "resource": (
        (("name",), "name"),
        (("target", "averageUtilization"), "targetAverageUtilization"),
        (("target", "averageValue"), "targetAverageValue"),
    ),
    "containerResource": (
        (("name",), "name"),
        (("target", "averageUtilization"), "targetAverageUtilization"),
        (("target", "averageValue"), "targetAverageValue"),
        (("container",), "container"),
    ),
}
# What was measured is described in the same words, but for "current" instead of "target".
_MEASUREMENTS = {
    kind: tuple(
        (_current(path), old.replace("target", "current", 1) if old != "target" else old) for path, old in pairs
    )
    for kind, pairs in _PATHS.items()
}
_OLD, _NEW = "old", "new"
_TYPES = (("averageUtilization", "Utilization"), ("averageValue", "AverageValue"), ("value", "Value"))


def _metric(metric: Object, to: str) -> Object:
    moved = _moved(metric, _PATHS, to)
    field = FIELDS.get(moved.get("type", ""))
    if to == _NEW and field is not None and (target := moved[field].get("target")) is not None and field in _PATHS:
        target["type"] = next((kind for part, kind in _TYPES if part in target), "Value")
    return moved


def _measurement(metric: Object, to: str) -> Object:
    moved = _moved(metric, _MEASUREMENTS, to)
    if to == _OLD and (pods := moved.get("pods")) is not None:
        pods.pop("selector", None)
    return moved


def _moved(metric: Object, paths: dict[str, Pairs], to: str) -> Object:
    moved: Object = {"type": _object(metric).get("type", "")}
    if not isinstance(moved["type"], str):
        raise DecodeError("not a string")
    field = FIELDS.get(moved["type"])
    if field is None or metric.get(field) is None:
        return moved
    source, made = _object(metric[field]), moved.setdefault(field, {})
    for path, old in paths[field]:
        if to == _OLD:
            value: Any = source
            for part in path:
                value = (value or {}).get(part)
            if value is not None:
                made[old] = value
        elif source.get(old) is not None:
            inner = made
            for part in path[:-1]:
                inner = inner.setdefault(part, {})
            inner[path[-1]] = source[old]
    return moved


def _write(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _read(text: str | None, make: Callable[[Any], T]) -> T | None:
    """What an annotation says, made into what version 2 has; None if that is wrong anywhere, as in Kubernetes."""
    try:
        return make(inner_json.read(text)) if text else None
    except ValueError:
        return None


def _list(text: str | None, type: str, move: Callable[[Any], Object]) -> list[Object]:
    shape = shapes.of(f"{_TYPES_OF_V2}.{type}")

    def made(found: Any) -> list[Object]:
        if not isinstance(found, list):
            raise DecodeError("not a list")
        return [conform(move(each), shape)[0] for each in found]

    return _read(text, made) or []


def _behaviour(found: Any) -> Object:
    return conform(_object(_plain(found)), shapes.of(f"{_TYPES_OF_V2}.HorizontalPodAutoscalerBehavior"))[0]


def _object(found: Any) -> Object:
    """What users write into the annotations may be anything."""
    if not isinstance(found, dict):
        raise DecodeError("not an object")
    return found


def _plain(value: Any) -> Any:
    """Fields under their Go names, renamed as JSON has them; nulls are left out."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _plain(part) for key, part in value.items() if part is not None}
    return value


AUTOSCALER_V1 = AutoscalerV1Kind()
