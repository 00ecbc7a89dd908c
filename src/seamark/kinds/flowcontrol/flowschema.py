"""FlowSchema: which requests belong to which priority level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.resource import FLOW_SCHEMAS
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.times import age

_MOST_PRECEDENCE = 10000
_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


class FlowSchemaKind(CountedKind):
    resource = FLOW_SCHEMAS
    singular = "flowschema"
    shape_name = "io.k8s.api.flowcontrol.v1.FlowSchema"
    subresources = (status_of("FlowSchema"),)
    columns = (
        Column("Name", format="name"),
        Column("PriorityLevel"),
        Column("MatchingPrecedence"),
        Column("DistinguisherMethod"),
        Column("Age"),
        Column("MissingPL"),
    )
    new_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        if not obj["spec"].get("matchingPrecedence"):
            obj["spec"]["matchingPrecedence"] = 1000

    def validate(self, obj: Object) -> Errors:
        spec, errors = obj["spec"], Errors()
        precedence, name = spec["matchingPrecedence"], obj["metadata"].get("name", "")
        if precedence <= 0:
            errors.append(invalid("spec.matchingPrecedence", precedence, "must be a positive value"))
        if precedence > _MOST_PRECEDENCE:
            sentence = f"must not be greater than {_MOST_PRECEDENCE}"
            errors.append(invalid("spec.matchingPrecedence", precedence, sentence))
        if precedence == 1 and name != "exempt":
            sentence = "only the schema named 'exempt' may have matchingPrecedence 1"
            errors.append(invalid("spec.matchingPrecedence", precedence, sentence))
        method = (spec.get("distinguisherMethod") or {}).get("type")
        if spec.get("distinguisherMethod") is not None and method not in _METHODS:
            errors.append(not_supported("spec.distinguisherMethod.type", method or "", _METHODS))
        level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
        if not level:
            errors.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
        else:
            at = "spec.priorityLevelConfiguration.name"
            errors += [invalid(at, level, sentence) for sentence in dns_subdomain(level)]
        for i, rule in enumerate(spec.get("rules") or ()):
            errors += _rule_mistakes(rule, f"spec.rules[{i}]")
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        conditions = (obj.get("status") or {}).get("conditions") or ()
        dangling = next((c.get("status", "?") for c in conditions if c.get("type") == "Dangling"), "?")
        return [
            meta.get("name", ""),
            (spec.get("priorityLevelConfiguration") or {}).get("name", ""),
            spec.get("matchingPrecedence", 0),
            (spec.get("distinguisherMethod") or {}).get("type") or "<none>",
            age(now, meta.get("creationTimestamp")),
            dangling,
        ]


def _rule_mistakes(rule: Object, at: str) -> Errors:
    errors: Errors = []
    subjects = rule.get("subjects") or []
    if not subjects:
        errors.append(required(f"{at}.subjects", "subjects must contain at least one value"))
    for i, subject in enumerate(subjects):
        kind = subject.get("kind", "")
        if kind not in _SUBJECTS:
            errors.append(not_supported(f"{at}.subjects[{i}].kind", kind, tuple(_SUBJECTS)))
        elif subject.get(_SUBJECTS[kind]) is None:
            field = _SUBJECTS[kind]
            sentence = f"{field} is required when subject kind is '{kind}'"
            errors.append(required(f"{at}.subjects[{i}].{field}", sentence))
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        sentence = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(at, sentence))
    for field, parts in (
        ("resourceRules", ("verbs", "apiGroups", "resources")),
        ("nonResourceRules", ("verbs", "nonResourceURLs")),
    ):
        for i, inner in enumerate(rule.get(field) or ()):
            errors += [required(f"{at}.{field}[{i}].{part}") for part in parts if not inner.get(part)]
    return errors


FLOW_SCHEMA = FlowSchemaKind()
