"""ValidatingAdmissionPolicy and MutatingAdmissionPolicy, and the bindings that put them in force.

What is written here are the rules about their fields.  Expressions are compiled where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.kind import Column
from seamark.kinds.registration.matching_rules import condition_mistakes, default_rule, rule_mistakes
from seamark.kinds.resource import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
)
from seamark.kinds.subresource import status_of
from seamark.kinds.values.conditions import conditions_mistakes
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, repeated, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.times import age

if TYPE_CHECKING:
    from seamark.cel import Environment
    from seamark.cel.types import Type

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
            errors += [required(f"spec.paramKind.{field}") for field in ("apiVersion", "kind") if not kind.get(field)]
        match = spec.get("matchConstraints")
        if match is None:
            errors.append(required("spec.matchConstraints"))
        else:
            errors += match_mistakes(match, "spec.matchConstraints")
            if not match.get("resourceRules"):
                errors.append(required("spec.matchConstraints.resourceRules"))
        errors += condition_mistakes(spec.get("matchConditions") or [], "spec.matchConditions", lambda text, at: [])
        errors += _variable_mistakes(spec.get("variables") or [], "spec.variables")
        errors += self.deeds_mistakes(spec)
        return errors + _expression_mistakes(spec)

    def deeds_mistakes(self, spec: Object) -> Errors:
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
    subresources = (status_of("ValidatingAdmissionPolicy"),)
    columns = (
        Column("Name", format="name"),
        Column("Validations", "integer"),
        Column("ParamKind"),
        Column("Age"),
    )
    new_status: ClassVar[Object | None] = {}

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status, path = obj.get("status") or {}, "status.typeChecking.expressionWarnings"
        errors: Errors = []
        for i, warning in enumerate((status.get("typeChecking") or {}).get("expressionWarnings") or ()):
            errors += [required(f"{path}[{i}].{field}") for field in ("warning", "fieldRef") if not warning.get(field)]
        return errors + conditions_mistakes(status.get("conditions") or (), "status.conditions")

    listed: ClassVar[str] = "validations"

    def deeds_mistakes(self, spec: Object) -> Errors:
        validations, notes = spec.get("validations") or [], spec.get("auditAnnotations") or []
        errors: Errors = []
        if not validations and not notes:
            sentence = "validations or auditAnnotations must contain at least one item"
            errors += [required(f"spec.{field}", sentence) for field in ("validations", "auditAnnotations")]
        for i, validation in enumerate(validations):
            errors += _validation_mistakes(validation, f"spec.validations[{i}]")
        again = set(repeated(note.get("key") for note in notes))
        for i, note in enumerate(notes):
            at = f"spec.auditAnnotations[{i}]"
            errors += [required(f"{at}.{field}") for field in ("key", "valueExpression") if not note.get(field)]
            if i in again:
                errors.append(duplicate(f"{at}.key", note.get("key", "")))
        return errors


class MutatingPolicyKind(_PolicyKind):
    resource = MUTATING_POLICIES
    singular = "mutatingadmissionpolicy"
    shape_name = "io.k8s.api.admissionregistration.v1.MutatingAdmissionPolicy"
    columns = (Column("Name", format="name"), Column("Mutations", "integer"), Column("ParamKind"), Column("Age"))
    listed: ClassVar[str] = "mutations"

    def deeds_mistakes(self, spec: Object) -> Errors:
        mutations = spec.get("mutations") or []
        errors = [] if mutations else [required("spec.mutations", "mutations must contain at least one item")]
        for i, mutation in enumerate(mutations):
            at = f"spec.mutations[{i}]"
            fields = _MUTATIONS
            kind = mutation.get("patchType", "")
            if kind not in fields:
                errors.append(not_supported(f"{at}.patchType", kind, sorted(fields)))
            elif not (mutation.get(fields[kind]) or {}).get("expression"):
                errors.append(required(f"{at}.{fields[kind]}.expression"))
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
        reference = spec.get("paramRef")
        shown = "<unset>"
        if reference is not None:
            shown = f"{reference.get('namespace') or '*'}/{reference.get('name') or '*'}"
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
            errors += rule_mistakes(rule, f"{at}.{field}[{i}]")
            names = rule.get("resourceNames") or []
            errors += [duplicate(f"{at}.{field}[{i}].resourceNames[{j}]", names[j]) for j in repeated(names)]
    return errors


def _variable_mistakes(variables: list[Object], at: str) -> Errors:
    errors: Errors = []
    again = set(repeated(variable.get("name") for variable in variables))
    for i, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.append(required(f"{at}[{i}].name"))
        elif not name.isidentifier():
            errors.append(invalid(f"{at}[{i}].name", name, "must be a valid CEL identifier"))
        elif i in again:
            errors.append(duplicate(f"{at}[{i}].name", name))
        if not (variable.get("expression") or "").strip():
            errors.append(required(f"{at}[{i}].expression", "expression is not specified"))
    return errors


def _expression_mistakes(spec: Object) -> Errors:
    """What is wrong with the expressions, each in its place; those that are missing are told elsewhere."""
    from seamark.cel.types import DYN
    from seamark.kinds.registration import expressions

    errors: Errors = []

    def judge(env: Environment, text: str, at: str, wanted: Sequence[Type] = ()) -> Type:
        if not text.strip():
            return DYN
        try:
            return expressions.compiled(env, text, wanted).type
        except expressions.Unfit as error:
            errors.append(invalid(at, text, str(error)))
            return DYN

    base = expressions.environment(params=spec.get("paramKind") is not None)
    for i, condition in enumerate(spec.get("matchConditions") or ()):
        at = f"spec.matchConditions[{i}].expression"
        judge(base, condition.get("expression", ""), at, expressions.BOOLEAN)
    variables = expressions.Variables(base)
    env = variables.env
    for i, variable in enumerate(spec.get("variables") or ()):
        found = judge(env, variable.get("expression", ""), f"spec.variables[{i}].expression")
        variables.declare(variable.get("name", ""), found)
    for i, validation in enumerate(spec.get("validations") or ()):
        at = f"spec.validations[{i}]"
        judge(env, validation.get("expression", ""), f"{at}.expression", expressions.BOOLEAN)
        judge(env, validation.get("messageExpression") or "", f"{at}.messageExpression", expressions.TEXT)
    for i, mutation in enumerate(spec.get("mutations") or ()):
        field = _MUTATIONS.get(mutation.get("patchType", ""))
        if field and (text := (mutation.get(field) or {}).get("expression", "")).strip():
            try:
                expressions.mutation_program(env, mutation)
            except expressions.Unfit as error:
                errors.append(invalid(f"spec.mutations[{i}].{field}.expression", text, str(error)))
    for i, note in enumerate(spec.get("auditAnnotations") or ()):
        at = f"spec.auditAnnotations[{i}].valueExpression"
        judge(env, note.get("valueExpression", ""), at, expressions.TEXT_OR_NOTHING)
    return errors


def _validation_mistakes(validation: Object, at: str) -> Errors:
    errors: Errors = []
    expression, message = validation.get("expression", ""), validation.get("message", "")
    if not expression.strip():
        errors.append(required(f"{at}.expression", "expression is not specified"))
    if message and not message.strip():
        errors.append(invalid(f"{at}.message", message, "message must be non-empty if specified"))
    elif "\n" in message:
        errors.append(invalid(f"{at}.message", message, "must not contain line breaks"))
    elif "\n" in expression and not message:
        sentence = "message must be specified if expression contains line breaks"
        errors.append(required(f"{at}.message", sentence))
    if (reason := validation.get("reason")) is not None and reason not in _REASONS:
        errors.append(not_supported(f"{at}.reason", reason, _REASONS))
    return errors


def _parameter_mistakes(reference: Object, at: str) -> Errors:
    errors: Errors = []
    name, selector, action = reference.get("name"), reference.get("selector"), reference.get("parameterNotFoundAction")
    if name and selector is not None:
        sentence = "name and selector are mutually exclusive"
        errors += [forbidden(f"{at}.{field}", sentence) for field in ("name", "selector")]
    elif not name and selector is None:
        errors.append(required(at, "one of name or selector must be specified"))
    errors += label_selector_mistakes(selector, f"{at}.selector")
    if action is None:
        errors.append(required(f"{at}.parameterNotFoundAction"))
    elif action not in ("Allow", "Deny"):
        errors.append(not_supported(f"{at}.parameterNotFoundAction", action, ("Deny", "Allow")))
    return errors


VALIDATING_POLICY = ValidatingPolicyKind()
VALIDATING_POLICY_BINDING = ValidatingPolicyBindingKind()
MUTATING_POLICY = MutatingPolicyKind()
MUTATING_POLICY_BINDING = MutatingPolicyBindingKind()
