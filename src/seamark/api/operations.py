"""The verbs of the API over plain values: get, list, watch, create, update, patch, apply, delete, delete_all.

HTTP (:mod:`seamark.api.http.verbs`) and components of this process (:mod:`seamark.api.local`) are two thin ways into
these functions.  Each makes a target, a caller, options and documents from its input, has them checked
(:func:`~seamark.api.call.check_verb`, :meth:`Operations.authorize`), and turns the result into its own form.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import partial
from typing import Any

from seamark import errors
from seamark.api import authorization, edits, intake
from seamark.api.admission import Admission
from seamark.api.authorization import Attributes, Authorizer, User
from seamark.api.call import Caller, DeleteOptions, ListOptions, Target
from seamark.api.delete import Deleted, Deleter
from seamark.api.edits import shown
from seamark.api.fields.patch import PatchType
from seamark.api.intake import Document
from seamark.api.posted import Answered, Posted, conformed
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Entry
from seamark.api.state.forms import converted
from seamark.api.state.read import Page, Reader
from seamark.api.state.select import select
from seamark.api.state.versions import of_write_or_watch
from seamark.api.state.watch import Watching
from seamark.api.turns import aside
from seamark.api.write.change import Changes
from seamark.api.write.create import Creations
from seamark.api.write.repeats import report
from seamark.api.write.twins import likeness
from seamark.api.write.values import Written
from seamark.errors import Object
from seamark.kinds.admission import Notes
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.subresource import Part, Question, View
from seamark.kinds.table import Kinds
from seamark.kinds.values.metadata import drop_repeated_owners
from seamark.kinds.values.refusals import conflict, forbidden, other_uid
from seamark.store.protocol import Store

FOUND = (Entry, Answered)  # what a get answers if it need not wait


def attributes(verb: str, target: Target, selected: str = "") -> Attributes:
    """A call as authorizers and the audit log see it; ``selected`` is the only name that a list or watch selects."""
    resource, part = target.kind.resource, target.subresource
    subresource = "" if part is None else part.name
    name = target.name or selected
    # Rights in a namespace include those on the Namespace itself.
    namespace = target.name if resource is NAMESPACES else target.namespace
    return Attributes(verb, resource.group, resource.version, resource.plural, subresource, namespace, name)


class Operations:
    """The verbs.  Call :meth:`authorize` first: the other methods do not check rights."""

    def __init__(
        self,
        *,
        kinds: Kinds,
        cache: Cache,
        store: Store,
        reader: Reader,
        creations: Creations,
        changes: Changes,
        deleter: Deleter,
        admission: Admission,
        authorizer: Authorizer,
        posted: Posted,
    ) -> None:
        self.kinds = kinds
        self._cache = cache
        self._store = store
        self._reader = reader
        self._creations = creations
        self._changes = changes
        self._deleter = deleter
        self._admission = admission
        self._authorizer = authorizer
        self._posted = posted

    def authorize(self, user: User, verb: str, target: Target, selected: str = "") -> None:
        """Raise Forbidden unless the user may do this; ``selected`` as for :func:`attributes`."""
        if not self._authorizer.trusts(user):
            authorization.check(self._authorizer, user, attributes(verb, target, selected))

    def _authorize_creation(self, target: Target, caller: Caller) -> None:
        """Raise Forbidden unless the caller of another verb may create what is missing."""
        decision = self._authorizer.authorize(caller.user, attributes("create", target))
        if not decision.allowed:
            raise forbidden(target.kind.resource, target.name, decision.reason)

    # --- reading: the result if the cache is fresh enough, else an awaitable of it --------------------

    def get(
        self, target: Target, version: str = "", notes: Notes | None = None, *, bare: bool = False
    ) -> Entry | Answered | Awaitable[Entry | Answered]:
        """The object, not older than ``version``; through a view, what the view shows of it.

        ``bare`` says that of its metadata only that is read which is the same in every version.
        """
        converts = target.kind.conversion is not None and not bare
        if converts or self._reader.must_wait(version):
            return self._get_later(target, version, notes, converts=converts)
        return self._get(target)

    async def _get_later(
        self, target: Target, version: str, notes: Notes | None, *, converts: bool
    ) -> Entry | Answered:
        if self._reader.must_wait(version):
            await self._reader.wait(version)
        if converts:
            entry = self._reader.get(target.kind.resource, target.namespace, target.name)
            if entry.form(target.kind) is None:
                await aside(notes, converted(target.kind, [entry]))
            return _seen(target, entry)
        return self._get(target)

    def _get(self, target: Target) -> Entry | Answered:
        return _seen(target, self._reader.get(target.kind.resource, target.namespace, target.name))

    def weight(self, target: Target, limit: int) -> int:
        """About how many bytes a list of the target looks at."""
        return 0 if target.name else self._reader.weight(target.kind.resource, target.namespace, limit)

    def list(
        self, target: Target, options: ListOptions, notes: Notes | None = None, *, bare: bool = False
    ) -> Page | Awaitable[Page]:
        """The objects of a collection that the options select.

        ``bare`` is as in :meth:`get`.
        """
        if target.kind.conversion is not None and not bare:
            return self._list_converted(target, options, notes)
        return self._list(target, options)

    async def _list_converted(self, target: Target, options: ListOptions, notes: Notes | None) -> Page:
        kind = target.kind
        if options.fields and kind.field_names:  # Fields are those of the version that is listed.
            every = self._list(target, ListOptions(version=options.version, match=options.match))
            page = every if isinstance(every, Page) else await every
            await aside(notes, converted(kind, page.entries))
        found = self._list(target, options)
        page = found if isinstance(found, Page) else await found
        if any(entry.form(kind) is None for entry in page.entries):
            await aside(notes, converted(kind, page.entries))
        return page

    def _list(self, target: Target, options: ListOptions) -> Page | Awaitable[Page]:
        selection = select(target.kind, target.namespace, target.name, options)
        if options.continue_ and options.version not in ("", "0"):
            raise errors.BadRequest("specifying resource version is not allowed when using continue")
        reader = self._reader
        if not reader.in_memory(selection, options):
            return reader.past_page(selection, options)
        if not reader.must_wait(options.version):
            return reader.page(selection, options)

        async def later() -> Page:
            await reader.wait(options.version)
            if not reader.in_memory(selection, options):  # what has come meanwhile is newer than an earlier page
                return await reader.past_page(selection, options)
            return reader.page(selection, options)

        return later()

    def watch(self, target: Target, options: ListOptions) -> Watching:
        """A watch of a collection, for a :class:`~seamark.api.state.watch.Subscription` or an HTTP stream."""
        selection = select(target.kind, target.namespace, target.name, options)
        since = of_write_or_watch(options.version) or (-1 if options.initial_events is False else None)
        return Watching(self._cache, self._store, selection, options, None if options.initial_events else since)

    # --- create ------------------------------------------------------------------------------------

    async def create(self, target: Target, document: Document, caller: Caller) -> Written | Answered:
        """Store a new object, answer a review, or do what a document posted to an object asks."""
        kind = target.kind
        if isinstance(target.subresource, Question):
            return await self._posted.fill_in(target.subresource, target, document, caller)
        if target.subresource is not None:
            return await self._posted.act(target, document, caller)
        if kind.posts_to is not None:
            return await self._posted.act(self._posted.addressed(target, document), document, caller)
        like = None
        if kind.has_twins and (found := likeness(target, document, caller)) is not None:
            like, name = found
            if (twin := await self._creations.create_twin(kind, like, name, caller)) is not None:
                return twin
        if caller.patience is None:
            obj, warnings = self._object(kind, document, caller)
        else:
            obj, warnings = await caller.patience.hear(self._object, kind, document, caller)
        if not kind.stored:
            return await self._posted.review(target, obj, warnings, caller)
        if warnings:
            like = None
        written = await self._creations.create(kind, obj, target.namespace, caller, like=like)
        return await self._answered(kind, written, warnings, caller)

    @staticmethod
    async def _answered(kind: Kind, written: Written, warnings: Sequence[str], caller: Caller) -> Written:
        """What was written, as the kind shows it, with warnings about the document before those about the object."""
        if kind.conversion is not None:
            await aside(caller.notes, converted(kind, [written.entry]))
        if warnings:
            written.warnings = [*warnings, *written.warnings]
        return written

    def _object(self, kind: Kind, document: Document, caller: Caller) -> tuple[Object, Sequence[str]]:
        obj, warnings = intake.conformed(document, kind, caller.field_validation)
        if not kind.resource.namespaced:
            obj["metadata"].pop("namespace", None)
        return obj, warnings + drop_repeated_owners(obj["metadata"])

    async def connect(self, target: Target, options: Object, caller: Caller) -> None:
        """Raise unless admission allows a connection (exec, proxy) to the object; ``options`` are those of the path."""
        assert target.subresource is not None, "connections are made to subresources"
        place = (target.namespace, target.name)
        request = self._admission.request(
            target.kind, target.subresource, options, None, caller, operation="CONNECT", place=place
        )
        await self._admission.admit(request)

    # --- update and patch --------------------------------------------------------------------------

    async def update(self, target: Target, document: Document, caller: Caller) -> Written | Answered:
        """Replace an object, or part of it.  For a kind with ``create_on_update``, create a missing object."""
        kind, part = target.kind, _part(target)
        if isinstance(part, View):
            return await self._update_view(target, part, document, caller)
        if caller.patience is None:
            obj, warnings = self._object(kind, document, caller)
        else:
            obj, warnings = await caller.patience.hear(self._object, kind, document, caller)
        meta = obj["metadata"]
        intake.check_name(meta, target)
        uid, version = meta.get("uid"), meta.get("resourceVersion", "")
        fresh = [obj]

        def make(_old: Object) -> Object:
            # A write edits the object it gets, so another attempt starts from the document again.
            return fresh.pop() if fresh else self._object(kind, document, caller)[0]

        try:
            written = await self._changes.change(target, part, make, caller, expected=version)
        except errors.NotFound:
            if uid:
                raise other_uid(kind.resource, target.namespace, target.name, asked=uid, found="") from None
            if part.name or not kind.create_on_update:
                raise
            self._authorize_creation(target, caller)
            obj = make({})
            obj["metadata"].pop("resourceVersion", None)
            written = await self._creations.create(kind, obj, target.namespace, caller)
        return await self._answered(kind, written, warnings, caller)

    async def _update_view(self, target: Target, view: View, document: Document, caller: Caller) -> Answered:
        given, warnings = await conformed(view.sent, document, caller)

        def make(old: Object) -> Object:
            intake.check_name(given["metadata"], target)
            return view.change(target.kind, shown(target.kind, old), given)

        written = await self._answered(target.kind, await self._changes.change(target, view, make, caller), (), caller)
        return _through(view, target.kind, written.entry, warnings)

    async def patch(
        self, target: Target, type: PatchType, document: Any, caller: Caller, mistakes: Sequence[str] = ()
    ) -> Written | Answered:
        """Change an object by a JSON, merge or strategic merge patch; ``mistakes`` were found in the document."""
        kind, part = target.kind, _part(target)
        view = part if isinstance(part, View) else None
        warnings: list[str] = []
        repeated: list[str] = []
        edit = edits.patched(
            kind if view is None else view.sent,
            part,
            type,
            document,
            field_validation=caller.field_validation,
            mistakes=mistakes,
            warnings=warnings,
        )

        def make(old: Object) -> Object:
            current = shown(kind, old)
            if view is not None:
                new = edit(view.start(kind, current))
                intake.check_name(new["metadata"], target)
                return view.change(kind, current, new)
            new = edit(current)
            meta = new["metadata"]
            intake.check_name(meta, target)
            intake.check_uid(kind, meta, old["metadata"])
            repeated[:] = drop_repeated_owners(meta, patched=True)
            return new

        said = None
        if kind.has_twins and part.name == "status" and not mistakes:
            said = partial(report, kind, type, document, caller, warnings, repeated)
        changed = await self._changes.change(target, part, make, caller, said=said)
        written = await self._answered(kind, changed, () if view is not None else warnings + repeated, caller)
        return written if view is None else _through(view, kind, written.entry, warnings)

    async def apply(
        self, target: Target, document: Any, caller: Caller, *, force: bool, warnings: Sequence[str] = ()
    ) -> Written | Answered:
        """Server-side apply: merge a configuration into an object, or create it, for the caller's field manager."""
        kind, part = target.kind, _part(target)
        view = part if isinstance(part, View) else None
        sent = kind if view is None else view.sent
        config = intake.applied(document, sent)
        intake.check_applied(config["metadata"], target)
        edit = edits.applied(sent, part, config, manager=caller.manager, force=force, now=caller.now)
        through = None if view is None else edits.applied_to_view(view, kind, edit)

        def make(old: Object) -> Object:
            if through is not None:
                return through(shown(kind, old))
            new = edit(shown(kind, old))
            intake.check_uid(kind, new["metadata"], old["metadata"])
            return new

        try:
            written = await self._changes.change(target, part, make, caller, tracked=True)
        except errors.NotFound:
            if part.name:
                raise
            if uid := config["metadata"].get("uid"):
                sentence = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(kind.resource, target.name, sentence) from None
            self._authorize_creation(target, caller)
            created = edit(None) if caller.patience is None else await caller.patience.hear(edit, None)
            created["metadata"].pop("resourceVersion", None)
            written = await self._creations.create(kind, created, target.namespace, caller, tracked=True)
        written = await self._answered(kind, written, () if view is not None else warnings, caller)
        return written if view is None else _through(view, kind, written.entry, warnings)

    # --- delete ------------------------------------------------------------------------------------

    async def delete(self, target: Target, options: DeleteOptions, caller: Caller) -> Deleted:
        """Delete an object, or mark it as being deleted if finalizers or a grace period keep it."""
        deleted = await self._deleter.delete(target, options, caller)
        if target.kind.conversion is not None and not deleted.gone:
            await aside(caller.notes, converted(target.kind, [deleted.entry]))
        return deleted

    async def delete_all(self, target: Target, chosen: ListOptions, options: DeleteOptions, caller: Caller) -> Page:
        """Delete the objects of a collection that ``chosen`` selects; returns them as they were before."""
        found = self.list(target, chosen, caller.notes)
        page = found if isinstance(found, Page) else await found
        for entry in page.entries:
            try:
                await self._deleter.delete(Target(target.kind, entry.namespace, entry.name), options, caller)
            except errors.NotFound:
                continue  # another client deleted it first
        return page


def _part(target: Target) -> Part:
    """The part of the object that a write changes."""
    if target.subresource is None:
        return target.kind.whole
    assert isinstance(target.subresource, Part), "the verb was checked"
    return target.subresource


def _through(view: View, kind: Kind, entry: Entry, warnings: Sequence[str] = ()) -> Answered:
    return Answered(view.show(kind, shown(kind, entry.shown(kind))), view.sent, False, warnings)


def _seen(target: Target, entry: Entry) -> Entry | Answered:
    """The object, or what the view of it shows that is asked for."""
    view = target.subresource
    return _through(view, target.kind, entry) if isinstance(view, View) else entry
