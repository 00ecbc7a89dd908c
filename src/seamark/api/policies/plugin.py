"""The step of admission that evaluates ValidatingAdmissionPolicies.

Policies and bindings are read again when one of them has changed, at the next write.  Which policies can match a kind
of request is found out once, so a request that none looks at costs a look-up.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from seamark.api.authorization import Authorizer
from seamark.api.policies.given import given
from seamark.api.policies.params import Misconfigured, param_kind, params
from seamark.api.policies.policy import Binding, Failure, Policy, ValidatingPolicy, binding_of
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Entry
from seamark.api.webhooks.evaluating import Evaluation
from seamark.api.webhooks.patching import in_version
from seamark.api.webhooks.review import Document, document
from seamark.errors import ApiError, Cause, Object
from seamark.haste import Costly, Patience, at_once
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.registration.expressions import Unfit
from seamark.kinds.registration.selecting import EXEMPT
from seamark.kinds.resource import VALIDATING_POLICIES, VALIDATING_POLICY_BINDINGS, Resource
from seamark.kinds.table import Kinds
from seamark.kinds.values.refusals import named

_log = logging.getLogger(__name__)

MOST_KNOWN = 4096
FAILURE_NOTE = "validation.policy.admission.k8s.io/validation_failure"
CODES = {"Unauthorized": 401, "Forbidden": 403, "RequestEntityTooLarge": 413, "Invalid": 422}

P = TypeVar("P", bound=Policy)


class Policies(Plugin, Generic[P]):
    """The policies of one kind, and the bindings that put them in force."""

    def __init__(
        self,
        cache: Cache,
        kinds: Kinds,
        authorizer: Authorizer,
        *,
        policies: Resource,
        bindings: Resource,
        make: Callable[[Object], P],
    ) -> None:
        self._cache = cache
        self._kinds = kinds
        self._authorizer = authorizer
        self._make = make
        self._policies = cache.of(policies)
        self._bindings = cache.of(bindings)
        self._read_at = (-1, -1)
        self._bound: list[tuple[P, Sequence[Binding]]] = []
        # By name: the version it was made of; None for one that cannot be evaluated.
        self._compiled: dict[str, tuple[int, P | None]] = {}
        self._patience = Patience()
        self._known: dict[tuple[Kind, Operation, str], list[tuple[P, Sequence[Binding]]]] = {}

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        return kind.resource not in EXEMPT

    @property
    def idle(self) -> bool:
        return not self._policies.entries

    def candidates(self, request: Request) -> Sequence[tuple[P, Sequence[Binding]]]:
        """The policies whose rules are about such requests; raises Costly if that takes long: :meth:`patiently`."""
        if self._read_at != (self._policies.changed, self._bindings.changed):
            self._read()
        if not self._bound:
            return ()
        key = (request.kind, request.operation, request.part)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[key] = [bound for bound in self._bound if self._can_match(bound[0], *key)]
        return found

    async def patiently(self, step: Callable[[Request], Awaitable[None] | None], request: Request) -> None:
        """Do a step of admission when all policies are compiled, which takes long."""
        for name, entry in self._in_force():
            if self._compiled.get(name, (0,))[0] != entry.revision:
                self._compiled[name] = (entry.revision, await self._patience.hear(self._made, name, entry))
        if (later := step(request)) is not None:
            await later

    def matched(
        self, request: Request, policy: P, bindings: Sequence[Binding]
    ) -> tuple[Resource, list[Binding]] | None:
        """The resource by which a policy matches a request, and the bindings that match it too."""
        place = (request.operation, request.kind.resource, request.part, self._equivalents(request.kind))
        name = request.name if request.place is not None else request.obj["metadata"].get("name") or ""
        by = policy.match.by(*place, name)
        if by is None or not policy.match.selects(request):
            return None
        return by, [each for each in bindings if each.match.by(*place, name) and each.match.selects(request)]

    def performed(self, work: Coroutine[Any, Any, None]) -> Awaitable[None] | None:
        """Have policies evaluated: at once, unless that takes long, or a webhook has to convert objects for them."""
        try:
            return _Begun(work, work.send(None))
        except StopIteration:
            return None

    def evaluation(self) -> Evaluation:
        return Evaluation(self._patience)

    def given(self, request: Request, shown: Document, by: Resource) -> dict[str, Any]:
        """What expressions are given of a request that a policy matches by this resource."""
        return given(request, shown, by, self._authorizer)

    # --- reading ------------------------------------------------------------------------------------

    def _read(self) -> None:
        bindings = self._read_bindings()
        bound: list[tuple[P, Sequence[Binding]]] = []
        for name, entry in self._in_force(bindings):
            known = self._compiled.get(name)
            if known is None or known[0] != entry.revision:
                known = self._compiled[name] = (entry.revision, at_once(partial(self._made, name, entry)))
            if known[1] is not None:
                bound.append((known[1], bindings[name]))
        self._bound = bound
        self._compiled = {name: kept for name, kept in self._compiled.items() if name in self._policies.entries}
        self._known.clear()
        self._read_at = (self._policies.changed, self._bindings.changed)

    def _read_bindings(self) -> dict[str, list[Binding]]:
        bindings: dict[str, list[Binding]] = {}
        for name in sorted(self._bindings.entries):
            obj = self._bindings.entries[name].decode()
            bindings.setdefault(obj["spec"]["policyName"], []).append(binding_of(obj))
        return bindings

    def _in_force(self, bindings: Iterable[str] | None = None) -> list[tuple[str, Entry]]:
        """The policies that have bindings."""
        names = set(self._read_bindings() if bindings is None else bindings) & set(self._policies.entries)
        return [(name, self._policies.entries[name]) for name in sorted(names)]

    def _made(self, name: str, entry: Entry) -> P | None:
        try:
            return self._make(entry.decode())
        except Unfit as error:
            # Only one that was stored before expressions were checked.
            _log.warning("the policy %s is not evaluated: %s", name, error)
            return None

    def _equivalents(self, kind: Kind) -> Sequence[Resource]:
        return sorted(self._cache.of(kind.resource).shown_as, key=str) if kind.stored else ()

    def _can_match(self, policy: P, kind: Kind, operation: Operation, part: str) -> bool:
        """Whether the rules are about such requests, whatever the names of the objects."""
        rules = [{**rule, "resourceNames": []} for rule in policy.match.rules]
        match = msgspec.structs.replace(policy.match, rules=rules, excluded=())
        return match.by(operation, kind.resource, part, self._equivalents(kind), "") is not None

    async def shown(self, request: Request, by: Resource) -> Document:
        """The documents in the version by which the policy matches."""
        own = document(request)
        to = self._kinds.by_plural(by.group, by.version, by.plural)
        if to is None or to is request.kind or own.kind is not request.kind:
            return own
        return await in_version(request.kind, own, to)


class ValidatingPolicies(Policies[ValidatingPolicy]):
    """Evaluates the ValidatingAdmissionPolicies of one server."""

    def __init__(self, cache: Cache, kinds: Kinds, authorizer: Authorizer) -> None:
        super().__init__(
            cache,
            kinds,
            authorizer,
            policies=VALIDATING_POLICIES,
            bindings=VALIDATING_POLICY_BINDINGS,
            make=ValidatingPolicy,
        )

    def validate(self, request: Request) -> Awaitable[None] | None:
        try:
            candidates = self.candidates(request)
        except Costly:
            return self.patiently(self.validate, request)
        return self.performed(self._validate(request, candidates)) if candidates else None

    async def _validate(
        self, request: Request, candidates: Iterable[tuple[ValidatingPolicy, Sequence[Binding]]]
    ) -> None:
        first: ApiError | None = None
        evaluation = self.evaluation()
        for policy, bindings in candidates:
            found = await self._judged(request, policy, bindings, evaluation)
            first = first or found
        if first is not None:
            raise first

    async def _judged(
        self, request: Request, policy: ValidatingPolicy, bindings: Sequence[Binding], evaluation: Evaluation
    ) -> ApiError | None:
        """Why the policy refuses the request, if it does; warns and notes what its bindings say."""
        match = self.matched(request, policy, bindings)
        if match is None:
            return None
        which = f"ValidatingAdmissionPolicy '{policy.name}'"
        try:
            kind = param_kind(self._kinds, policy.param_kind)
        except Misconfigured as error:
            return next((refusal(request, which, each) for each in policy.failed(str(error))), None)
        first = None
        notes: dict[str, list[str]] = {}
        values = self.given(request, await self.shown(request, match[0]), match[0])
        for binding in match[1]:
            for failure in await self._failures(request, policy, binding, kind, values, notes, evaluation):
                found = self._acted(request, policy, binding, failure)
                first = first or found
        if request.notes is not None:
            for key, said in notes.items():
                request.notes.annotate(key, ", ".join(said))
        return first

    @staticmethod
    async def _failures(
        request: Request,
        policy: ValidatingPolicy,
        binding: Binding,
        kind: Kind | None,
        values: Object,
        notes: dict[str, list[str]],
        evaluation: Evaluation,
    ) -> list[Failure]:
        """What the request fails by; ``notes`` gets what the audit log is to say, each value once."""
        try:
            found = await params(kind, request, binding.reference)
        except Misconfigured as error:
            return policy.failed(str(error), certain=True)
        failures: list[Failure] = []
        for each in found:
            given = {**values, "params": each} if kind is not None else values
            wrong, said = await evaluation.of(partial(policy.judge, given))
            failures += wrong
            for key, value in said.items():
                if value not in notes.setdefault(key, []):
                    notes[key].append(value)
        return failures

    @staticmethod
    def _acted(request: Request, policy: ValidatingPolicy, binding: Binding, failure: Failure) -> ApiError | None:
        """Do what the binding says about a failure; returns the refusal, if it refuses."""
        which = f"ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}'"
        if request.notes is not None and not failure.certain and "Warn" in binding.actions:
            request.notes.warn([f"Validation failed for {which}: {failure.message}"])
        if request.notes is not None and not failure.certain and "Audit" in binding.actions:
            said = {
                "message": failure.message,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": failure.index,
                "validationActions": binding.actions,
            }
            # Of several failures, Kubernetes keeps the first.
            request.notes.annotate(FAILURE_NOTE, msgspec.json.encode([said]).decode())
        return refusal(request, which, failure) if failure.certain or "Deny" in binding.actions else None


class _Begun(Awaitable[None]):
    """The rest of a coroutine, and the future that it waits for."""

    def __init__(self, work: Coroutine[Any, Any, None], waits_for: Any) -> None:
        self._work, self._waits_for = work, waits_for

    def __await__(self) -> Generator[Any, Any, None]:
        waits_for = self._waits_for
        try:
            while True:
                try:
                    yield waits_for
                except BaseException as error:
                    waits_for = self._work.throw(error)
                else:
                    waits_for = self._work.send(None)
        except StopIteration:
            return


def refusal(request: Request, which: str, failure: Failure) -> ApiError:
    sentence = f"{which} denied request: {failure.message}"
    resource = request.kind.resource
    return ApiError(
        f'{resource.qualified} "{request.name}" is forbidden: {sentence}',
        code=CODES[failure.reason],
        reason=failure.reason,
        details=named(resource, request.name),
        causes=[Cause(message=sentence)],
    )
