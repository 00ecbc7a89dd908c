"""Rules that all workloads share: selector, Pod template, replicas, and the counters of their status."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind, same_generation
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.pod.defaults import default_spec
from seamark.kinds.pod.validation import template_mistakes
from seamark.kinds.pod.warnings import spec_warnings
from seamark.kinds.values.fields import Errors, FieldError, forbidden, immutable, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes, printed, readable
from seamark.kinds.values.metadata import dns_label
from seamark.kinds.values.numbers import LARGEST, int64

_percent = re.compile("[0-9]+%")


class Workload(CountedKind):
    """A kind that makes Pods from a template.

    ``counts`` are the counters of its status, in the order in which they are validated; none may be negative.
    ``names_pods``: its name becomes part of its Pods' names, so a name that is not a DNS label gets a warning.
    """

    categories = ("all",)
    new_status: ClassVar[Object | None] = {}
    counts: ClassVar[tuple[str, ...]] = ()
    names_pods: ClassVar[bool] = True

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        self.default_spec(spec)
        default_template(spec)

    def default_spec(self, spec: Object) -> None:
        """Fill in the spec, without its template."""
        spec.setdefault("replicas", 1)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return self.validate(obj) + fixed_mistakes(obj, old, ("selector",))

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status = obj["status"]
        errors: Errors = []
        for field in self.counts:
            if status.get(field) is not None:
                errors += not_negative(status[field], f"status.{field}")
        errors += self.status_mistakes(status)
        before, after = old["status"].get("collisionCount"), status.get("collisionCount")
        if before is not None and (after is None or after < before):
            errors.append(invalid("status.collisionCount", after or 0, "cannot be decremented"))
        return errors

    def status_mistakes(self, status: Object) -> Errors:
        """Validate the counters of the status against each other."""
        return []

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        meta, template = obj["metadata"], obj["spec"].get("template")
        if same_generation(obj, old):
            return []
        sentences: list[str] = []
        if old is None and self.names_pods and (wrong := dns_label(meta.get("name", ""))):
            # Go prints a list in brackets.
            sentences.append(
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a "
                f"DNS label is recommended: [{' '.join(wrong)}]"
            )
        if template is not None:
            sentences += spec_warnings(template.get("metadata") or {}, template["spec"], "spec.template")
        return sentences


def default_template(spec: Object) -> None:
    """Fill in the Pod template of a workload's spec."""
    template = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_spec(template.setdefault("spec", {}))


def not_negative(value: int, path: str) -> Errors:
    return [invalid(path, value, "must be greater than or equal to 0")] if value < 0 else []


def not_more_than(status: Object, fields: Sequence[str], whole: str, said: str) -> Errors:
    """No field may be greater than the field ``whole``; ``said`` is its name in the message."""
    limit = status.get(whole, 0)
    return [
        invalid(f"status.{field}", status.get(field, 0), f"cannot be greater than {said}")
        for field in fields
        if status.get(field, 0) > limit
    ]


def fixed_mistakes(obj: Object, old: Object, fields: Sequence[str]) -> Errors:
    """Errors about fields of the spec that changed but are immutable."""
    after, before = obj["spec"], old["spec"]
    printers = {"selector": printed, "volumeClaimTemplates": go_names.CLAIMS}
    return [
        immutable(f"spec.{field}", printers[field](after.get(field)) if field in printers else after.get(field))
        for field in fields
        if after.get(field) != before.get(field)
    ]


def selector_mistakes(spec: Object, what: str) -> Errors:
    selector = spec.get("selector")
    if selector is None:
        return [required("spec.selector")]
    errors = label_selector_mistakes(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        errors.append(invalid("spec.selector", printed(selector), f"empty selector is invalid for {what}"))
    return errors


def replicated_template_mistakes(spec: Object, what: str) -> Errors:
    """Validate the template of a Deployment or ReplicaSet, which its selector must match; ``what`` is the kind."""
    selector = readable(spec.get("selector"))
    if selector is None:
        return [invalid("spec.selector", printed(spec.get("selector")), "invalid label selector")]
    template = spec["template"]
    errors = [] if selector.empty else unselected_mistakes(spec)
    errors += template_mistakes(template, "spec.template")
    return errors + lasting_mistakes(template["spec"], what)


def unselected_mistakes(spec: Object) -> Errors:
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    selector = readable(spec.get("selector"))
    return [] if selector is None or selector.matches(labels) else [unmatched(labels)]


def unmatched(labels: dict[str, str]) -> FieldError:
    shown = dict(sorted(labels.items())) or None  # Go's map is nil without labels
    return invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")


def lasting_mistakes(spec: Object, what: str) -> Errors:
    """Validate that the Pods run until they are stopped: no other restart policy, no deadline."""
    errors: Errors = []
    policy = spec.get("restartPolicy", "")
    if policy != "Always":
        errors.append(not_supported("spec.template.spec.restartPolicy", policy, ("Always",)))
    if spec.get("activeDeadlineSeconds") is not None:
        sentence = f"activeDeadlineSeconds in {what} is not Supported"
        errors.append(forbidden("spec.template.spec.activeDeadlineSeconds", sentence))
    return errors


# --- numbers that may be percentages -----------------------------------------------------------------------------


def share_mistakes(value: Any, path: str) -> Errors:
    if isinstance(value, int):
        return not_negative(value, path)
    if _percent.fullmatch(value):
        return []
    sentence = (
        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used "
        "for validation is '[0-9]+%')"
    )
    return [invalid(path, value, sentence)]


def share_value(value: Any) -> int:
    """The number, or the number before the percent sign; 0 if the value is neither."""
    if isinstance(value, int):
        return value
    if not _percent.fullmatch(value):
        return 0
    number = int64(value[:-1])
    return LARGEST if number is None else number


def more_than_all(value: Any, path: str) -> Errors:
    if isinstance(value, str) and share_value(value) > 100:
        return [invalid(path, value, "must not be greater than 100%")]
    return []


# --- what people see ---------------------------------------------------------------------------------------------


CONTAINER_COLUMNS = (Column("Containers", priority=1), Column("Images", priority=1))
SELECTOR_COLUMN = Column("Selector", priority=1)


def container_cells(template: Object | None) -> tuple[str, str]:
    """The cells of these two columns."""
    containers: Sequence[Object] = ((template or {}).get("spec") or {}).get("containers") or ()
    return ",".join(c.get("name", "") for c in containers), ",".join(c.get("image", "") for c in containers)


def selector_cell(selector: Object | None) -> str:
    """The cell of that column."""
    found = readable(selector)
    return "<error>" if found is None else str(found) or "<none>"


def labels_cell(labels: dict[str, str] | None) -> str:
    """Labels as text, for the column NODE SELECTOR."""
    return ",".join(f"{key}={labels[key]}" for key in sorted(labels)) if labels else "<none>"
