"""FlowSchema: which requests belong to which priority level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.flowcontrol.defaults import MANDATORY, flow_schemas
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.resource import FLOW_SCHEMAS
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_label, dns_subdomain
from seamark.kinds.values.times import age

_MOST_PRECEDENCE = 10000
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_FIXED = {
    schema["metadata"]["name"]: go_names.FLOW_SCHEMA_SPEC(schema["spec"])
    for schema in flow_schemas()
    if schema["metadata"]["name"] in MANDATORY
}


class FlowSchemaKind(CountedKind):
    resource = FLOW_SCHEMAS
    singular = "flowschema"
    shape_name = "io.k8s.api.flowcontrol.v1.FlowSchema"
    subresources = (bare_status_of("FlowSchema"),)
    columns = (
        Column("Name", format="name"),
        Column("PriorityLevel"),
        Column("MatchingPrecedence"),
        Column("DistinguisherMethod"),
        Column("Age"),
        Column("MissingPL"),
    )
    ranks_rows: ClassVar[bool] = True
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
            shown = go_names.DISTINGUISHER_METHOD(spec["distinguisherMethod"])
            errors.append(not_supported("spec.distinguisherMethod.type", shown, _METHODS))
        level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
        if not level:
            errors.append(required("spec.priorityLevelConfiguration.name", "must reference a priority level"))
        else:
            at = "spec.priorityLevelConfiguration.name"
            errors += [invalid(at, level, sentence) for sentence in dns_subdomain(level)]
        for i, rule in enumerate(spec.get("rules") or ()):
            errors += _rule_mistakes(rule, f"spec.rules[{i}]")
        if name in _FIXED and (shown := go_names.FLOW_SCHEMA_SPEC(spec)) != _FIXED[name]:
            errors.append(invalid("spec", shown, f"spec of '{name}' must equal the fixed value"))
        return errors

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return conditions_mistakes((obj.get("status") or {}).get("conditions") or (), "status.conditions")

    def row_rank(self, obj: Object) -> tuple[int, str]:
        return obj["spec"].get("matchingPrecedence", 0), obj["metadata"]["name"]

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
        errors += _subject_mistakes(subject, f"{at}.subjects[{i}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        sentence = "at least one of resourceRules and nonResourceRules has to be non-empty"
        errors.append(required(at, sentence))
    for i, inner in enumerate(rule.get("resourceRules") or ()):
        errors += _resource_rule_mistakes(inner, f"{at}.resourceRules[{i}]")
    for i, inner in enumerate(rule.get("nonResourceRules") or ()):
        path = f"{at}.nonResourceRules[{i}]"
        errors += _verb_mistakes(inner.get("verbs") or [], path)
        urls, field = inner.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
        alone = _alone(urls, field, "nonResourceURLs must contain at least one value", "non-resource URLs")
        if alone is not None:
            errors += alone
            continue
        for j, url in enumerate(urls):
            if sentence := _url_mistake(url):
                errors.append(invalid(f"{field}[{j}]", url, sentence))
    return errors


def _subject_mistakes(subject: Object, at: str) -> Errors:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        return [not_supported(f"{at}.kind", kind, tuple(_SUBJECTS))]
    field, errors = _SUBJECTS[kind], Errors()
    named, path = subject.get(field), f"{at}.{field}"
    if named is None:
        errors.append(required(path, f"{field} is required when subject kind is '{kind}'"))
    elif not (name := named.get("name", "")):
        errors.append(required(f"{path}.name"))
    elif kind == "ServiceAccount" and name != "*":
        errors += [invalid(f"{path}.name", name, sentence) for sentence in dns_subdomain(name)]
    if named is not None and kind == "ServiceAccount":
        if namespace := named.get("namespace", ""):
            errors += [invalid(f"{path}.namespace", namespace, sentence) for sentence in dns_label(namespace)]
        else:
            errors.append(required(f"{path}.namespace", "must specify namespace for service account"))
    for other in ("serviceAccount", "user", "group"):
        if other != field and subject.get(other) is not None:
            word = next(word for word, name in _SUBJECTS.items() if name == other)
            errors.append(forbidden(f"{at}.{other}", f"{other} is forbidden when subject kind is not '{word}'"))
    return errors


def _alone(values: list[str], path: str, none: str, word: str) -> Errors | None:
    """The mistakes of an empty list, and of one with an asterisk; None if its values are to be looked at."""
    if not values:
        return [required(path, none)]
    if "*" not in values:
        return None
    return [invalid(path, values, f"if '*' is present, must not specify other {word}")] if len(values) > 1 else []


def _verb_mistakes(verbs: list[str], at: str) -> Errors:
    alone = _alone(verbs, f"{at}.verbs", "verbs must contain at least one value", "verbs")
    if alone is not None:
        return alone
    return [] if set(verbs) <= set(_VERBS) else [not_supported(f"{at}.verbs", verbs, _VERBS)]


def _resource_rule_mistakes(rule: Object, at: str) -> Errors:
    errors = _verb_mistakes(rule.get("verbs") or [], at)
    for field, word in (("apiGroups", "api group"), ("resources", "resource")):
        none = f"resource rules must supply at least one {word}"
        errors += _alone(rule.get(field) or [], f"{at}.{field}", none, f"{word}s") or ()
    path, namespaces = f"{at}.namespaces", rule.get("namespaces") or []
    if not namespaces and rule.get("clusterScope"):
        return errors
    none = "resource rules that are not cluster scoped must supply at least one namespace"
    alone = _alone(namespaces, path, none, "namespaces")
    if alone is not None:
        return errors + alone
    sentence = "each member of this list must be '*' or a DNS-1123 label; "
    for i, namespace in enumerate(namespaces):
        errors += [invalid(f"{path}[{i}]", namespace, sentence + wrong) for wrong in dns_label(namespace)]
    return errors


def _url_mistake(url: str) -> str:
    if not url:
        return "must not be empty"
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    if url.count("*") > 1 or ("*" in url and not url.endswith("/*")):
        return "wildcard can only do suffix matching"
    return ""


def conditions_mistakes(conditions: Iterable[Object], path: str) -> Errors:
    """What is wrong with the conditions of a schema or a level, which are of an older kind: only their types matter."""
    errors: Errors = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        kind, at = condition.get("type", ""), f"{path}[{i}].type"
        if kind in seen:
            errors.append(duplicate(at, kind))
        seen.add(kind)
        if not kind:
            errors.append(required(at, "must not be empty"))
    return errors


FLOW_SCHEMA = FlowSchemaKind()
