"""Subresources with verbs of their own: scale, binding, eviction.  The others are written like their object."""

from __future__ import annotations

import msgspec

from seamark.api import subresources
from seamark.api.core import Core
from seamark.api.fields import edits
from seamark.api.http import answers, body
from seamark.api.http.answers import Answer
from seamark.api.http.call import Call
from seamark.api.http.negotiate import STORED
from seamark.api.http.options import delete_options, patch_options, write_options
from seamark.api.identity import check_applied, check_name
from seamark.api.state.cache import Entry
from seamark.api.state.render import Renderer
from seamark.errors import Object
from seamark.kinds.pod.binding import check_eviction
from seamark.kinds.workloads import scale as scales


def scale_answer(call: Call, renderer: Renderer, entry: Entry, warnings: list[str] | None = None) -> Answer:
    """The Scale of a workload, in the form asked for."""
    scale = scales.of(call.kind, renderer.object(entry))
    shown = Renderer(scales.SCALE, renderer.representation, renderer.include, call.clock).shown(scale)
    return answers.of_object(renderer, shown, 200, warnings)


class SubresourceVerbs:
    """What is done to them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def scale(self, call: Call) -> Answer:
        """PUT or PATCH of a Scale: the number of replicas and nothing else."""
        if call.applies:
            return await self._apply_scale(call)
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        warnings: list[str] = []
        if call.request.method == "PATCH":
            type = call.patch_type()
            options = patch_options(call.query, apply=False)
            document, mistakes = body.read_patch(call.request.body, type, options.field_validation)
            edit = edits.patched(
                scales.SCALE,
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
            scale = edit(scales.of(kind, current))
            check_name(scale["metadata"], target)
            return scales.apply(kind, current, scale)

        how = call.how(options)
        written = await self._core.writer.change(kind, target.namespace, target.name, make, how, subresource="scale")
        return scale_answer(call, renderer, written.entry, warnings)

    async def _apply_scale(self, call: Call) -> Answer:
        target, kind = call.target, call.kind
        renderer = call.renderer(STORED)
        options = patch_options(call.query, apply=True)
        config, warnings = body.read_applied(call.request.body, scales.SCALE, options.field_validation)
        check_applied(config["metadata"], target)
        how = call.how(options)
        edit = edits.applied(
            scales.SCALE,
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
        return scale_answer(call, renderer, written.entry, warnings)

    async def bind(self, call: Call) -> Answer:
        """POST of a Binding: the Pod gets its node."""
        target = call.target
        renderer = call.renderer(STORED)
        options = write_options(call.query, "CreateOptions")
        binding, warnings = body.read_any(call.request, "v1", "Binding", options.field_validation)
        name = target.name or binding["metadata"].get("name", "")
        how = call.how(options)
        await subresources.bind(self._core.writer, self._core.kinds, target.namespace, name, binding, how)
        return answers.of_object(renderer, answers.success(code=201), 201, warnings)

    async def evict(self, call: Call) -> Answer:
        """POST of an Eviction: a deletion that asks politely."""
        target = call.target
        renderer = call.renderer(STORED)
        options = write_options(call.query, "CreateOptions")
        eviction, warnings = body.read_any(call.request, "policy/v1", "Eviction", options.field_validation)
        check_eviction(eviction, target.name)
        deleting = delete_options({}, eviction.get("deleteOptions") or {})
        how = call.how(options)
        if deleting.dry_run:
            how = msgspec.structs.replace(how, dry_run=True)
        where = (target.kind, target.namespace, target.name)
        await subresources.evict(self._core.writer, self._core.deleter, where, deleting, how)
        return answers.of_object(renderer, answers.success(code=201), 201, warnings)
