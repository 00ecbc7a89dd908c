"""What the rules of a schema must satisfy when a definition is made: words, types, paths and cost."""

from __future__ import annotations

from typing import Any

from seamark.cel import CompileError
from seamark.errors import Object
from seamark.kinds.expressions.schema_types import LARGEST_REQUEST, type_of_schema
from seamark.kinds.extensions import jsonpaths
from seamark.kinds.extensions.rules import Rule
from seamark.kinds.extensions.schemas import LIST_TYPE, RULES, extra, items
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required, show

RULE_LIMIT = 10_000_000
SCHEMA_LIMIT = 100_000_000
_REASONS = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
    "declared)"
)
_CONTRIBUTED = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
_SMALL_SHARE = 100  # rules that cost less than this part of the limit are not to blame
_MOST_NAMED = 4  # rules that are named when all together cost too much


def mistakes(schema: Object, at: str) -> Errors:
    """Everything wrong with the rules of a version's schema, which is at this path of the definition."""
    checker = _Checker()
    checker.schema(schema, at, cardinality=1, uncorrelatable="", root=True)
    if checker.total > SCHEMA_LIMIT:
        for cost, place in sorted(checker.costs, reverse=True)[:_MOST_NAMED]:
            if cost * _SMALL_SHARE >= SCHEMA_LIMIT:
                checker.errors.append(forbidden(place, _CONTRIBUTED))
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        checker.errors.append(forbidden(at, _too_much(name, checker.total, SCHEMA_LIMIT)))
    return checker.errors


def _too_much(name: str, cost: int, limit: int) -> str:
    factor = cost / limit
    text = "more than 100x" if factor > 100 else f"{factor:f}x" if factor < 1.5 else f"{factor:.1f}x"
    return f"{name} exceeds budget by factor of {text} {_ADVICE}"


class _Checker:
    def __init__(self) -> None:
        self.errors: Errors = []
        self.total = 0
        self.costs: list[tuple[int, str]] = []

    def schema(self, schema: Object, at: str, *, cardinality: int, uncorrelatable: str, root: bool = False) -> None:
        if schema.get(RULES):
            type = type_of_schema(schema, root=root, name="selfType")
            before = len(self.errors)
            for index, given in enumerate(schema[RULES]):
                self._words(given, schema, f"{at}.{RULES}[{index}]")
            if type is not None and len(self.errors) == before:
                for index, given in enumerate(schema[RULES]):
                    self._rule(given, Rule(given, type), f"{at}.{RULES}[{index}]", cardinality, uncorrelatable)
        for name, inner in (schema.get("properties") or {}).items():
            self.schema(inner, f"{at}.properties[{name}]", cardinality=cardinality, uncorrelatable=uncorrelatable)
        if (others := extra(schema)) is not None:
            count = cardinality * _count(schema, others, "maxProperties", 6)
            self.schema(others, f"{at}.additionalProperties", cardinality=count, uncorrelatable=uncorrelatable)
        if (elements := items(schema)) is not None:
            count = cardinality * _count(schema, elements, "maxItems", 1)
            lost = uncorrelatable or ("" if schema.get(LIST_TYPE) == "map" else at)
            self.schema(elements, f"{at}.items", cardinality=count, uncorrelatable=lost)

    def _words(self, given: Object, schema: Object, at: str) -> None:
        rule, message, expression = given.get("rule") or "", given.get("message") or "", given.get("messageExpression")
        if not rule.strip():
            self.errors.append(required(f"{at}.rule", "rule is not specified"))
        elif message and not message.strip():
            self.errors.append(invalid(f"{at}.message", message, "must be non-empty if specified"))
        elif _has_lines(message.strip()):
            self.errors.append(invalid(f"{at}.message", message, "must not contain line breaks"))
        elif _has_lines(rule.strip()) and not message:
            self.errors.append(required(f"{at}.message", "message must be specified if rule contains line breaks"))
        if expression and not expression.strip():
            self.errors.append(required(f"{at}.messageExpression", "messageExpression must be non-empty if specified"))
        reason, path = given.get("reason"), given.get("fieldPath") or ""
        if reason is not None and reason not in _REASONS:
            self.errors.append(not_supported(f"{at}.reason", reason, _REASONS))
        if path and not path.strip():
            self.errors.append(invalid(f"{at}.fieldPath", path, "must be non-empty if specified"))
        if _has_lines(path):
            self.errors.append(invalid(f"{at}.fieldPath", path, "must not contain line breaks"))
        if path and not _is_path(path, schema):
            self.errors.append(invalid(f"{at}.fieldPath", path, "must be a valid path"))

    def _rule(self, given: Object, rule: Rule, at: str, cardinality: int, uncorrelatable: str) -> None:
        transition = False
        try:
            program = rule.program
        except CompileError as error:
            self.errors.append(invalid_rule(f"{at}.rule", given, f"compilation failed: {error}"))
        else:
            if program.type.kind not in ("bool", "dyn"):
                self.errors.append(invalid_rule(f"{at}.rule", given, "cel expression must evaluate to a bool"))
            transition = rule.is_transition
            if transition and uncorrelatable:
                text = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
                self.errors.append(invalid(f"{at}.rule", rule.text, text))
            self._cost(program.cost_estimate.most, cardinality, "rule", f"{at}.rule")
        if given.get("optionalOldSelf") is not None and not transition:
            detail = "may not be set if oldSelf is not used in rule"
            self.errors.append(invalid(f"{at}.optionalOldSelf", given["optionalOldSelf"], detail))
        if rule.message_expression:
            self._message(given, rule, f"{at}.messageExpression", cardinality)

    def _message(self, given: Object, rule: Rule, at: str, cardinality: int) -> None:
        try:
            program = rule.message_program
        except CompileError as error:
            self.errors.append(invalid_rule(at, given, f"messageExpression compilation failed: {error}"))
            return
        if program.type.kind not in ("string", "dyn"):
            self.errors.append(invalid_rule(at, given, "messageExpression must evaluate to a string"))
        self._cost(program.cost_estimate.most, cardinality, "messageExpression", at)

    def _cost(self, cost: int, cardinality: int, name: str, at: str) -> None:
        cost *= cardinality
        if cost > RULE_LIMIT:
            self.errors.append(forbidden(at, _too_much(f"estimated {name} cost", cost, RULE_LIMIT)))
        self.total += cost
        self.costs.append((cost, at))


def invalid_rule(at: str, given: Object, detail: str) -> Any:
    """A mistake that shows the whole rule, as Go prints it."""
    shown = show(
        {
            "Rule": given.get("rule") or "",
            "Message": given.get("message") or "",
            "MessageExpression": given.get("messageExpression") or "",
            "Reason": given.get("reason"),
            "FieldPath": given.get("fieldPath") or "",
            "OptionalOldSelf": given.get("optionalOldSelf"),
        }
    )
    for letter, escape in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        shown = shown.replace(letter, escape)
    mistake = invalid(at, None, detail)
    return type(mistake)(at, mistake.reason, f"Invalid value: {shown}: {detail}")


def _has_lines(text: str) -> bool:
    return "\n" in text or "\r" in text


def _count(schema: Object, inner: Object, bound: str, each: int) -> int:
    """How many elements or entries there can be in one request."""
    if (most := schema.get(bound)) is not None:
        return max(int(most), 0)
    type = type_of_schema(inner)
    return (LARGEST_REQUEST - 2) // ((1 if type is None else type.least_size) + each)


def _is_path(path: str, schema: Object) -> bool:
    steps = jsonpaths.steps(path)
    if not path.startswith(".") or not steps:
        return False
    for step in steps:
        if not isinstance(step, str):
            return False
        inner = (schema.get("properties") or {}).get(step) or extra(schema)
        if inner is None:
            return False
        schema = inner
    return True
