"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy, and the bindings that put them in force.

What is written here are the rules about their fields.  Expressions are compiled where they are used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.registration.matching_rules import condition_mistakes, default_rule, rule_mistakes
from seamark.kinds.resource import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
)
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.conditions import conditions_mistakes
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, repeated, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_1035_label, dns_subdomain, path_segment, qualified_name
from seamark.kinds.values.times import age

if TYPE_CHECKING:
    from seamark.kinds.registration.judge import Judge

_identifier = re.compile("[_a-zA-Z][_a-zA-Z0-9]*")
_RESERVED_WORDS = """true false null in as break const continue else for function if import let loop package namespace
return var void while"""
_RESERVED = frozenset(_RESERVED_WORDS.split())
_newline = re.compile(r"[\n\r]")
_MOST_NOTES = 20
_LONGEST_NOTE = 5 * 1024
_FAILURE = ("Fail", "Ignore")
_MUTATIONS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}
_MATCH = ("Equivalent", "Exact")
_ACTIONS = ("Audit", "Deny", "Warn")
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_BOTH = (
    "must not contain both Deny and Warn (repeating the same validation failure information in the API response and "
    "headers serves no purpose)"
)


class _PolicyKind(CountedKind):
    categories = ("api-extensions",)
    unconditional_update: ClassVar[bool] = False
    listed: ClassVar[str]  # the field with what the policy does

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        spec.setdefault("failurePolicy", "Fail")
        if (match := spec.get("matchConstraints")) is not None:
            default_match(match)

    @property
    def costly(self) -> bool:
        return True  # expressions are compiled

    def validate(self, obj: Object) -> Errors:
        spec, errors = obj["spec"], Errors()
        if spec["failurePolicy"] not in _FAILURE:
            errors.append(not_supported("spec.failurePolicy", spec["failurePolicy"], _FAILURE))
        if (kind := spec.get("paramKind")) is not None:
            errors += _kind_mistakes(kind, "spec.paramKind")
        match = spec.get("matchConstraints")
        if match is None:
            errors.append(required("spec.matchConstraints"))
        else:
            errors += match_mistakes(match, "spec.matchConstraints")
            if not match.get("resourceRules"):
                errors.append(required("spec.matchConstraints.resourceRules"))
        from seamark.kinds.registration.judge import Judge  # which needs the language of expressions

        judge = Judge(params=spec.get("paramKind") is not None)
        errors += condition_mistakes(spec.get("matchConditions") or [], "spec.matchConditions", judge.condition)
        errors += _variable_mistakes(spec.get("variables") or [], "spec.variables", judge)
        return errors + self.deeds_mistakes(obj, judge)

    def deeds_mistakes(self, obj: Object, judge: Judge) -> Errors:
        """Validate what the policy does."""
        raise NotImplementedError

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        kind = spec.get("paramKind")
        shown = f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind is not None else "<unset>"
        count = len(spec.get(self.listed) or ())
        return [meta.get("name", ""), count, shown, age(now, meta.get("creationTimestamp"))]


class ValidatingPolicyKind(_PolicyKind):
    resource = VALIDATING_POLICIES
    singular = "validatingadmissionpolicy"
    shape_name = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicy"
    subresources = (bare_status_of("ValidatingAdmissionPolicy"),)
    columns = (
        Column("Name", format="name"),
        Column("Validations", "integer"),
        Column("ParamKind"),
        Column("Age"),
    )
    new_status: ClassVar[Object | None] = {}
    listed: ClassVar[str] = "validations"

    def deeds_mistakes(self, obj: Object, judge: Judge) -> Errors:
        spec = obj["spec"]
        validations, notes = spec.get("validations") or [], spec.get("auditAnnotations") or []
        errors: Errors = []
        if not validations and not notes:
            sentence = "validations or auditAnnotations must contain at least one item"
            errors += [required(f"spec.{field}", sentence) for field in ("validations", "auditAnnotations")]
        for i, validation in enumerate(validations):
            errors += _validation_mistakes(validation, f"spec.validations[{i}]", judge)
        if len(notes) > _MOST_NOTES:
            shown = [go_names.AUDIT_ANNOTATION(note) for note in notes]
            sentence = f"must not have more than {_MOST_NOTES} auditAnnotations"
            errors.append(invalid("spec.auditAnnotations", shown, sentence))
        again = set(repeated(note.get("key") for note in notes))
        for i, note in enumerate(notes):
            at = f"spec.auditAnnotations[{i}]"
            errors += _note_mistakes(note, at, obj["metadata"].get("name", ""), judge)
            if i in again:
                errors.append(duplicate(f"{at}.key", note.get("key", "")))
        return errors

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status, path = obj.get("status") or {}, "status.typeChecking.expressionWarnings"
        errors: Errors = []
        for i, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
            errors += [required(f"{path}[{i}].{field}") for field in ("warning", "fieldRef") if not warning.get(field)]
        return errors + conditions_mistakes(status.get("conditions") or (), "status.conditions")


class MutatingPolicyKind(_PolicyKind):
    resource = MUTATING_POLICIES
    singular = "mutatingadmissionpolicy"
    shape_name = "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy"
    columns = (Column("Name", format="name"), Column("Mutations", "integer"), Column("ParamKind"), Column("Age"))
    listed: ClassVar[str] = "mutations"

    def deeds_mistakes(self, obj: Object, judge: Judge) -> Errors:
        spec = obj["spec"]
        mutations = spec.get("mutations") or []
        errors = [] if mutations else [required("spec.mutations", "mutations must contain at least one item")]
        for i, mutation in enumerate(mutations):
            at = f"spec.mutations[{i}]"
            fields = _MUTATIONS
            kind = mutation.get("patchType", "")
            if kind not in fields:
                errors.append(not_supported(f"{at}.patchType", kind, sorted(fields)))
            elif not (text := (mutation.get(fields[kind]) or {}).get("expression", "")).strip():
                errors.append(required(f"{at}.{fields[kind]}.expression"))
            else:
                errors += judge.mutation(mutation, text, f"{at}.{fields[kind]}.expression")
        if not spec.get("reinvocationPolicy"):
            errors.append(required("spec.reinvocationPolicy"))
        elif spec["reinvocationPolicy"] not in ("IfNeeded", "Never"):
            sentence = ("IfNeeded", "Never")
            errors.append(not_supported("spec.reinvocationPolicy", spec["reinvocationPolicy"], sentence))
        return errors


class _BindingKind(CountedKind):
    categories = ("api-extensions",)
    unconditional_update: ClassVar[bool] = False
    columns = (Column("Name", format="name"), Column("PolicyName"), Column("ParamRef"), Column("Age"))

    def default(self, obj: Object) -> None:
        if (match := obj["spec"].get("matchResources")) is not None:
            default_match(match)

    def validate(self, obj: Object) -> Errors:
        spec, errors = obj["spec"], Errors()
        if not spec.get("policyName"):
            errors.append(required("spec.policyName"))
        else:
            policy = spec["policyName"]
            errors += [invalid("spec.policyName", policy, sentence) for sentence in dns_subdomain(policy)]
        if (reference := spec.get("paramRef")) is not None:
            errors += _parameter_mistakes(reference, "spec.paramRef")
        if (match := spec.get("matchResources")) is not None:
            errors += match_mistakes(match, "spec.matchResources")
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        shown = _parameters_cell(spec.get("paramRef") or {})
        return [meta.get("name", ""), spec.get("policyName", ""), shown, age(now, meta.get("creationTimestamp"))]


class ValidatingPolicyBindingKind(_BindingKind):
    resource = VALIDATING_POLICY_BINDINGS
    singular = "validatingadmissionpolicybinding"
    shape_name = "io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding"

    def validate(self, obj: Object) -> Errors:
        actions = obj["spec"].get("validationActions") or []
        errors, at = super().validate(obj), "spec.validationActions"
        if not actions:
            return [*errors, required(at)]
        again = set(repeated(actions))
        for i, action in enumerate(actions):
            if action not in _ACTIONS:
                errors.append(not_supported(f"{at}[{i}]", action, _ACTIONS))
            if i in again:
                errors.append(duplicate(f"{at}[{i}]", action))
        return [*errors, invalid(at, actions, _BOTH)] if {"Deny", "Warn"} <= set(actions) else errors


class MutatingPolicyBindingKind(_BindingKind):
    resource = MUTATING_POLICY_BINDINGS
    singular = "mutatingadmissionpolicybinding"
    shape_name = "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicyBinding"


def default_match(match: Object) -> None:
    """Without selectors all objects of all namespaces are meant."""
    match.setdefault("matchPolicy", "Equivalent")
    for field in ("namespaceSelector", "objectSelector"):
        match.setdefault(field, {})
    for field in ("resourceRules", "excludeResourceRules"):
        for rule in match.get(field) or ():
            default_rule(rule)


def match_mistakes(match: Object, at: str) -> Errors:
    errors: Errors = []
    if match.get("matchPolicy") not in (None, *_MATCH):
        errors.append(not_supported(f"{at}.matchPolicy", match["matchPolicy"], _MATCH))
    for field in ("namespaceSelector", "objectSelector"):
        errors += label_selector_mistakes(match.get(field), f"{at}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for i, rule in enumerate(match.get(field) or ()):
            names = rule.get("resourceNames") or []
            again = set(repeated(names))
            for j, name in enumerate(names):
                path = f"{at}.{field}[{i}].resourceNames[{j}]"
                errors += [invalid(path, name, sentence) for sentence in path_segment(name)]
                if j in again:
                    errors.append(duplicate(path, name))
            errors += rule_mistakes(rule, f"{at}.{field}[{i}]")
    return errors


def _kind_mistakes(kind: Object, at: str) -> Errors:
    """What is wrong with the kind of a policy's parameters."""
    errors: Errors = []
    version, name = kind.get("apiVersion", ""), kind.get("kind", "")
    group, _, number = version.rpartition("/")
    if not version:
        errors.append(required(f"{at}.apiVersion"))
    elif "/" in group:
        errors.append(invalid(f"{at}.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    else:
        if group and (sentences := dns_subdomain(group)):
            errors.append(invalid(f"{at}.apiVersion", group, ",".join(sentences)))
        if not number:
            errors.append(invalid(f"{at}.apiVersion", version, "version must be specified"))
        elif sentences := dns_1035_label(number):
            errors.append(invalid(f"{at}.apiVersion", number, ",".join(sentences)))
    if not name:
        errors.append(required(f"{at}.kind"))
    elif sentences := dns_1035_label(name.lower()):
        sentence = f"may have mixed case, but should otherwise match: {','.join(sentences)}"
        errors.append(invalid(f"{at}.kind", name, sentence))
    return errors


def _variable_mistakes(variables: list[Object], at: str, judge: Judge) -> Errors:
    errors: Errors = []
    again = set(repeated(variable.get("name") for variable in variables))
    for i, variable in enumerate(variables):
        name, text = variable.get("name", ""), variable.get("expression") or ""
        if not name:
            errors.append(required(f"{at}[{i}].name"))
        elif not _identifier.fullmatch(name) or name in _RESERVED:
            errors.append(invalid(f"{at}[{i}].name", name, "must be a valid CEL identifier"))
        elif i in again:
            errors.append(duplicate(f"{at}[{i}].name", name))
        if not text.strip():
            errors.append(required(f"{at}[{i}].expression", "expression is not specified"))
        else:
            errors += judge.variable(name, text, f"{at}[{i}].expression")
    return errors


def _note_mistakes(note: Object, at: str, policy: str, judge: Judge) -> Errors:
    """What is wrong with an audit annotation, whose key is told after the name of the policy."""
    key, text = note.get("key", ""), note.get("valueExpression", "").strip()
    errors: Errors = []
    if policy:
        whole = f"{policy}/{key}"
        errors += [invalid(f"{at}.key", whole, sentence) for sentence in qualified_name(whole)]
    else:
        errors.append(invalid(f"{at}.key", key, "requires metadata.name be non-empty"))
    if not text:
        errors.append(required(f"{at}.valueExpression", "valueExpression is not specified"))
    elif len(text) > _LONGEST_NOTE:
        errors.append(required(f"{at}.valueExpression", f"must not exceed {_LONGEST_NOTE} bytes in length"))
    else:
        errors += judge.note(text, f"{at}.valueExpression")
    return errors


def _validation_mistakes(validation: Object, at: str, judge: Judge) -> Errors:
    errors: Errors = []
    expression, message = validation.get("expression", ""), validation.get("message", "")
    if not expression.strip():
        errors.append(required(f"{at}.expression", "expression is not specified"))
    else:
        errors += judge.validation(expression, f"{at}.expression")
    if told := validation.get("messageExpression") or "":
        if told.strip():
            errors += judge.message(told, f"{at}.messageExpression")
        else:
            errors.append(invalid(f"{at}.messageExpression", told, "must be non-empty if specified"))
    # Kubernetes documents that a message is required where the expression has line breaks, but takes those without.
    if message and not message.strip():
        errors.append(invalid(f"{at}.message", message, "message must be non-empty if specified"))
    elif _newline.search(message.strip()):
        errors.append(invalid(f"{at}.message", message, "must not contain line breaks"))
    if (reason := validation.get("reason")) is not None and reason not in _REASONS:
        errors.append(not_supported(f"{at}.reason", reason, _REASONS))
    return errors


def _parameters_cell(reference: Object) -> str:
    """The cell of the column PARAMREF; a policy's scope is not known here, so ``*`` stands for any namespace."""
    if name := reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{name}"
    selector = reference.get("selector")
    return "<unset>" if selector is None else go_names.label_selector(selector)


def _parameter_mistakes(reference: Object, at: str) -> Errors:
    errors: Errors = []
    name, selector, action = reference.get("name"), reference.get("selector"), reference.get("parameterNotFoundAction")
    exclusive = "name and selector are mutually exclusive"
    if name:
        errors += [invalid(f"{at}.name", name, sentence) for sentence in path_segment(name)]
        if selector is not None:
            errors.append(forbidden(f"{at}.name", exclusive))
    errors += label_selector_mistakes(selector, f"{at}.selector")
    if name and selector is not None:
        errors.append(forbidden(f"{at}.selector", exclusive))
    if not name and selector is None:
        errors.append(required(at, "one of name or selector must be specified"))
    if action is None:
        errors.append(required(f"{at}.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        errors.append(not_supported(f"{at}.parameterNotFoundAction", action, ("Deny", "Allow")))
    return errors


VALIDATING_POLICY = ValidatingPolicyKind()
VALIDATING_POLICY_BINDING = ValidatingPolicyBindingKind()
MUTATING_POLICY = MutatingPolicyKind()
MUTATING_POLICY_BINDING = MutatingPolicyBindingKind()
