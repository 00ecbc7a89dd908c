"""x-kubernetes-validations: rules of a schema, compiled once, and what instances that break them are told.

``runner(schema)`` is None where a schema has no rules.  A rule that was broken before, by a value that an
update did not change, is only a warning; rules about changes (``oldSelf``) always hold.

Rules may take seconds before they have cost too much: ``HURRIED`` is what they may cost on the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from seamark.cel import CelError, CompileError, CostError, EvaluationError, Program
from seamark.cel.compiling import Meter
from seamark.cel.equality import identity
from seamark.cel.types import Type, optional_of
from seamark.cel.values import NONE, some
from seamark.errors import Object
from seamark.kinds.expressions.environments import environment
from seamark.kinds.expressions.schema_types import type_of_schema
from seamark.kinds.extensions import jsonpaths
from seamark.kinds.extensions.checking import ABSENT
from seamark.kinds.extensions.schemas import LIST_KEYS, LIST_TYPE, RULES, extra, has_rules, items
from seamark.kinds.values.fields import Errors, FieldError, show

BUDGET = 10_000_000  # what all rules together may cost for one object
HURRIED = 5_000  # what they may cost on the event loop
_LONGEST_MESSAGE = 5 * 1024
_SKIPPED = "some validation rules were not checked because the object was invalid; correct the existing errors to "
_BLOCKING = ("FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany")
_EMPTY = "validation failed due to running out of cost budget, no further validation rules will be run"

Path = tuple[Any, ...]
# Arguments: the value, the old value (or ABSENT), whether there is a whole old object, and where to put mistakes.
Run = Callable[[Any, Any, str, "Outcome"], None]


class Outcome:
    """What an evaluation found: mistakes, and those that an update did not make."""

    def __init__(self, budget: int = BUDGET) -> None:
        self.errors: Errors = []
        self.tolerated: Errors = []
        self.budget = Meter(budget)


class Rule:
    """One rule of a schema; its programs are made when they are first needed."""

    def __init__(self, given: Object, type: Type) -> None:
        self.text: str = given.get("rule") or ""
        self.message: str = (given.get("message") or "").strip()
        self.message_expression: str = given.get("messageExpression") or ""
        self.reason: str = given.get("reason") or "FieldValueInvalid"
        self.field_path: str = given.get("fieldPath") or ""
        self.optional = bool(given.get("optionalOldSelf"))
        self._type = type

    @cached_property
    def _environment(self) -> Any:
        old = optional_of(self._type) if self.optional else self._type
        return environment({"self": self._type, "oldSelf": old})

    @cached_property
    def program(self) -> Program:
        return self._compiled(self.text)

    @cached_property
    def message_program(self) -> Program:
        return self._compiled(self.message_expression)

    def _compiled(self, text: str) -> Program:
        made: Program = self._environment.compile(text)
        return made

    @cached_property
    def is_transition(self) -> bool:
        return "oldSelf" in self.program.names

    def given(self, value: Any, old: Any) -> dict[str, Any] | None:
        """The variables, or None if the rule says nothing now."""
        if not self.is_transition:
            return {"self": value}
        if self.optional:
            return {"self": value, "oldSelf": NONE if old is ABSENT or old is None else some(old)}
        return None if old is ABSENT or old is None else {"self": value, "oldSelf": old}

    def words(self, given: dict[str, Any], budget: Meter) -> str:
        """What an instance that breaks the rule is told."""
        if self.message_expression:
            try:
                said = self.message_program.evaluate(
                    {**given, "oldSelf": given.get("oldSelf", NONE if self.optional else None)}, budget
                )
                if isinstance(said, str) and said.strip() and "\n" not in said and len(said) <= _LONGEST_MESSAGE:
                    return said.strip()
            except CelError:
                pass  # the message says it in its stead
        return self.message or f"failed rule: {self.text.strip()}"


def runner(schema: Object, *, root: bool = False) -> Run | None:
    """The rules of a schema and of everything in it, or None if it has none."""
    if not has_rules(schema):
        return None
    return _runner(schema, root=root)


def _runner(schema: Object, *, root: bool) -> Run:
    type = type_of_schema(schema, root=root, name="selfType") if schema.get(RULES) else None
    rules = [Rule(given, type) for given in schema.get(RULES) or ()] if type is not None else []
    word = schema.get("type") or ""
    inside = {name: made for name, inner in (schema.get("properties") or {}).items() if (made := runner(inner))}
    other = runner(others) if (others := extra(schema)) is not None else None
    element = runner(elements) if (elements := items(schema)) is not None else None
    keys = tuple(schema.get(LIST_KEYS) or ()) if schema.get(LIST_TYPE) == "map" else ()

    def run(value: Any, old: Any, path: str, outcome: Outcome) -> None:
        if value is None:
            return
        for rule in rules:
            if outcome.budget.left < 0:
                return
            _apply(rule, value, old, path, word, outcome)
        if value.__class__ is dict:
            before = old if old.__class__ is dict else {}
            for name, item in value.items():
                if name in inside:
                    inside[name](item, before.get(name, ABSENT), f"{path}.{name}" if path else name, outcome)
                elif other is not None:
                    other(item, before.get(name, ABSENT), f"{path}[{name}]", outcome)
        elif value.__class__ is list and element is not None:
            found = {identity(item, keys): item for item in old} if keys and old.__class__ is list else {}
            for index, item in enumerate(value):
                previous = found.get(identity(item, keys), ABSENT) if found else ABSENT
                element(item, previous, f"{path}[{index}]", outcome)

    return run


def _apply(rule: Rule, value: Any, old: Any, path: str, word: str, outcome: Outcome) -> None:
    at = path or "<nil>"
    named = rule.message or rule.text.strip()
    try:
        given = rule.given(value, old)
        if given is None:
            return
        result = rule.program.evaluate(given, outcome.budget)
    except CompileError as error:
        mistake = _wrong(at, word, f"rule compile error: {error}")
    except CostError as error:
        if outcome.budget.left <= 0:
            outcome.budget.left = -1
            outcome.errors.append(_wrong(at, word, _EMPTY))
            return
        text = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {named}"
        outcome.budget.left = -1
        mistake = _wrong(at, word, text)
    except EvaluationError as error:
        if str(error).startswith("no such overload"):
            signature = "call arguments did not match a supported operator, function or macro signature"
            mistake = _wrong(at, word, f"'{error}': {signature} for rule: {named}")
        else:
            mistake = _wrong(at, word, f"{error} evaluating rule: {named}")
    else:
        if result is True:
            return
        mistake = _mistake(rule, value, path, rule.words(given, outcome.budget))
    unchanged = old is not ABSENT and not rule.is_transition and old == value
    (outcome.tolerated if unchanged else outcome.errors).append(mistake)


def _wrong(at: str, word: str, detail: str) -> FieldError:
    return FieldError(at, "FieldValueInvalid", f"Invalid value: {show(word)}: {detail}")


def _mistake(rule: Rule, value: Any, path: str, words: str) -> FieldError:
    steps = jsonpaths.steps(rule.field_path) or () if rule.field_path else ()
    at = ".".join(part for part in (path, *map(str, steps)) if part) or "<nil>"
    shown = "" if isinstance(value, dict | list) else f": {show(value)}"
    match rule.reason:
        case "FieldValueRequired":
            message = f"Required value: {words}"
        case "FieldValueForbidden":
            message = f"Forbidden: {words}"
        case "FieldValueDuplicate":
            message = f"Duplicate value{shown}"
        case _:
            message = f"Invalid value{shown}: {words}"
    return FieldError(at, rule.reason, message)


def not_checked(errors: Errors) -> Errors:
    """What is said of the rules when the schema itself is broken so that they cannot be checked."""
    if any(error.reason in _BLOCKING or error.reason == "FieldValueTypeInvalid" for error in errors):
        return [FieldError("<nil>", "FieldValueInvalid", f"Invalid value: null: {_SKIPPED}complete validation")]
    return []
