"""What each verb does to a target, from a parsed request to an answer.  HTTP is on one side, state on the other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from seamark import errors
from seamark.api import reviews
from seamark.api.auth import Authenticator
from seamark.api.core import Core
from seamark.api.fields import edits
from seamark.api.http import answers, body
from seamark.api.http.answers import Answer
from seamark.api.http.call import Call
from seamark.api.http.negotiate import STORED, STREAMED, not_streamable
from seamark.api.http.options import (
    DeleteOptions,
    WriteOptions,
    delete_options,
    first,
    list_options,
    patch_options,
    write_options,
)
from seamark.api.http.subresource_verbs import scale_answer
from seamark.api.identity import check_applied, check_name, check_uid
from seamark.api.state.read import named, render_page
from seamark.api.state.render import Renderer
from seamark.api.state.select import select
from seamark.api.write import conflict, other_uid
from seamark.errors import Object
from seamark.kinds.values.metadata import drop_repeated_owners


class Verbs:
    """The API's verbs."""

    def __init__(self, core: Core, authenticator: Authenticator) -> None:
        self._core = core
        self._authenticator = authenticator

    # --- reading -----------------------------------------------------------------------------------

    def get(self, call: Call) -> Answer | Awaitable[Answer]:
        renderer = call.renderer(STORED)
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
        if call.subresource == "scale":
            return scale_answer(call, renderer, entry)
        return answers.of_entry(renderer, entry)

    def list_or_watch(self, call: Call) -> Answer | Awaitable[Answer]:
        """List or watch."""
        target = call.target
        options = list_options(call.query, watch=target.watch)
        selection = select(target.kind, target.namespace, target.name, options)
        if options.watch:
            renderer = call.renderer(STREAMED)
            if renderer.representation.yaml:
                raise not_streamable()
            return self._core.watches.start(selection, options, renderer)
        if options.continue_ and options.version not in ("", "0"):
            raise errors.BadRequest("specifying resource version is not allowed when using continue")
        renderer = call.renderer(STORED)
        if self._core.reader.in_memory(selection, options):
            if not self._core.reader.must_wait(options.version):
                return answers.of_list(renderer, render_page(self._core.reader.page(selection, options), renderer))

            async def later() -> Answer:
                await self._core.reader.wait(options.version)
                return answers.of_list(renderer, render_page(self._core.reader.page(selection, options), renderer))

            return later()

        async def past() -> Answer:
            page = await self._core.reader.past_page(selection, options)
            return answers.of_list(renderer, render_page(page, renderer))

        return past()

    # --- create ------------------------------------------------------------------------------------

    async def create(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = write_options(call.query, "CreateOptions")
        obj, warnings = self._read(call, options)
        how = call.how(options)
        if isinstance(kind, reviews.ReviewKind):
            answered = reviews.answer(
                kind, obj, call.user, self._authenticator, namespace=target.namespace, now=how.now
            )
            return answers.of_object(renderer, answered, 201, warnings)
        written = await self._core.writer.create(kind, obj, target.namespace, how)
        return answers.of_written(renderer, written, warnings)

    # --- update and patch --------------------------------------------------------------------------

    async def update(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = write_options(call.query, "UpdateOptions")
        obj, warnings = self._read(call, options)
        check_name(obj["metadata"], target)
        how = call.how(options)
        try:
            written = await self._core.writer.change(
                kind,
                target.namespace,
                target.name,
                self._given(call, obj, options),
                how,
                subresource=call.subresource,
                expected=obj["metadata"].get("resourceVersion", ""),
            )
        except errors.NotFound:
            if uid := obj["metadata"].get("uid"):
                raise other_uid(kind, target.namespace, target.name, asked=uid, found="") from None
            if call.subresource or not kind.create_on_update:
                raise
            obj["metadata"].pop("resourceVersion", None)
            written = await self._core.writer.create(kind, obj, target.namespace, how)
        return answers.of_written(renderer, written, warnings)

    def _given(self, call: Call, obj: Object, options: WriteOptions) -> Callable[[Object], Object]:
        """The object of a PUT, whatever is there now.  A write edits it, so a second try reads the body again."""
        fresh = [obj]

        def make(_old: Object) -> Object:
            return fresh.pop() if fresh else self._read(call, options)[0]

        return make

    async def patch(self, call: Call) -> Answer:
        if call.applies:
            return await self._apply(call)
        type = call.patch_type()
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = patch_options(call.query, apply=False)
        document, mistakes = body.read_patch(call.request.body, type, options.field_validation)
        warnings: list[str] = []
        repeated: list[str] = []
        edit = edits.patched(
            kind,
            type,
            document,
            subresource=call.subresource,
            field_validation=options.field_validation,
            warnings=warnings,
            mistakes=mistakes,
        )

        def make(old: Object) -> Object:
            new = edit(old)
            check_name(new["metadata"], target)
            check_uid(kind, new["metadata"], old["metadata"])
            repeated[:] = drop_repeated_owners(new["metadata"], patched=True)
            return new

        how = call.how(options)
        written = await self._core.writer.change(
            kind, target.namespace, target.name, make, how, subresource=call.subresource
        )
        return answers.of_written(renderer, written, warnings + repeated)

    async def _apply(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = patch_options(call.query, apply=True)
        config, warnings = body.read_applied(call.request.body, kind, options.field_validation)
        check_applied(config["metadata"], target)
        how = call.how(options)
        edit = edits.applied(
            kind, config, manager=options.field_manager, force=options.force, subresource=call.subresource, now=how.now
        )

        def make(live: Object) -> Object:
            new = edit(live)
            check_uid(kind, new["metadata"], live["metadata"])
            return new

        try:
            written = await self._core.writer.change(
                kind, target.namespace, target.name, make, how, subresource=call.subresource, tracked=True
            )
        except errors.NotFound:
            if call.subresource:
                raise
            if uid := config["metadata"].get("uid"):
                sentence = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
                raise conflict(kind.resource, target.name, sentence) from None
            created = edit(None)
            created["metadata"].pop("resourceVersion", None)
            written = await self._core.writer.create(kind, created, target.namespace, how, tracked=True)
        return answers.of_written(renderer, written, warnings)

    # --- delete ------------------------------------------------------------------------------------

    async def delete(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = self._delete_options(call)
        how = call.deleting(dry_run=options.dry_run)
        deleted = await self._core.deleter.delete(kind, target.namespace, target.name, options, how)
        if deleted.gone and not kind.delete_answers_object:
            details = named(kind.resource, target.name)
            details["uid"] = deleted.entry.decode()["metadata"]["uid"]
            return answers.of_object(renderer, answers.success(details=details))
        return answers.of_entry(renderer, deleted.entry)

    async def delete_collection(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = self._delete_options(call)
        chosen = list_options(call.query, watch=False)
        selection = select(kind, target.namespace, "", chosen)
        reader = self._core.reader
        await reader.wait(chosen.version)
        in_memory = reader.in_memory(selection, chosen)
        page = reader.page(selection, chosen) if in_memory else await reader.past_page(selection, chosen)
        how = call.deleting(dry_run=options.dry_run)
        for entry in page.entries:
            try:
                await self._core.deleter.delete(kind, entry.namespace, entry.name, options, how)
            except errors.NotFound:
                continue  # somebody else was faster: it is gone, as asked
        return answers.of_list(renderer, render_page(page, renderer))

    # --- parts -------------------------------------------------------------------------------------

    @staticmethod
    def _read(call: Call, options: WriteOptions) -> tuple[Object, list[str]]:
        media_type = call.request.headers.get("content-type", "")
        obj, warnings = body.read_object(call.request.body, media_type, call.kind, options.field_validation)
        return obj, warnings + drop_repeated_owners(obj["metadata"])

    @staticmethod
    def _delete_options(call: Call) -> DeleteOptions:
        return delete_options(call.query, body.read_delete_options(call.request))
