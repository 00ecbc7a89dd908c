"""The metrics that a HorizontalPodAutoscaler follows."""

from __future__ import annotations

from collections.abc import Callable

from seamark.errors import Object
from seamark.kinds.pod.resources import container_name_mistakes
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_label, dns_subdomain, path_segment
from seamark.kinds.values.quantity import amount

# The type of a metric → the field that describes it, in the order in which Kubernetes looks at them.
FIELDS = {
    "Object": "object",
    "External": "external",
    "Pods": "pods",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_TYPES = tuple(sorted(FIELDS))
_TARGETS = ("Utilization", "Value", "AverageValue")
_SHOWN = 2
_EITHER = "must set either a target raw value or a target utilization"
_NOT_BOTH = "may not set both a target raw value and a target utilization"


def cpu_metric(percent: int) -> Object:
    """What is followed where no metric is named: how much of the requested CPU is used."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def metrics_mistakes(metrics: list[Object], path: str, least: int | None) -> Errors:
    errors: Errors = []
    for i, metric in enumerate(metrics):
        errors += _metric_mistakes(metric, f"{path}[{i}]")
    if least == 0 and not any(metric.get("type") in ("Object", "External") for metric in metrics):
        sentence = "must specify at least one Object or External metric to support scaling to zero replicas"
        errors.append(forbidden(path, sentence))
    return errors


def _metric_mistakes(metric: Object, path: str) -> Errors:
    errors: Errors = []
    kind = metric.get("type", "")
    if not kind:
        errors.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in FIELDS:
        errors.append(not_supported(f"{path}.type", kind, _TYPES))
    given = [field for field in FIELDS.values() if metric.get(field) is not None]
    if given:
        errors += _RULES[given[0]](metric[given[0]], f"{path}.{given[0]}")
    wanted = FIELDS.get(kind)
    if wanted is not None and wanted not in given:
        errors.append(required(f"{path}.{wanted}", "must populate information for the given metric source"))
    if len(given) > 1:
        others = sorted(set(given) - {wanted})
        errors += [forbidden(f"{path}.{field}", "must populate the given metric source only") for field in others]
    return errors


def target_mistakes(target: Object, path: str, *, any_version: bool) -> Errors:
    """What is wrong with a reference to what is scaled, or with ``any_version`` to what is measured."""
    errors: Errors = []
    for field in ("kind", "name"):
        if word := target.get(field):
            errors += [invalid(f"{path}.{field}", word, sentence) for sentence in path_segment(word)]
        else:
            errors.append(required(f"{path}.{field}"))
    version, at = target.get("apiVersion", ""), f"{path}.apiVersion"
    group, _, _ = version.rpartition("/")
    if version.count("/") > 1:
        errors.append(invalid(at, version, f"unexpected GroupVersion string: {version}"))
    elif group:
        errors += [invalid(at, version, sentence) for sentence in dns_subdomain(group)]
    elif not any_version and target.get("kind") != "ReplicationController":
        errors.append(invalid(at, version, "apiVersion must specify API group"))
    return errors


def _identifier_mistakes(source: Object, path: str) -> Errors:
    metric = source.get("metric") or {}
    if not metric.get("name"):
        return [required(f"{path}.metric.name", "must specify a metric name")]
    errors = [invalid(f"{path}.metric.name", metric["name"], sentence) for sentence in path_segment(metric["name"])]
    return errors + label_selector_mistakes(metric.get("selector"), f"{path}.metric.selector")


def _target_mistakes(source: Object, path: str) -> Errors:
    target, at = source.get("target") or {}, f"{path}.target"
    errors: Errors = []
    kind = target.get("type", "")
    if not kind:
        errors.append(required(f"{at}.type", "must specify a metric target type"))
    if kind not in _TARGETS:
        errors.append(invalid(f"{at}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        if (quantity := target.get(field)) is not None and amount(quantity) <= 0:
            errors.append(invalid(f"{at}.{field}", quantity, "must be positive"))
    if (percent := target.get("averageUtilization")) is not None and percent < 1:
        errors.append(invalid(f"{at}.averageUtilization", percent, "must be greater than 0"))
    return errors


def _has(source: Object, field: str) -> bool:
    return (source.get("target") or {}).get(field) is not None


def _object(source: Object, path: str) -> Errors:
    errors = target_mistakes(source.get("describedObject") or {}, f"{path}.describedObject", any_version=True)
    errors += _identifier_mistakes(source, path) + _target_mistakes(source, path)
    if not _has(source, "value") and not _has(source, "averageValue"):
        errors.append(required(f"{path}.target.averageValue", "must set either a target value or averageValue"))
    return errors


def _external(source: Object, path: str) -> Errors:
    errors = _identifier_mistakes(source, path) + _target_mistakes(source, path)
    if not _has(source, "value") and not _has(source, "averageValue"):
        sentence = "must set either a target value for metric or a per-pod target"
        errors.append(required(f"{path}.target.averageValue", sentence))
    if _has(source, "value") and _has(source, "averageValue"):
        sentence = "may not set both a target value for metric and a per-pod target"
        errors.append(forbidden(f"{path}.target.value", sentence))
    return errors


def _pods(source: Object, path: str) -> Errors:
    errors = _identifier_mistakes(source, path) + _target_mistakes(source, path)
    if not _has(source, "averageValue"):
        errors.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    return errors


def _resource(source: Object, path: str) -> Errors:
    errors = [] if source.get("name") else [required(f"{path}.name", "must specify a resource name")]
    errors += _target_mistakes(source, path)
    if not _has(source, "averageUtilization") and not _has(source, "averageValue"):
        errors.append(required(f"{path}.target.averageUtilization", _EITHER))
    if _has(source, "averageUtilization") and _has(source, "averageValue"):
        errors.append(forbidden(f"{path}.target.averageValue", _NOT_BOTH))
    return errors


def _container_resource(source: Object, path: str) -> Errors:
    errors: Errors = []
    if name := source.get("name"):
        errors += container_name_mistakes(name, f"{path}.name")
    container = source.get("container", "")
    if not container:
        errors.append(required(f"{path}.container", "must specify a container"))
    else:
        errors += [invalid(f"{path}.container", container, sentence) for sentence in dns_label(container)]
    return errors + _resource(source, path)


_RULES: dict[str, Callable[[Object, str], Errors]] = {
    "object": _object,
    "external": _external,
    "pods": _pods,
    "resource": _resource,
    "containerResource": _container_resource,
}


# --- what people see ------------------------------------------------------------------------------------------------


def metrics_cell(metrics: list[Object], measured: list[Object]) -> str:
    """The cell of the column TARGETS: what is measured and what is wanted."""
    if not metrics:
        return "<none>"
    cells = [_cell(metric, measured[i] if i < len(measured) else {}) for i, metric in enumerate(metrics[:_SHOWN])]
    more = f" + {len(metrics) - _SHOWN} more..." if len(metrics) > _SHOWN else ""
    return ", ".join(cells) + more


def _cell(metric: Object, measured: Object) -> str:
    field = FIELDS.get(metric.get("type", ""))
    if field is None or metric.get(field) is None:
        return "<unknown type>"
    target, current = metric[field].get("target") or {}, (measured.get(field) or {}).get("current") or {}
    named = f"{metric[field].get('name', '')}: " if field in ("resource", "containerResource") else ""
    if named and target.get("averageValue") is None:
        percent, now = target.get("averageUtilization"), current.get("averageUtilization")
        shown = "<auto>" if percent is None else f"{percent}%"
        return f"{named}{'<unknown>' if now is None else f'{now}%'}/{shown}"
    if target.get("averageValue") is not None:
        average = " (avg)" if field in ("object", "external") else ""
        return f"{named}{current.get('averageValue') or '<unknown>'}/{target['averageValue']}{average}"
    return f"{current.get('value') or '<unknown>'}/{target.get('value', '0')}"
