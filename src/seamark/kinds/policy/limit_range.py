"""LimitRange: what one container, Pod or claim of a namespace may ask for, and what it gets if it asks for nothing."""

from __future__ import annotations

from typing import ClassVar

from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.pod.resources import container_name_mistakes, may_overcommit, name_mistakes
from seamark.kinds.resource import LIMIT_RANGES
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, required
from seamark.kinds.values.metadata import qualified_name
from seamark.kinds.values.quantity import amount, measure

_TYPES = ("Container", "Pod", "PersistentVolumeClaim")


class LimitRangeKind(Kind):
    resource = LIMIT_RANGES
    singular = "limitrange"
    shape_name = "io.k8s.api.core.v1.LimitRange"
    short_names = ("limits",)
    create_on_update: ClassVar[bool] = True

    def default(self, obj: Object) -> None:
        for item in (obj.get("spec") or {}).get("limits") or ():
            if item.get("type") == "Container":
                limits = {**(item.get("max") or {}), **(item.get("default") or {})}
                requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
                if limits:
                    item["default"] = limits
                if requests:
                    item["defaultRequest"] = requests

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        types: set[str] = set()
        for i, item in enumerate((obj.get("spec") or {}).get("limits") or ()):
            path, kind = f"spec.limits[{i}]", item.get("type", "")
            errors += _type_mistakes(kind, f"{path}.type")
            if kind in types:
                errors.append(duplicate(f"{path}.type", kind))
            types.add(kind)
            errors += _item_mistakes(item, kind, path)
        return errors


def _type_mistakes(kind: str, path: str) -> Errors:
    if sentences := qualified_name(kind):
        return [invalid(path, kind, sentence) for sentence in sentences]
    if "/" not in kind and kind not in _TYPES:
        return [invalid(path, kind, "must be a standard limit type or fully qualified")]
    return []


def _item_mistakes(item: Object, kind: str, path: str) -> Errors:
    errors: Errors = []
    fields = {field: item.get(field) or {} for field in ("max", "min", "default", "defaultRequest")}
    if kind == "Pod":
        for field in ("default", "defaultRequest"):
            if fields.pop(field):
                errors.append(forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
    check = container_name_mistakes if kind in ("Container", "Pod") else name_mistakes
    named = [
        error for field in fields for name in sorted(fields[field]) for error in check(name, f"{path}.{field}[{name}]")
    ]
    errors = named + errors
    if kind == "PersistentVolumeClaim" and not {"storage"} & {*fields["min"], *fields["max"]}:
        sentence = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(required(f"{path}.limits", sentence))
    ratios: dict[str, str] = item.get("maxLimitRequestRatio") or {}
    for name in sorted(ratios):
        errors += check(name, f"{path}.maxLimitRequestRatio[{name}]")
    # Kubernetes looks at the names in random order.
    for name in sorted({*ratios, *(name for amounts in fields.values() for name in amounts)}):
        found = {field: amounts[name] for field, amounts in fields.items() if name in amounts}
        errors += _comparison_mistakes(name, found, path)
        if name in ratios:
            errors += _ratio_mistakes(ratios[name], found, f"{path}.maxLimitRequestRatio[{name}]")
        default, request = found.get("default"), found.get("defaultRequest")
        if default and request and not may_overcommit(name) and amount(default) != amount(request):
            sentence = f"default value {default} must equal to defaultRequest value {request} in {name}"
            errors.append(invalid(f"{path}.defaultRequest[{name}]", request, sentence))
    return errors


# What may not be greater than what: both fields, the field named in the error, the value shown there, and the words.
_COMPARED = (
    ("min", "max", "min", "min", "min value", "max value"),
    ("min", "defaultRequest", "defaultRequest", "defaultRequest", "min value", "default request value"),
    ("defaultRequest", "max", "defaultRequest", "defaultRequest", "default request value", "max value"),
    ("defaultRequest", "default", "defaultRequest", "defaultRequest", "default request value", "default limit value"),
    ("min", "default", "default", "min", "min value", "default value"),
    ("default", "max", "default", "max", "default value", "max value"),
)


def _comparison_mistakes(name: str, found: dict[str, str], path: str) -> Errors:
    return [
        invalid(
            f"{path}.{field}[{name}]",
            found[shown],
            f"{small_words} {found[small]} is greater than {large_words} {found[large]}",
        )
        for small, large, field, shown, small_words, large_words in _COMPARED
        if small in found and large in found and amount(found[small]) > amount(found[large])
    ]


def _ratio_mistakes(ratio: str, found: dict[str, str], path: str) -> Errors:
    errors: Errors = []
    if amount(ratio) < 1:
        errors.append(invalid(path, ratio, f"ratio {ratio} is less than 1"))
    if "min" in found and "max" in found and (least := measure(found["min"])):
        widest = measure(found["max"]) / least
        if measure(ratio) > widest:
            errors.append(invalid(path, ratio, f"ratio {ratio} is greater than max/min = {widest:.6f}"))
    return errors


LIMIT_RANGE = LimitRangeKind()
