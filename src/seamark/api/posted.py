"""Documents that are posted and not stored: reviews and questions are answered, actions are carried out."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.api import intake
from seamark.api.admission import Admission
from seamark.api.authentication import Authenticator
from seamark.api.authorization import Authorizer
from seamark.api.call import Caller, DeleteOptions, Target
from seamark.api.delete import Deleter, check_preconditions
from seamark.api.edits import shown
from seamark.api.inquiry import Inquiry
from seamark.api.intake import Document
from seamark.api.state.cache import Cache
from seamark.api.state.read import Reader
from seamark.api.write.change import Changes
from seamark.errors import Object
from seamark.kinds.kind import Kind
from seamark.kinds.subresource import Action, Effect, Question, Subresource
from seamark.kinds.table import Kinds


class Answered(msgspec.Struct):
    """An answer that is not a stored object: a Scale, a review, a Status.  ``kind`` is None if no Table can show it."""

    object: Object
    kind: Kind | None = None
    created: bool = False
    warnings: Sequence[str] = ()


def success(*, details: Object | None = None, code: int | None = None) -> Object:
    """The Status that answers a successful call without an object."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    if code is not None:
        status["code"] = code
    return status


class Posted:
    """What becomes of these documents."""

    def __init__(
        self,
        *,
        kinds: Kinds,
        cache: Cache,
        reader: Reader,
        changes: Changes,
        deleter: Deleter,
        admission: Admission,
        authorizer: Authorizer,
        authenticator: Authenticator,
    ) -> None:
        self._kinds = kinds
        self._cache = cache
        self._reader = reader
        self._changes = changes
        self._deleter = deleter
        self._admission = admission
        self._authorizer = authorizer
        self._authenticator = authenticator

    async def review(self, target: Target, obj: Object, warnings: Sequence[str], caller: Caller) -> Answered:
        """Answer an object of a kind that is never stored."""
        kind = target.kind
        if kind.resource.namespaced:
            intake.check_namespace(obj["metadata"], target.namespace)
            obj["metadata"]["namespace"] = target.namespace
        place = (target.namespace, obj["metadata"].get("name", ""))
        obj = await self._admission.admit(self._admission.request(kind, kind.whole, obj, None, caller, place=place))
        await self._cache.show(self._cache.known)  # a right may be new, and given by another process
        status = kind.answer(obj, target.namespace, self._inquiry(caller))
        spec = {"spec": obj["spec"]} if "spec" in obj else {}
        return Answered(shown(kind, {"metadata": obj["metadata"], **spec, "status": status}), None, True, warnings)

    async def fill_in(self, question: Question, target: Target, document: Document, caller: Caller) -> Answered:
        """Answer a document that is posted to an object."""
        obj, warnings = await conformed(question.sent, document, caller)
        intake.check_namespace(obj["metadata"], target.namespace)
        obj = await self._admitted(question, target, obj, caller)
        if self._reader.must_wait(""):
            await self._reader.wait("")
        answered, more = question.answer(target.name, target.namespace, obj, self._inquiry(caller))
        return Answered(shown(question.sent, answered), None, True, [*warnings, *more])

    async def act(self, target: Target, document: Document, caller: Caller) -> Answered:
        """Carry out the plan of an action: edit the object, then delete it if the plan says so."""
        action = target.subresource
        assert isinstance(action, Action), "the verb was checked"
        obj, warnings = await conformed(action.sent, document, caller)
        obj = await self._admitted(action, target, obj, caller)
        plan = action.plan(target.name, obj, now=caller.now, others=self._admission.others)
        if plan.delete is None:
            await self._changes.edit(target, lambda old: plan.edit(shown(target.kind, old)), plan.also, caller)
        else:
            await self._edit_and_delete(target, plan, intake.deleting(plan.delete), caller)
        return Answered(success(code=201), None, True, warnings)

    def addressed(self, target: Target, document: Document) -> Target:
        """The subresource that the document is for; the document itself names the object (a Binding names its Pod)."""
        assert target.kind.posts_to is not None
        resource, subresource = target.kind.posts_to
        value = document.value if isinstance(document.value, dict) else {}
        meta = value.get("metadata")
        name = meta.get("name") if isinstance(meta, dict) else None
        kind = self._kinds.by_plural(resource.group, resource.version, resource.plural)
        assert kind is not None, f"{resource.plural} are always served"
        return Target(kind, target.namespace, name if isinstance(name, str) else "", kind.subresource(subresource))

    async def _edit_and_delete(self, target: Target, plan: Effect, options: DeleteOptions, caller: Caller) -> None:
        if options.dry_run:
            caller = msgspec.structs.replace(caller, dry_run=True)

        def make(old: Object) -> Object:
            check_preconditions(target.kind, old["metadata"], options)
            return plan.edit(shown(target.kind, old))

        written = await self._changes.edit(target, make, plan.also, caller)
        if options.version:
            options = msgspec.structs.replace(options, version=str(written.entry.revision))
        await self._deleter.delete(target, options, caller, admitted=True)

    def _inquiry(self, caller: Caller) -> Inquiry:
        return Inquiry(self._authorizer, self._authenticator, self._admission.others, caller.user, caller.now)

    async def _admitted(self, sub: Subresource, target: Target, document: Object, caller: Caller) -> Object:
        """A document that is posted to an object, as admission lets it pass."""
        place = (target.namespace, target.name)
        return await self._admission.admit(
            self._admission.request(target.kind, sub, document, None, caller, place=place)
        )


async def conformed(kind: Kind, document: Document, caller: Caller) -> tuple[Object, Sequence[str]]:
    """A document that is not itself an object to be stored, and warnings about it."""
    if caller.patience is None:
        return intake.conformed(document, kind, caller.field_validation)
    return await caller.patience.hear(intake.conformed, document, kind, caller.field_validation)
