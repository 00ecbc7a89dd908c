"""The step of admission that edits objects as MutatingAdmissionPolicies say.

A policy that is evaluated again when the object changed after it (``reinvocationPolicy: IfNeeded``) is evaluated in the
second round of admission too, if what the first round left was changed by other steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seamark.api.authorization import Authorizer
from seamark.api.fields.merging import merge
from seamark.api.fields.patch import Inapplicable, edited
from seamark.api.fields.typed import struct
from seamark.api.policies.params import Misconfigured, params
from seamark.api.policies.plugin import CODES, Policies
from seamark.api.policies.policy import BUDGET, Binding, Failure, MutatingPolicy, resulted
from seamark.api.state.cache import Cache
from seamark.api.webhooks.patching import moved
from seamark.api.webhooks.review import headed
from seamark.cel import CelError
from seamark.cel.compiling import Meter
from seamark.errors import ApiError, Cause, Object
from seamark.kinds.admission import Operation, Request
from seamark.kinds.kind import Kind
from seamark.kinds.language.decode import DecodeError
from seamark.kinds.resource import MUTATING_POLICIES, MUTATING_POLICY_BINDINGS, Resource
from seamark.kinds.subresource import Part, View
from seamark.kinds.table import Kinds
from seamark.kinds.values.refusals import named

_OF_TYPE = ("apiVersion", "kind")


class MutatingPolicies(Policies[MutatingPolicy]):
    """Evaluates the MutatingAdmissionPolicies of one server."""

    def __init__(self, cache: Cache, kinds: Kinds, authorizer: Authorizer) -> None:
        super().__init__(
            cache,
            kinds,
            authorizer,
            policies=MUTATING_POLICIES,
            bindings=MUTATING_POLICY_BINDINGS,
            make=MutatingPolicy,
        )

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        return operation in ("CREATE", "UPDATE") and super().concerns(kind, operation, part)

    def mutate(self, request: Request) -> None:
        candidates = self.candidates(request)
        if not candidates or not isinstance(request.sub, Part) or isinstance(request.sub, View):
            return
        memory = request.memory = request.memory or {}
        again = bool(request.round) and memory.get(self) != msgspec.json.encode(request.obj)
        for policy, bindings in candidates:
            if request.round and not (again and policy.reinvoked):
                continue
            if (match := self.matched(request, policy, bindings)) is not None:
                for binding in match[1]:
                    self._mutate_by(request, policy, binding, match[0])
        memory[self] = msgspec.json.encode(request.obj)

    def _mutate_by(self, request: Request, policy: MutatingPolicy, binding: Binding, by: Resource) -> None:
        try:
            found = params(self._kinds, request, policy.param_kind, binding.reference)
        except Misconfigured as error:
            _refuse(request, policy, binding, policy.failed(str(error)))
            return
        for each in found:
            values = self.given(request, by)
            if policy.param_kind is not None:
                values["params"] = each
            _refuse(request, policy, binding, self._mutated(request, policy, by, values))

    def _mutated(
        self, request: Request, policy: MutatingPolicy, by: Resource, values: dict[str, Any]
    ) -> Sequence[Failure]:
        """Do what the mutations say, all or none; returns what went wrong."""
        budget = Meter(BUDGET)
        wrong = policy.unmatched(values, budget)
        if wrong is not None:
            return wrong
        shown_as = self._kinds.by_plural(by.group, by.version, by.plural) or request.kind
        current: Object = values["object"]
        for program in policy.mutations:
            try:
                result = program.evaluate(policy.with_variables({**values, "object": current}, budget), budget)
                current = _edited(shown_as, current, result)
            except CelError as error:
                return policy.failed(resulted(program, error))
            except (Inapplicable, DecodeError, _Unmergeable) as error:
                return policy.failed(str(error))
        if current != values["object"]:
            request.obj = moved(current, shown_as, request.kind)
            assert isinstance(request.sub, Part), "views and actions are not mutated"
            request.sub.default(request.kind, request.obj)
            request.changed = True
        return ()


class _Unmergeable(Exception):
    """What a mutation made cannot be merged into the object."""


def _edited(kind: Kind, current: Object, result: Any) -> Object:
    """The object as one mutation leaves it: a list is a JSON patch, everything else is merged as by apply."""
    if isinstance(result, list):
        operations = [each for each in result if isinstance(each, dict)]
        new = edited(operations, current)
    else:
        if not isinstance(result, dict):
            raise _Unmergeable("the expression did not evaluate to an object")
        named_type = [key for key in _OF_TYPE if key in result]
        if named_type:
            raise _Unmergeable(f"field {named_type[0]} may not be set by a mutation")
        new = merge(struct(kind.shape), current, result)
    if not isinstance(new, dict):
        raise _Unmergeable("the mutated object is none")
    obj, _ = kind.conform(headed(kind.resource, new))
    return obj


def _refuse(request: Request, policy: MutatingPolicy, binding: Binding, failures: Sequence[Failure]) -> None:
    if not failures:
        return
    failure, resource = failures[0], request.kind.resource
    sentence = f"policy '{policy.name}' with binding '{binding.name}' denied request: {failure.message}"
    raise ApiError(
        f'{resource.qualified} "{request.name}" is forbidden: {sentence}',
        code=CODES[failure.reason],
        reason=failure.reason,
        details=named(resource, request.name),
        causes=[Cause(message=sentence)],
    )
