"""The step of admission that edits objects as MutatingAdmissionPolicies say.

A policy that is evaluated again when the object changed after it (``reinvocationPolicy: IfNeeded``) is evaluated in the
second round of admission too, if what the first round left was changed by other steps.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from seamark.api.authorization import Authorizer
from seamark.api.fields.declared import Untyped, mistakes, summary, typed
from seamark.api.fields.merging import merge
from seamark.api.fields.patch import Inapplicable, TestFailed, edited
from seamark.api.fields.typed import Listing, Struct, Walker, struct
from seamark.api.policies.params import Misconfigured, param_kind, params
from seamark.api.policies.plugin import Policies, refusal
from seamark.api.policies.policy import BUDGET, Binding, Failure, MutatingPolicy, resulted
from seamark.api.state.cache import Cache
from seamark.api.webhooks.evaluating import Evaluation
from seamark.api.webhooks.patching import take
from seamark.api.webhooks.reinvoking import Rounds
from seamark.api.webhooks.review import Document, headed
from seamark.cel import CelError, CostError, Program
from seamark.cel.compiling import Meter
from seamark.cel.cost import PER_CALL_LIMIT
from seamark.cel.values import weight
from seamark.errors import Object
from seamark.haste import Costly
from seamark.kinds.admission import Operation, Request
from seamark.kinds.kind import Kind
from seamark.kinds.language.decode import DecodeError
from seamark.kinds.resource import MUTATING_POLICIES, MUTATING_POLICY_BINDINGS, Resource
from seamark.kinds.subresource import Part
from seamark.kinds.table import Kinds


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

    def mutate(self, request: Request) -> Awaitable[None] | None:
        try:
            candidates = self.candidates(request)
        except Costly:
            return self.patiently(self.mutate, request)
        if not candidates or not isinstance(request.sub, Part):
            return None
        return self.performed(self._mutate(request, candidates))

    def singles_out(self, request: Request) -> bool:
        try:
            return bool(self.candidates(request))
        except Costly:
            return True

    async def _mutate(self, request: Request, candidates: Iterable[tuple[MutatingPolicy, Sequence[Binding]]]) -> None:
        rounds, before, evaluation = Rounds.of(request, self), request.obj, self.evaluation()
        for policy, bindings in candidates:
            if (match := self.matched(request, policy, bindings)) is not None:
                await self._mutate_by(request, policy, *match, rounds, evaluation)
        if request.obj is not before:
            request.changed = True
            rounds.changed()
        rounds.end(request)

    async def _mutate_by(
        self,
        request: Request,
        policy: MutatingPolicy,
        by: Resource,
        bindings: Sequence[Binding],
        rounds: Rounds,
        evaluation: Evaluation,
    ) -> None:
        try:
            kind = param_kind(self._kinds, policy.param_kind)
        except Misconfigured as error:
            _refuse(request, f'policy "{policy.name}"', policy.failed(str(error)))
            return
        for binding in bindings:
            which = f"policy '{policy.name}' with binding '{binding.name}'"
            try:
                found = await params(kind, request, binding.reference)
            except Misconfigured as error:
                _refuse(request, which, policy.failed(str(error)))
                continue
            for each in found:
                meta = (each or {}).get("metadata", {})
                invocation = (policy.name, binding.name, meta.get("namespace"), meta.get("name"))
                if rounds.skips(request, invocation):
                    continue
                shown = await self.shown(request, by)
                values = self.given(request, shown, by) | ({} if kind is None else {"params": each})
                mutated = await self._mutated(request, policy, which, shown, values, evaluation)
                if mutated and policy.reinvoked:
                    rounds.invoked.add(invocation)

    @staticmethod
    async def _mutated(
        request: Request,
        policy: MutatingPolicy,
        which: str,
        shown: Document,
        values: dict[str, Any],
        evaluation: Evaluation,
    ) -> bool:
        """Do what the mutations say; returns whether the policy looks at the request at all."""
        budget = Meter(BUDGET)
        wrong = await evaluation.of(partial(policy.unmatched, values, budget), budget)
        if wrong is not None:
            _refuse(request, which, wrong)
            return False
        assert shown.kind is not None, "only objects are mutated"
        assert shown.obj is not None, "only objects are mutated"
        current = shown.obj
        for program in policy.mutations:
            try:
                step = partial(_step, policy, program, shown.kind, {**values, "object": current}, budget)
                current = await evaluation.of(step, budget)
            except CelError as error:
                _refuse(request, which, policy.failed(resulted(program, error)))
            except TestFailed:
                continue  # a patch whose test fails is not meant for this object
            except (Inapplicable, DecodeError) as error:
                _refuse(request, which, policy.failed(f"JSON Patch: {error}"))
            except _Unmergeable as error:
                _refuse(request, which, policy.failed(str(error)))
        if current != shown.obj:
            await take(request, current, shown.kind)
        return True


def _step(policy: MutatingPolicy, program: Program, kind: Kind, values: dict[str, Any], budget: Meter) -> Object:
    result = program.evaluate(policy.with_variables(values, budget), budget)
    return _edited(kind, values["object"], result)


class _Unmergeable(Exception):
    """What a mutation made cannot be merged into the object."""


def _edited(kind: Kind, current: Object, result: Any) -> Object:
    """The object as one mutation leaves it: a list is a JSON patch, everything else is merged as by apply."""
    if _too_large(result):
        raise CostError
    if isinstance(result, list):
        new = edited([each for each in result if isinstance(each, dict)], current)
        if not isinstance(new, dict):
            raise Inapplicable("the mutated object is none")
    else:
        if not isinstance(result, dict):
            raise _Unmergeable("the expression did not evaluate to an object")
        new = _applied(kind, current, headed(kind.resource, result))
    obj, _ = kind.conform(headed(kind.resource, new))
    return obj


def _too_large(result: Any) -> bool:
    """Whether it cannot be written out: a list that contains another many times over takes up little room itself."""
    try:
        return weight(result) > PER_CALL_LIMIT
    except RecursionError:
        return True


def _applied(kind: Kind, current: Object, config: Object) -> Object:
    if found := mistakes(config, kind.shape):
        sentence = f"failed to convert patch object to typed object: {summary(found)}"
        raise _Unmergeable(f"error applying patch: {sentence}")
    walker = struct(kind.shape)
    if atomic := ", ".join(_atomics(walker, config, "")):
        sentence = f"may not mutate atomic arrays, maps or structs: {atomic}"
        raise _Unmergeable(f"error applying patch: invalid ApplyConfiguration: {sentence}")
    try:
        return dict(typed(partial(merge, walker, current, config), current, kind.shape))
    except Untyped as error:
        raise _Unmergeable(f"failed to convert original object to typed object: {error}") from None


def _atomics(walker: Walker | None, value: Any, path: str) -> Iterator[str]:
    """The lists, maps and structs that a configuration would replace as a whole, with all that it does not name."""
    if walker is None:
        if isinstance(value, dict | list):
            yield path
    elif isinstance(walker, Struct):
        for name, item in value.items():
            if name in walker.fields:
                yield from _atomics(walker.fields[name][1], item, f"{path}.{name}")
    elif isinstance(walker, Listing):
        for index, item in enumerate(value):
            yield from _atomics(walker.of, item, f"{path}[{index}]")


def _refuse(request: Request, which: str, failures: Sequence[Failure]) -> None:
    if failures:
        raise refusal(request, which, failures[0])
