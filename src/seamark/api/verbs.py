"""What each verb does to a target, from a parsed request to an answer.  HTTP is on one side, state on the other."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec

from seamark import errors
from seamark.api import body, edits, managed, reviews, subresources
from seamark.api.auth import Authenticator
from seamark.api.cache import Entry
from seamark.api.context import User, Writing
from seamark.api.core import Core
from seamark.api.edits import PatchType
from seamark.api.http import Request, Response, Streaming
from seamark.api.negotiate import STORED, STREAMED, Representation, negotiate, not_streamable
from seamark.api.options import (
    DeleteOptions,
    Query,
    WriteOptions,
    delete_options,
    first,
    list_options,
    patch_options,
    write_options,
)
from seamark.api.read import named, render_page
from seamark.api.render import Renderer
from seamark.api.select import select
from seamark.api.target import Target
from seamark.api.write import Written, conflict, other_uid
from seamark.errors import Object
from seamark.kinds import times
from seamark.kinds.binding import check_eviction
from seamark.kinds.fields import invalid, refuse
from seamark.kinds.kind import Kind
from seamark.kinds.metadata import drop_repeated_owners

Answer = Response | Streaming

# All warnings of an answer together; beyond that each is cut.
MAX_WARNINGS, CUT_WARNING = 4096, 256
_control = re.compile(r"[\x00-\x1f\x7f-\x9f]")

PATCH_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}
APPLY_TYPES = ("application/apply-patch+yaml",)


class Call(msgspec.Struct):
    """One request on its way: who asks, for what, with which options."""

    request: Request
    target: Target
    query: Query
    user: User

    @property
    def kind(self) -> Kind:
        return self.target.kind

    def accept(self, allowed: frozenset[str]) -> Representation:
        return negotiate(self.request.headers.get("accept", ""), allowed)

    def media_type(self) -> str:
        return self.request.headers.get("content-type", "application/json").partition(";")[0].strip().lower()


class Verbs:
    """The API's verbs."""

    def __init__(self, core: Core, authenticator: Authenticator) -> None:
        self._core = core
        self._authenticator = authenticator

    # --- reading -----------------------------------------------------------------------------------

    def get(self, call: Call) -> Answer | Awaitable[Answer]:
        renderer = self._renderer(call, call.accept(STORED))
        version = first(call.query, "resourceVersion")
        if self._core.reader.must_wait(version):
            return self._get_later(call, renderer, version)
        return self._got(call, renderer)

    async def _get_later(self, call: Call, renderer: Renderer, version: str) -> Answer:
        await self._core.reader.wait(version)
        return self._got(call, renderer)

    def _got(self, call: Call, renderer: Renderer) -> Answer:
        target = call.target
        entry = self._core.reader.get(target.kind.resource, target.namespace, target.name)
        if target.subresource is not None and target.subresource.name == "scale":
            return self._scale(call, renderer, entry, [])
        return self._answer(renderer, entry, 200, [])

    def list_or_watch(self, call: Call) -> Answer | Awaitable[Answer]:
        """List or watch."""
        target = call.target
        options = list_options(call.query, watch=target.watch)
        selection = select(target.kind, target.namespace, target.name, options)
        if options.watch:
            representation = call.accept(STREAMED)
            if representation.yaml:
                raise not_streamable()
            renderer = self._renderer(call, representation)
            return self._core.watches.start(selection, options, renderer)
        if options.continue_ and options.version not in ("", "0"):
            raise errors.BadRequest("specifying resource version is not allowed when using continue")
        renderer = self._renderer(call, call.accept(STORED))
        if self._core.reader.in_memory(selection, options):
            if not self._core.reader.must_wait(options.version):
                return self._listed(renderer, render_page(self._core.reader.page(selection, options), renderer))

            async def later() -> Answer:
                await self._core.reader.wait(options.version)
                return self._listed(renderer, render_page(self._core.reader.page(selection, options), renderer))

            return later()

        async def past() -> Answer:
            page = await self._core.reader.past_page(selection, options)
            return self._listed(renderer, render_page(page, renderer))

        return past()

    def _listed(self, renderer: Renderer, pieces: list[bytes]) -> Answer:
        return Response(200, pieces, renderer.representation.content_type)

    # --- create ------------------------------------------------------------------------------------

    async def create(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = write_options(call.query, "CreateOptions")
        obj, warnings = self._read(call, kind, options)
        how = self._how(call, options)
        if isinstance(kind, reviews.ReviewKind):
            answered = reviews.answer(
                kind, obj, call.user, self._authenticator, namespace=target.namespace, now=how.now
            )
            return self._shown(renderer, answered, 201, warnings)
        written = await self._core.writer.create(kind, obj, target.namespace, how)
        return self._written(renderer, written, warnings)

    # --- update and patch --------------------------------------------------------------------------

    async def update(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = write_options(call.query, "UpdateOptions")
        obj, warnings = self._read(call, kind, options)
        self._check_name(obj["metadata"], target)
        how = self._how(call, options)
        sub = target.subresource.name if target.subresource else ""
        try:
            written = await self._core.writer.change(
                kind,
                target.namespace,
                target.name,
                self._given(call, obj, options),
                how,
                subresource=sub,
                expected=obj["metadata"].get("resourceVersion", ""),
            )
        except errors.NotFound:
            if uid := obj["metadata"].get("uid"):
                raise other_uid(kind, target.namespace, target.name, asked=uid, found="") from None
            if sub or not kind.create_on_update:
                raise
            obj["metadata"].pop("resourceVersion", None)
            written = await self._core.writer.create(kind, obj, target.namespace, how)
        return self._written(renderer, written, warnings)

    def _given(self, call: Call, obj: Object, options: WriteOptions) -> Callable[[Object], Object]:
        """The object of a PUT, whatever is there now.  A write edits it, so a second try reads the body again."""
        fresh = [obj]

        def make(_old: Object) -> Object:
            return fresh.pop() if fresh else self._read(call, call.kind, options)[0]

        return make

    @staticmethod
    def _check_name(meta: Object, target: Target) -> None:
        name = meta.get("name", "")
        if not name:
            raise errors.BadRequest(
                f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
            )
        if name != target.name:
            raise errors.BadRequest(
                f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            )
        if meta.get("namespace", target.namespace) != target.namespace:
            raise errors.BadRequest(
                "the namespace of the provided object does not match the namespace sent on the request"
            )

    @staticmethod
    def _check_uid(kind: Kind, meta: Object, old: Object) -> None:
        """No patch makes an object another one."""
        if meta.get("uid", old["uid"]) != old["uid"]:
            wrong = [invalid("metadata.uid", meta["uid"], "field is immutable")]
            raise refuse(kind.stored_as or kind.resource, old["name"], wrong)

    async def patch(self, call: Call) -> Answer:
        if call.media_type() in APPLY_TYPES:
            return await self._apply(call)
        type = self._patch_type(call)
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = patch_options(call.query, apply=False)
        document, mistakes = body.read_patch(call.request.body, type, options.field_validation)
        sub = target.subresource.name if target.subresource else ""
        warnings: list[str] = []
        repeated: list[str] = []
        edit = edits.patched(
            kind,
            type,
            document,
            subresource=sub,
            field_validation=options.field_validation,
            warnings=warnings,
            mistakes=mistakes,
        )

        def make(old: Object) -> Object:
            new = edit(old)
            self._check_name(new["metadata"], target)
            self._check_uid(kind, new["metadata"], old["metadata"])
            repeated[:] = drop_repeated_owners(new["metadata"], patched=True)
            return new

        how = self._how(call, options)
        written = await self._core.writer.change(kind, target.namespace, target.name, make, how, subresource=sub)
        return self._written(renderer, written, warnings + repeated)

    @staticmethod
    def _patch_type(call: Call) -> PatchType:
        type = PATCH_TYPES.get(call.media_type())
        if type is None:
            raise errors.UnsupportedMediaType("415: Unsupported Media Type", details={})
        return type

    async def _apply(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = patch_options(call.query, apply=True)
        config, warnings = body.read_applied(call.request.body, kind, options.field_validation)
        sub = target.subresource.name if target.subresource else ""
        self._check_applied(config["metadata"], target)
        how = self._how(call, options)
        edit = edits.applied(
            kind, config, manager=options.field_manager, force=options.force, subresource=sub, now=how.now
        )

        def make(live: Object) -> Object:
            new = edit(live)
            self._check_uid(kind, new["metadata"], live["metadata"])
            return new

        try:
            written = await self._core.writer.change(
                kind, target.namespace, target.name, make, how, subresource=sub, tracked=True
            )
        except errors.NotFound:
            if sub:
                raise
            if uid := config["metadata"].get("uid"):
                sentence = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(kind.resource, target.name, sentence) from None
            created = edit(None)
            created["metadata"].pop("resourceVersion", None)
            written = await self._core.writer.create(kind, created, target.namespace, how, tracked=True)
        return self._written(renderer, written, warnings)

    @staticmethod
    def _check_applied(meta: Object, target: Target) -> None:
        name = meta.get("name", target.name)
        if name != target.name:
            raise errors.BadRequest(
                f"the name of the object ({name}) does not match the name on the URL ({target.name})"
            )
        meta["name"] = target.name
        if target.kind.resource.namespaced:
            if meta.get("namespace", target.namespace) != target.namespace:
                raise errors.BadRequest(
                    "the namespace of the provided object does not match the namespace sent on the request"
                )
            meta["namespace"] = target.namespace

    # --- delete ------------------------------------------------------------------------------------

    async def delete(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = self._delete_options(call)
        how = Writing(manager="", now=times.text(self._core.clock()), dry_run=options.dry_run, user=call.user)
        deleted = await self._core.deleter.delete(kind, target.namespace, target.name, options, how)
        if deleted.gone and not kind.delete_answers_object:
            details = named(kind.resource, target.name)
            details["uid"] = deleted.entry.decode()["metadata"]["uid"]
            return self._shown(renderer, success(details=details), 200, [])
        return self._answer(renderer, deleted.entry, 200, [])

    async def delete_collection(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = self._delete_options(call)
        chosen = list_options(call.query, watch=False)
        selection = select(kind, target.namespace, "", chosen)
        reader = self._core.reader
        await reader.wait(chosen.version)
        in_memory = reader.in_memory(selection, chosen)
        page = reader.page(selection, chosen) if in_memory else await reader.past_page(selection, chosen)
        how = Writing(manager="", now=times.text(self._core.clock()), dry_run=options.dry_run, user=call.user)
        for entry in page.entries:
            try:
                await self._core.deleter.delete(kind, entry.namespace, entry.name, options, how)
            except errors.NotFound:
                continue  # somebody else was faster: it is gone, as asked
        return self._listed(renderer, render_page(page, renderer))

    # --- subresources with verbs of their own ------------------------------------------------------

    async def scale(self, call: Call) -> Answer:
        """PUT or PATCH of a Scale: the number of replicas and nothing else."""
        if call.request.method == "PATCH" and call.media_type() in APPLY_TYPES:
            return await self._apply_scale(call)
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        warnings: list[str] = []
        if call.request.method == "PATCH":
            type = self._patch_type(call)
            options = patch_options(call.query, apply=False)
            document, mistakes = body.read_patch(call.request.body, type, options.field_validation)
            edit = edits.patched(
                subresources.SCALE,
                type,
                document,
                subresource="scale",
                field_validation=options.field_validation,
                warnings=warnings,
                mistakes=mistakes,
            )
        else:
            options = write_options(call.query, "UpdateOptions")
            given, warnings = body.read_any(call.request, "autoscaling/v1", "Scale", options.field_validation)

            def edit(_old: Object) -> Object:
                return given

        def make(old: Object) -> Object:
            current = edits.shown(kind, old)
            scale = edit(subresources.scale_of(kind, current))
            self._check_name(scale["metadata"], target)
            return subresources.with_scale(kind, current, scale)

        how = self._how(call, options)
        written = await self._core.writer.change(kind, target.namespace, target.name, make, how, subresource="scale")
        return self._scale(call, renderer, written.entry, warnings)

    async def _apply_scale(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = self._renderer(call, call.accept(STORED))
        options = patch_options(call.query, apply=True)
        config, warnings = body.read_applied(call.request.body, subresources.SCALE, options.field_validation)
        self._check_applied(config["metadata"], target)
        how = self._how(call, options)
        edit = edits.applied(
            subresources.SCALE,
            config,
            manager=options.field_manager,
            force=options.force,
            subresource="scale",
            now=how.now,
        )
        make = subresources.applied_scale(kind, edit)
        written = await self._core.writer.change(
            kind, target.namespace, target.name, make, how, subresource="scale", tracked=True
        )
        return self._scale(call, renderer, written.entry, warnings)

    async def bind(self, call: Call) -> Answer:
        """POST of a Binding: the Pod gets its node."""
        target = call.target
        renderer = self._renderer(call, call.accept(STORED))
        options = write_options(call.query, "CreateOptions")
        binding, warnings = body.read_any(call.request, "v1", "Binding", options.field_validation)
        name = target.name or binding["metadata"].get("name", "")
        how = self._how(call, options)
        await subresources.bind(self._core.writer, self._core.kinds, target.namespace, name, binding, how)
        return self._shown(renderer, success(code=201), 201, warnings)

    async def evict(self, call: Call) -> Answer:
        """POST of an Eviction: a deletion that asks politely."""
        target = call.target
        renderer = self._renderer(call, call.accept(STORED))
        options = write_options(call.query, "CreateOptions")
        eviction, warnings = body.read_any(call.request, "policy/v1", "Eviction", options.field_validation)
        check_eviction(eviction, target.name)
        deleting = delete_options({}, eviction.get("deleteOptions") or {})
        how = self._how(call, options)
        if deleting.dry_run:
            how = msgspec.structs.replace(how, dry_run=True)
        where = (target.kind, target.namespace, target.name)
        await subresources.evict(self._core.writer, self._core.deleter, where, deleting, how)
        return self._shown(renderer, success(code=201), 201, warnings)

    # --- parts -------------------------------------------------------------------------------------

    def _read(self, call: Call, kind: Kind, options: WriteOptions) -> tuple[Object, list[str]]:
        obj, warnings = body.read_object(
            call.request.body, call.request.headers.get("content-type", ""), kind, options.field_validation
        )
        return obj, warnings + drop_repeated_owners(obj["metadata"])

    @staticmethod
    def _delete_options(call: Call) -> DeleteOptions:
        return delete_options(call.query, body.read_delete_options(call.request))

    def _how(self, call: Call, options: WriteOptions) -> Writing:
        return Writing(
            manager=managed.manager_name(call.request.headers.get("user-agent", ""), options.field_manager),
            now=times.text(self._core.clock()),
            dry_run=options.dry_run,
            field_validation=options.field_validation,
            user=call.user,
        )

    def _renderer(self, call: Call, representation: Representation) -> Renderer:
        return Renderer(call.kind, representation, first(call.query, "includeObject"), self._core.clock)

    def _written(self, renderer: Renderer, written: Written, warnings: list[str]) -> Answer:
        return self._answer(renderer, written.entry, 201 if written.created else 200, warnings + written.warnings)

    def _answer(self, renderer: Renderer, entry: Entry, status: int, warnings: list[str]) -> Answer:
        return Response(status, renderer.one(entry), renderer.representation.content_type, warning_headers(warnings))

    def _scale(self, call: Call, renderer: Renderer, entry: Entry, warnings: list[str]) -> Answer:
        scale = subresources.scale_of(call.kind, renderer.object(entry))
        shown = Renderer(subresources.SCALE, renderer.representation, renderer.include, self._core.clock).shown(scale)
        return self._shown(renderer, shown, 200, warnings)

    def _shown(self, renderer: Renderer, obj: Object, status: int, warnings: list[str]) -> Answer:
        return Response(status, renderer.encode(obj), renderer.representation.content_type, warning_headers(warnings))


def success(*, details: Object | None = None, code: int | None = None) -> Object:
    """The Status of something that worked and has nothing better to show."""
    answer: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        answer["details"] = details
    if code is not None:
        answer["code"] = code
    return answer


def warning_headers(sentences: list[str]) -> list[tuple[str, str]]:
    """Warnings as headers.  What no header can carry is left out; many long ones are cut, as Kubernetes does."""
    if not sentences:
        return []
    seen = [s for s in dict.fromkeys(sentences) if s and not _control.search(s)]
    if sum(map(len, seen)) > MAX_WARNINGS:
        seen = [s[:CUT_WARNING] for s in seen][: MAX_WARNINGS // CUT_WARNING]
    return [("Warning", '299 - "{}"'.format(s.replace("\\", "\\\\").replace('"', '\\"'))) for s in seen]


def verb_of(method: str, target: Target) -> str:
    """Kubernetes' name for what an HTTP method does to a target; "" for a method that does nothing."""
    match method:
        case "GET" | "HEAD":
            return "get" if target.name and not target.watch else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if target.name else "deletecollection"
        case _:
            return ""
