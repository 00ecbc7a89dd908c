"""PodDisruptionBudget: how many of some Pods must stay, or may go, at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.resource import POD_DISRUPTION_BUDGETS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.conditions import conditions_mistakes
from seamark.kinds.values.fields import Errors, invalid, not_supported
from seamark.kinds.values.label_selector import label_selector_mistakes, printed
from seamark.kinds.values.metadata import path_segment
from seamark.kinds.values.times import age
from seamark.kinds.workloads.workload import more_than_all, not_negative, share_mistakes

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_OLD_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
_NO_POD = {"matchExpressions": [{"key": _OLD_LABEL, "operator": "Exists"}]}
_SPEC = go_names.struct(MinAvailable=None, Selector=printed, MaxUnavailable=None, UnhealthyPodEvictionPolicy=None)


class BudgetKind(CountedKind):
    resource = POD_DISRUPTION_BUDGETS
    singular = "poddisruptionbudget"
    shape_name = "io.k8s.api.policy.v1.PodDisruptionBudget"
    short_names = ("pdb",)
    unconditional_update = False
    subresources = (status_of("PodDisruptionBudget"),)
    columns = (
        Column("Name", format="name"),
        Column("Min Available"),
        Column("Max Unavailable"),
        Column("Allowed Disruptions", "integer"),
        Column("Age"),
    )
    new_status: ClassVar[Object | None] = dict.fromkeys(_COUNTS, 0)

    def default(self, obj: Object) -> None:
        """Drop the label by which v1beta1 told "all Pods" from "none", unless it says just that."""
        selector = (obj.get("spec") or {}).get("selector")
        if selector is None or selector == _NO_POD:
            return
        if expressions := selector.get("matchExpressions"):
            kept = [expression for expression in expressions if expression.get("key") != _OLD_LABEL]
            selector["matchExpressions"] = kept
            if not kept:
                del selector["matchExpressions"]

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)

    def validate(self, obj: Object) -> Errors:
        spec, errors = obj.get("spec") or {}, Errors()
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if least is not None and most is not None:
            errors.append(invalid("spec", _SPEC(spec), "minAvailable and maxUnavailable cannot be both set"))
        for field, value in (("minAvailable", least), ("maxUnavailable", most)):
            if value is not None:
                errors += share_mistakes(value, f"spec.{field}") + more_than_all(value, f"spec.{field}")
        errors += label_selector_mistakes(spec.get("selector"), "spec.selector")
        policy = spec.get("unhealthyPodEvictionPolicy")
        if policy is not None and policy not in _POLICIES:
            errors.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
        return errors

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status = obj["status"]
        errors = conditions_mistakes(status.get("conditions") or (), "status.conditions")
        return errors + [error for field in _COUNTS for error in not_negative(status.get(field, 0), f"status.{field}")]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj.get("spec") or {}
        return [
            meta.get("name", ""),
            str(spec.get("minAvailable", "N/A")),
            str(spec.get("maxUnavailable", "N/A")),
            obj["status"].get("disruptionsAllowed", 0),
            age(now, meta.get("creationTimestamp")),
        ]


POD_DISRUPTION_BUDGET = BudgetKind()
