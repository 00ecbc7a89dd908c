"""The step of admission that asks webhooks: mutating ones one after the other, validating ones all at once.

A mutating webhook that is called again when the object changed after it (``reinvocationPolicy: IfNeeded``) is called in
the second round of admission, and only there.  So are the other steps, if any webhook changed the object.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from functools import partial

import msgspec

from seamark.api.authorization import Authorizer
from seamark.api.state.cache import Cache
from seamark.api.webhooks.asking import AskFailed, Asking
from seamark.api.webhooks.evaluating import Evaluation, authorizer_of
from seamark.api.webhooks.hooks import Configured, Hook, Match
from seamark.api.webhooks.patching import in_version, patched, take
from seamark.api.webhooks.reinvoking import Rounds
from seamark.api.webhooks.review import Document, Verdict, denial, document, question, review
from seamark.api.write.values import new_uid
from seamark.errors import ApiError, Object, internal
from seamark.haste import Patience
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.registration.conditions import ConditionError, met
from seamark.kinds.registration.selecting import EXEMPT
from seamark.kinds.resource import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from seamark.kinds.table import Kinds

_log = logging.getLogger(__name__)


class Webhooks(Plugin):
    """Asks the webhooks of one server's configurations."""

    def __init__(self, cache: Cache, kinds: Kinds, asking: Asking, authorizer: Authorizer) -> None:
        self._asking = asking
        self._authorizer = authorizer
        self._patience = Patience()
        self._mutating = Configured(cache, kinds, MUTATING_WEBHOOKS, mutating=True, gone=asking.forget)
        self._validating = Configured(cache, kinds, VALIDATING_WEBHOOKS, mutating=False, gone=asking.forget)

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        return kind.resource not in EXEMPT

    @property
    def idle(self) -> bool:
        return self._mutating.idle and self._validating.idle

    # --- mutating -----------------------------------------------------------------------------------

    def mutate(self, request: Request) -> Awaitable[None] | None:
        matches = self._mutating.of(request)
        return self._mutate(request, matches) if matches else None

    def singles_out(self, request: Request) -> bool:
        return bool(self._mutating.of(request))

    async def _mutate(self, request: Request, matches: Sequence[Match]) -> None:
        rounds, evaluation = Rounds.of(request, self), Evaluation(self._patience)
        for place, (hook, shown) in enumerate(matches):
            if rounds.skips(request, hook.id):
                continue
            mutated = await self._mutated_by(hook, shown, request, f"round_{request.round}_index_{place}", evaluation)
            if mutated:
                request.changed = True
                rounds.changed()
            if hook.reinvoked:
                rounds.invoked.add(hook.id)
        rounds.end(request)

    async def _mutated_by(self, hook: Hook, to: Kind, request: Request, place: str, evaluation: Evaluation) -> bool:
        """Ask one webhook, and do what its patch says; returns whether the object is another one now."""
        own = document(request)
        shown = await self._shown(request, own, to)
        found = await self._ask(hook, to, request, own, shown, place, evaluation)
        mutated = False
        if found is not None and found.patch:
            if found.patch_type != "JSONPatch":
                text = f'failed calling webhook "{hook.name}": unsupported patch type "{found.patch_type}"'
                raise internal(text)
            new = patched(hook.name, shown, found.patch)
            mutated = new != shown.obj
            if mutated:
                await take(request, new, to)
        if found is not None and request.notes is not None:
            said = {"configuration": hook.configuration, "webhook": hook.name, "mutated": mutated}
            request.notes.annotate(f"mutation.webhook.admission.k8s.io/{place}", msgspec.json.encode(said).decode())
        return mutated

    @staticmethod
    async def _shown(request: Request, own: Document, to: Kind) -> Document:
        """The documents in the version that the webhook is for."""
        if to is request.kind or own.kind is not request.kind:
            return own
        return await in_version(request.kind, own, to)

    # --- validating ---------------------------------------------------------------------------------

    def validate(self, request: Request) -> Awaitable[None] | None:
        matches = self._validating.of(request)
        return self._validate(request, matches) if matches else None

    async def _validate(self, request: Request, matches: Sequence[Match]) -> None:
        own = document(request)
        memory = request.memory = request.memory or {}
        judged = msgspec.json.encode((own.obj, own.old))
        if memory.get("judged") == judged:
            return  # A write that is tried again, because of another object, is the same.
        shown = [await self._shown(request, own, to) for _, to in matches]
        evaluation = Evaluation(self._patience)
        asked = (
            self._ask(hook, to, request, own, seen, f"round_0_index_{place}", evaluation)
            for place, ((hook, to), seen) in enumerate(zip(matches, shown, strict=True))
        )
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer
        memory["judged"] = judged

    def _variables(self, request: Request, asked: Object) -> Object:
        """What match conditions can name."""
        return {
            "object": asked["object"],
            "oldObject": asked["oldObject"],
            "request": asked,
            "authorizer": authorizer_of(self._authorizer, request.user),
        }

    # --- asking -------------------------------------------------------------------------------------

    async def _ask(
        self,
        hook: Hook,
        to: Kind,
        request: Request,
        own: Document,
        shown: Document,
        place: str,
        evaluation: Evaluation,
    ) -> Verdict | None:
        """The answer of a webhook that allows the request, None if it failed and that is ignored; raises otherwise."""
        operation, uid = request.operation, new_uid()
        asked = question(hook, request, own, shown, to.resource, uid)
        try:
            if hook.conditions:
                variables = self._variables(request, asked)
                if not await evaluation.of(partial(met, hook.conditions, variables)):
                    return None
            found = await self._asking.ask(hook, review(hook, asked), uid, operation)
        except ConditionError as error:
            if hook.ignores_failures:
                return None
            raise request.forbidden(str(error)) from error
        except AskFailed as error:
            if hook.ignores_failures:
                _log.warning("%s; its failurePolicy is Ignore, so the write goes on", error)
                self._asking.failed_open(hook)
                if request.notes is not None:
                    kind = "mutating" if hook.mutating else "validating"
                    request.notes.annotate(f"failed-open.{kind}.webhook.admission.k8s.io/{place}", hook.name)
                return None
            self._asking.rejected(hook, operation, "calling_webhook_error", 0)
            raise internal(str(error)) from error
        if request.notes is not None:
            request.notes.warn(found.warnings)
            for key, value in found.annotations.items():
                request.notes.annotate(f"{hook.name}/{key}", value)
        if not found.allowed:
            refusal: ApiError = denial(hook.name, found.status)
            self._asking.rejected(hook, operation, "no_error", refusal.code)
            raise refusal
        return found
