"""A policy and its bindings as they are evaluated, compiled once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seamark.cel import CelError, CostError, Program
from seamark.cel.compiling import Meter
from seamark.errors import Object
from seamark.kinds.admission import Operation, Request
from seamark.kinds.registration.expressions import Variables, compiled, environment, mutation_program
from seamark.kinds.registration.selecting import matched, namespace_selected, object_selected
from seamark.kinds.resource import Resource
from seamark.kinds.values.selectors import LabelSelector, from_label_selector

BUDGET = 10_000_000  # what all expressions of a policy together may cost for one request
LONGEST_MESSAGE = 5 * 1024
LONGEST_NOTE = 10 * 1024
OUT_OF_BUDGET = "validation failed due to running out of cost budget, no further validation rules will be run"


class Match(msgspec.Struct, frozen=True, eq=False):
    """Which requests are matched: ``matchConstraints`` of a policy, ``matchResources`` of a binding."""

    rules: Sequence[Object]
    excluded: Sequence[Object]
    exact: bool
    namespaces: LabelSelector
    objects: LabelSelector

    def by(
        self, operation: Operation, resource: Resource, part: str, equivalents: Sequence[Resource], name: str
    ) -> Resource | None:
        """The resource by which such a request is matched.  Without rules, all are."""
        others = () if self.exact else equivalents
        if matched(_naming(self.excluded, name), operation, resource, part, others) is not None:
            return None
        if not self.rules:
            return resource
        return matched(_naming(self.rules, name), operation, resource, part, others)

    def selects(self, request: Request) -> bool:
        return namespace_selected(request, self.namespaces) and object_selected(request, self.objects)


def _naming(rules: Sequence[Object], name: str) -> Sequence[Object]:
    """The rules that are about all objects or about this one."""
    return [rule for rule in rules if name in (rule.get("resourceNames") or (name,))]


def match_of(match: Object | None) -> Match:
    match = match or {}
    return Match(
        match.get("resourceRules") or (),
        match.get("excludeResourceRules") or (),
        match.get("matchPolicy") == "Exact",
        from_label_selector(match.get("namespaceSelector") or {}),
        from_label_selector(match.get("objectSelector") or {}),
    )


class Binding(msgspec.Struct, frozen=True, eq=False):
    """What puts a policy in force."""

    name: str
    match: Match
    reference: Object | None
    actions: Sequence[str]


def binding_of(binding: Object) -> Binding:
    spec = binding["spec"]
    actions = spec.get("validationActions") or ()
    return Binding(binding["metadata"]["name"], match_of(spec.get("matchResources")), spec.get("paramRef"), actions)


class Validation(msgspec.Struct, frozen=True, eq=False):
    program: Program
    message: str
    says: Program | None
    reason: str


class Failure(msgspec.Struct, frozen=True):
    """Why a request is not as a policy wants it."""

    message: str
    reason: str = "Invalid"
    index: int = 0  # of the validation
    certain: bool = False  # it refuses the request, whatever the actions of the binding


class _Variables(dict[str, Any]):
    """The variables of a policy, each evaluated when it is first read."""

    def __init__(self, programs: dict[str, Program], given: dict[str, Any], budget: Meter) -> None:
        super().__init__()
        self._programs, self._given, self._budget = programs, given, budget

    def __missing__(self, name: str) -> Any:
        program = self._programs[name]
        try:
            value = self[name] = program.evaluate(self._given, self._budget)
        except CostError:
            raise
        except CelError as error:
            raise type(error)(f'composited variable "{name}" fails to evaluate: {error}') from error
        return value


class Policy:
    """What validating and mutating policies have in common; its expressions are valid."""

    def __init__(self, obj: Object) -> None:
        spec = obj["spec"]
        self.name: str = obj["metadata"]["name"]
        self.match = match_of(spec.get("matchConstraints"))
        self.param_kind: Object | None = spec.get("paramKind")
        self.ignores_failures = spec.get("failurePolicy") == "Ignore"
        base = environment(params=self.param_kind is not None)
        self._conditions = [compiled(base, each["expression"]) for each in spec.get("matchConditions") or ()]
        self._variables: dict[str, Program] = {}
        variables = Variables(base)
        self._env = variables.env
        for each in spec.get("variables") or ():
            program = self._variables[each["name"]] = compiled(self._env, each["expression"])
            variables.declare(each["name"], program.type)

    def failed(self, message: str, *, index: int = 0, certain: bool = False) -> list[Failure]:
        """What follows from something that went wrong."""
        return [] if self.ignores_failures else [Failure(message, index=index, certain=certain)]

    def unmatched(self, given: dict[str, Any], budget: Meter) -> list[Failure] | None:
        """What follows if the conditions do not let the policy look at the request; None if they do."""
        errors = []
        for program in self._conditions:
            try:
                if program.evaluate(given, budget) is not True:
                    return []
            except CelError as error:
                errors.append(resulted(program, error))
        if not errors:
            return None
        return self.failed(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")

    def with_variables(self, given: dict[str, Any], budget: Meter) -> dict[str, Any]:
        """What the other expressions are given: the variables of the policy too."""
        given = dict(given)
        given["variables"] = _Variables(self._variables, given, budget)
        return given


class ValidatingPolicy(Policy):
    """A ValidatingAdmissionPolicy."""

    def __init__(self, obj: Object) -> None:
        super().__init__(obj)
        spec, env = obj["spec"], self._env
        self._validations = [
            Validation(
                compiled(env, each["expression"]),
                each.get("message") or "",
                compiled(env, says) if (says := each.get("messageExpression")) else None,
                each.get("reason") or "Invalid",
            )
            for each in spec.get("validations") or ()
        ]
        notes = spec.get("auditAnnotations") or ()
        self._notes = [(each["key"], compiled(env, each["valueExpression"])) for each in notes]

    def judge(self, given: dict[str, Any]) -> tuple[list[Failure], dict[str, str]]:
        """What a request fails by, and what the audit log is to say of it, by key."""
        budget = Meter(BUDGET)
        wrong = self.unmatched(given, budget)
        if wrong is not None:
            return wrong, {}
        given = self.with_variables(given, budget)
        failures = []
        for index, validation in enumerate(self._validations):
            try:
                if validation.program.evaluate(given, budget) is not True:
                    failures.append(Failure(self._message(validation, given, budget), validation.reason, index))
            except CelError as error:
                if budget.left <= 0:
                    return self.failed(OUT_OF_BUDGET), {}
                failures += self.failed(resulted(validation.program, error), index=index)
        wrong, notes = self._annotations(given)
        return failures + wrong, notes

    @staticmethod
    def _message(validation: Validation, given: dict[str, Any], budget: Meter) -> str:
        if validation.says is not None:
            try:
                said = str(validation.says.evaluate(given, budget)).strip()
            except CelError:
                said = ""  # the fixed message is as good
            if said and "\n" not in said and len(said.encode()) <= LONGEST_MESSAGE:
                return said
        return validation.message.strip() or f"failed expression: {validation.program.text.strip()}"

    def _annotations(self, given: dict[str, Any]) -> tuple[list[Failure], dict[str, str]]:
        """What went wrong with the annotations, and those that did not."""
        wrong: list[Failure] = []
        notes, budget = {}, Meter(BUDGET)
        for key, program in self._notes:
            try:
                value = program.evaluate(given, budget)
            except CelError as error:
                wrong += self.failed(resulted(program, error), certain=True)
                continue
            if isinstance(value, str) and value.strip():
                notes[f"{self.name}/{key}"] = value.strip().encode()[:LONGEST_NOTE].decode(errors="ignore")
        return wrong, notes


class MutatingPolicy(Policy):
    """A MutatingAdmissionPolicy."""

    def __init__(self, obj: Object) -> None:
        super().__init__(obj)
        spec = obj["spec"]
        self.reinvoked = spec.get("reinvocationPolicy") == "IfNeeded"
        self._mutations = [mutation_program(self._env, each) for each in spec.get("mutations") or ()]

    @property
    def mutations(self) -> Sequence[Program]:
        return self._mutations


def resulted(program: Program, error: CelError) -> str:
    return f"expression '{program.text}' resulted in error: {error}"
