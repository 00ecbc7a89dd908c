"""ResourceQuota: how much the objects of a namespace may use together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.pod.resources import name_mistakes, quantity_mistakes
from seamark.kinds.resource import RESOURCE_QUOTAS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, immutable, invalid, required
from seamark.kinds.values.times import age

_COMPUTE = ("cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory")
_NAMES = frozenset(
    f"""{" ".join(_COMPUTE)} ephemeral-storage requests.ephemeral-storage limits.ephemeral-storage requests.storage pods
    resourcequotas services replicationcontrollers secrets configmaps persistentvolumeclaims services.nodeports
    services.loadbalancers""".split()
)
_OF_PODS = frozenset({"pods", *_COMPUTE})
_OF_CLAIMS = frozenset({"persistentvolumeclaims", "requests.storage"})

# Which of the resources that quotas know a scope may be combined with.
SCOPES = {
    "Terminating": _OF_PODS,
    "NotTerminating": _OF_PODS,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _OF_PODS,
    "PriorityClass": _OF_PODS,
    "CrossNamespacePodAffinity": _OF_PODS,
    "VolumeAttributesClass": _OF_CLAIMS,
}
_CONFLICTING = ({"BestEffort", "NotBestEffort"}, {"Terminating", "NotTerminating"})
_ONLY_EXISTS = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
    "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)


class QuotaKind(Kind):
    resource = RESOURCE_QUOTAS
    singular = "resourcequota"
    shape_name = "io.k8s.api.core.v1.ResourceQuota"
    short_names = ("quota",)
    subresources = (status_of("ResourceQuota"),)
    columns = (Column("Name", format="name"), Column("Request"), Column("Limit"), Column("Age"))
    delete_answers_object = True

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}

    def validate(self, obj: Object) -> Errors:
        spec = obj.get("spec") or {}
        hard = spec.get("hard") or {}
        errors = _amount_mistakes(hard, "spec.hard")
        if scopes := spec.get("scopes"):
            errors += _scope_mistakes(scopes, hard)
        if selector := spec.get("scopeSelector"):
            errors += _selector_mistakes(selector, hard, spec.get("scopes"))
        return errors

    def prepare_update(self, obj: Object, old: Object) -> None:
        obj["status"] = old["status"]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        now, before = ((o.get("spec") or {}).get("scopes") or [] for o in (obj, old))
        if set(now) != set(before):
            errors.append(immutable("spec.scopes", now or None))
        return errors

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status = obj["status"]
        return [
            error
            for field in ("hard", "used")
            for error in _amount_mistakes(status.get(field) or {}, f"status.{field}")
        ]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, status = obj["metadata"], obj["status"]
        hard, used = status.get("hard") or {}, status.get("used") or {}
        cells: dict[bool, list[str]] = {False: [], True: []}
        for name in sorted(hard):
            cells[name.startswith("limits.")].append(f"{name}: {used.get(name, '0')}/{hard[name]}")
        return [
            meta.get("name", ""),
            ", ".join(cells[False]),
            ", ".join(cells[True]),
            age(now, meta.get("creationTimestamp")),
        ]


def _amount_mistakes(amounts: dict[str, str], path: str) -> Errors:
    errors: Errors = []
    for name in sorted(amounts):
        at = f"{path}[{name}]"
        errors += name_mistakes(name, at)
        if "/" not in name and not _known(name):
            errors.append(invalid(at, name, "must be a standard resource for quota"))
        errors += quantity_mistakes(name, amounts[name], at)
    return errors


def _known(name: str) -> bool:
    return name in _NAMES or name.startswith(("hugepages-", "requests.hugepages-"))


def _misapplied(scope: str, hard: dict[str, str]) -> list[str]:
    """The resources of the quota that a scope cannot be combined with."""
    return [name for name in sorted(hard) if scope in SCOPES and _known(name) and name not in SCOPES[scope]]


def _scope_mistakes(scopes: list[str], hard: dict[str, str]) -> Errors:
    wrong: dict[str, None] = {}  # once each: the message shows all scopes
    for scope in dict.fromkeys(scopes):
        if scope not in SCOPES:
            wrong["unsupported scope"] = None
        elif _misapplied(scope, hard):
            wrong["unsupported scope applied to resource"] = None
    if any(pair <= set(scopes) for pair in _CONFLICTING):
        wrong["conflicting scopes"] = None
    return [invalid("spec.scopes", scopes, sentence) for sentence in wrong]


def _selector_mistakes(selector: Object, hard: dict[str, str], scopes: list[str] | None) -> Errors:
    path, errors = "spec.scopeSelector.matchExpressions", Errors()
    listed = selector.get("matchExpressions") or ()
    seen: set[str] = set()
    misapplied = False
    for expression in listed:
        scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
        values = expression.get("values") or []
        if scope not in SCOPES:
            errors.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
        if scope not in seen and not misapplied and _misapplied(scope, hard):
            misapplied = True  # once: the message shows the whole selector
            errors.append(invalid(path, go_names.SCOPE_SELECTOR(selector), "unsupported scope applied to resource"))
        seen.add(scope)
        if scope in _ONLY_EXISTS and operator != "Exists":
            errors.append(invalid(f"{path}.operator", operator, _EXISTS))
        if operator in ("In", "NotIn"):
            if not values:
                sentence = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
                errors.append(required(f"{path}.values", sentence))
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                sentence = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
                errors.append(invalid(f"{path}.values", values, sentence))
        else:
            errors.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    # Kubernetes shows the list of scopes, which has nothing to do with this mistake.
    return errors + [invalid(path, scopes, "conflicting scopes") for pair in _CONFLICTING if pair <= seen]


RESOURCE_QUOTA = QuotaKind()
