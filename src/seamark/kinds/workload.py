"""What workloads share: a selector, a template of Pods, a number of replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.fields import Errors, invalid, required
from seamark.kinds.kind import Subresource
from seamark.kinds.podspec_defaults import default_spec
from seamark.kinds.podspec_validation import template_mistakes
from seamark.kinds.selectors import from_label_selector

_CHANGE = ("get", "patch", "update")
SCALE = Subresource("scale", _CHANGE, "Scale", group="autoscaling", version="v1")


def status_of(kind: str) -> Subresource:
    return Subresource("status", _CHANGE, kind)


def default_template(spec: Object) -> None:
    """Fill in the Pod template of a workload's spec."""
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_spec(template.setdefault("spec", {}))


def begin(obj: Object, status: Object) -> None:
    """A new workload has generation 1 and nothing to report."""
    obj["metadata"]["generation"] = 1
    obj["status"] = status


def carry_on(obj: Object, old: Object) -> None:
    """An update keeps the status, and counts as a new generation if it changes the spec."""
    obj["status"] = old["status"]
    obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + (obj["spec"] != old["spec"])


def not_negative(value: int, path: str) -> Errors:
    return [invalid(path, value, "must be greater than or equal to 0")] if value < 0 else []


def selected_template_mistakes(spec: Object, path: str) -> Errors:
    """What is wrong with a template that the workload's own selector must select."""
    template = spec.get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    errors: Errors = []
    selector = from_label_selector(spec.get("selector"))
    if not selector.empty and not selector.matches(labels):
        errors.append(invalid(f"{path}.metadata.labels", labels, "`selector` does not match template `labels`"))
    return errors + template_mistakes(template, path)


def selector_required(spec: Object, path: str = "spec.selector") -> Errors:
    if spec.get("selector") is None:
        return [required(path)]
    return []


def container_cells(template: Object) -> tuple[str, str]:
    """The cells under CONTAINERS and IMAGES."""
    containers: Sequence[dict[str, Any]] = (template.get("spec") or {}).get("containers") or ()
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def selector_text(selector: Object | None) -> str:
    """A ``matchLabels``/``matchExpressions`` selector as ``kubectl get`` and the scale subresource write it."""
    return str(from_label_selector(selector))
