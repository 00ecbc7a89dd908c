"""Verbs over HTTP: a request becomes a call of :class:`seamark.api.operations.Operations`, its result an answer.

Each verb is read downward: how the answer shall look, the options of the query, the body, the operation, the answer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

import msgspec

from seamark import errors
from seamark.api.authorization import User
from seamark.api.call import Caller, DeleteOptions, Target, WriteOptions
from seamark.api.edits import NOT_STRATEGIC
from seamark.api.fields import managed
from seamark.api.fields.patch import PatchType
from seamark.api.http import body
from seamark.api.http.negotiate import PLAIN, PROTOBUF, STORED, STREAMED, TABLES, negotiate, not_streamable
from seamark.api.http.render import Renderer
from seamark.api.http.url import Query, delete_options, first, flag, list_options, patch_options, write_options
from seamark.api.http.watches.opening import Watches
from seamark.api.http.websocket import asked_for, upgraded
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.operations import FOUND, Operations
from seamark.api.posted import Answered, success
from seamark.api.state.entries import Entry
from seamark.api.state.read import Page
from seamark.api.streaming.connecting import Connecting
from seamark.api.write.values import Written
from seamark.clock import Clock
from seamark.haste import Patience
from seamark.kinds.admission import Notes
from seamark.kinds.language.protobuf_writing import writable
from seamark.kinds.subresource import STREAM
from seamark.kinds.values import times
from seamark.kinds.values.refusals import named

P = ParamSpec("P")
T = TypeVar("T")
Answer = Response | Streaming

PATCH_TYPES: dict[str, PatchType] = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

IDENTITY = ("name", "namespace", "uid", "resourceVersion")

# All warnings of an answer together; beyond that each is cut.
MAX_WARNINGS, CUT_WARNING = 4096, 256
_control = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def verb_of(method: str, target: Target, *, watch: bool) -> str:
    """Kubernetes' name for what an HTTP method does to a target; "" for a method that does nothing."""
    match method:
        case "GET" | "HEAD":
            return "get" if target.name and not watch else "list"
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


# Custom resources have no protobuf, but say so.
_ACCEPTED = (
    "only the following media types are accepted: application/json, application/yaml, "
    "application/vnd.kubernetes.protobuf"
)


class Call(msgspec.Struct):
    """An authorized request for a target that exists; ``watch`` if its path says that it is a watch.

    ``patience`` does the work on a large body; it is None for all others.
    """

    request: Request
    target: Target
    query: Query
    user: User
    clock: Clock
    watch: bool = False
    notes: Notes | None = None
    patience: Patience | None = None

    @property
    def content_type(self) -> str:
        return self.request.headers.get("content-type", "")

    @property
    def media_type(self) -> str:
        return (self.content_type or "application/json").partition(";")[0].strip().lower()

    def renderer(self, allowed: frozenset[str] = STORED) -> Renderer:
        """For the representation the client asked for; raises NotAcceptable if it is not one of ``allowed``."""
        accept = self.request.headers.get("accept", "")
        protobuf = PROTOBUF in accept and self.target.kind.shape.form(writable)
        if not self.target.kind.stored:
            allowed -= TABLES
        try:
            representation = negotiate(accept, allowed, protobuf=protobuf)
        except errors.NotAcceptable as error:
            raise error if self.target.kind.built_in else errors.NotAcceptable(_ACCEPTED) from None
        return Renderer(self.target.kind, representation, first(self.query, "includeObject"), self.clock)

    def caller(self, options: WriteOptions) -> Caller:
        return Caller(
            self.user,
            times.text(self.clock.time()),
            managed.manager_name(self.request.headers.get("user-agent", ""), options.field_manager),
            bool(options.dry_run),
            options.field_validation,
            options,
            self.notes,
            self.patience,
        )

    async def deletion(self) -> tuple[DeleteOptions, Caller]:
        """From the body where there is one, else from the query."""
        if self.request.body:
            options = await self.read(body.read_deletion, self.request.body, self.content_type)
        else:
            options = delete_options(self.query)
        return options, Caller(self.user, times.text(self.clock.time()), notes=self.notes)

    async def document(self) -> body.Body:
        """The object in the body of a create or update."""
        found = await self.read(body.read, self.request.body, self.content_type, self.target.sent)
        self.keep(found.value)
        self.request.subject = _subject(found.value)
        return found

    def keep(self, value: Any) -> None:
        """What the body says, for the audit log, if that would take as long to read it again, or cannot."""
        if self.patience is not None:
            self.request.parsed = value
        elif self.request.recorded and self.media_type == PROTOBUF:
            self.request.parsed = msgspec.json.decode(msgspec.json.encode(value))  # a copy: the write path fills it in

    async def read(self, step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What a step of the work on the body makes."""
        return step(*args, **kwargs) if self.patience is None else await self.patience.hear(step, *args, **kwargs)


def _subject(document: Any) -> Mapping[str, str]:
    """Of which object a document speaks, before anything is filled in."""
    meta = document.get("metadata") if isinstance(document, dict) else None
    if not isinstance(meta, dict):
        return {}
    return {name: value for name in IDENTITY if isinstance(value := meta.get(name), str) and value}


def connect_options(call: Call) -> errors.Object:
    """The options of a connection (PodExecOptions, ServiceProxyOptions) that path and query say."""
    sub = call.target.subresource
    assert sub is not None, "connections are made to subresources"
    found: errors.Object = {"kind": sub.kind, "apiVersion": "v1"}
    for name, values in call.query.items():
        if name in ("stdin", "stdout", "stderr", "tty"):
            found[name] = flag(call.query, name)
        elif name == "command":
            found[name] = values
        elif name == "ports":
            found[name] = [int(number) for each in values for number in each.split(",") if number.isdigit()]
        elif name == "container":
            found[name] = values[0]
    path = call.request.path.partition(f"/{call.target.name}/{sub.name}")[2]
    return {**found, "path": path} if sub.goes_on and path else found


class Verbs:
    """What each verb does."""

    def __init__(self, operations: Operations, watches: Watches, connecting: Connecting) -> None:
        self._operations = operations
        self._connecting = connecting
        self._watches = watches

    def perform(self, verb: str, call: Call) -> Answer | Awaitable[Answer]:
        match verb:
            case "get":
                return self._get(call)
            case "list":
                return self._list_or_watch(call)
            case "create":
                return self._create(call)
            case "update":
                return self._update(call)
            case "patch":
                return self._apply(call) if call.media_type == body.APPLY else self._patch(call)
            case "delete":
                return self._delete(call)
            case "connect":
                return self._connect(call)
            case _:
                return self._delete_all(call)

    # Reads are answered without a coroutine whenever nothing has to be waited for.

    def _get(self, call: Call) -> Answer | Awaitable[Answer]:
        renderer = call.renderer()
        found = self._operations.get(call.target, first(call.query, "resourceVersion"), call.notes)
        if isinstance(found, FOUND):
            return _answer(renderer, found)

        async def later() -> Answer:
            return _answer(renderer, await found)

        return later()

    def _list_or_watch(self, call: Call) -> Answer | Awaitable[Answer]:
        options = list_options(call.query, watch=call.watch)
        if options.watch:
            renderer = call.renderer(STREAMED)
            if renderer.representation.format == "yaml":
                raise not_streamable()
            streaming = self._watches.start(self._operations.watch(call.target, options), renderer)
            if asked_for(call.request.headers):
                streaming.upgrade = partial(upgraded, call.request, streaming.content_type)
            return streaming
        renderer = call.renderer()
        found = self._operations.list(call.target, options, call.notes)
        if isinstance(found, Page):
            return _list_answer(renderer, found)

        async def later() -> Answer:
            answer = _list_answer(renderer, await found)
            return answer if isinstance(answer, Response) else await answer

        return later()

    async def _create(self, call: Call) -> Answer:
        renderer = call.renderer()
        options = write_options(call.query, "CreateOptions")
        document = await call.document()
        created = await self._operations.create(call.target, document, call.caller(options))
        return _answer(renderer, created)

    async def _update(self, call: Call) -> Answer:
        renderer = call.renderer()
        options = write_options(call.query, "UpdateOptions")
        document = await call.document()
        updated = await self._operations.update(call.target, document, call.caller(options))
        return _answer(renderer, updated)

    async def _patch(self, call: Call) -> Answer:
        type = PATCH_TYPES.get(call.media_type)
        if type is None:
            if not call.target.kind.built_in:
                raise errors.UnsupportedMediaType(NOT_STRATEGIC)
            raise errors.UnsupportedMediaType("415: Unsupported Media Type", details={})
        renderer = call.renderer()
        options = patch_options(call.query, apply=False)
        document, mistakes = await call.read(body.read_patch, call.request.body, type, options.field_validation)
        caller = call.caller(options)
        patched = await self._operations.patch(call.target, type, document, caller, mistakes)
        return _answer(renderer, patched)

    async def _apply(self, call: Call) -> Answer:
        renderer = call.renderer()
        options = patch_options(call.query, apply=True)
        config, mistakes = await call.read(body.read_applied, call.request.body, options.field_validation)
        call.keep(config)
        caller = call.caller(options)
        force = bool(options.force)
        applied = await self._operations.apply(call.target, config, caller, force=force, warnings=mistakes)
        return _answer(renderer, applied)

    async def _delete(self, call: Call) -> Answer:
        renderer = call.renderer()
        kind = call.target.kind
        options, caller = await call.deletion()
        deleted = await self._operations.delete(call.target, options, caller)
        if deleted.gone and not kind.delete_answers_object:
            details = named(kind.resource, call.target.name)
            details["uid"] = deleted.entry.decode()["metadata"]["uid"]
            return _answer(renderer, Answered(success(details=details)))
        if kind.deletion_warning and not options.propagation and options.orphan is None:
            return _answer(renderer, Written(deleted.entry, False, [kind.deletion_warning]))
        return _answer(renderer, deleted.entry)

    async def _delete_all(self, call: Call) -> Answer:
        renderer = call.renderer()
        options, caller = await call.deletion()
        chosen = list_options(call.query, watch=False)
        answer = _list_answer(renderer, await self._operations.delete_all(call.target, chosen, options, caller))
        return answer if isinstance(answer, Response) else await answer

    async def _connect(self, call: Call) -> Answer:
        """A connection into a Pod; a webhook that refuses connections has the first say."""
        target = call.target
        assert target.subresource is not None, "connections are made to subresources"
        if target.subresource.verbs == STREAM and call.request.method == "GET":
            self._operations.authorize(call.user, "create", target)  # a WebSocket begins with GET, but does more
        if target.subresource.name != "log":
            await self._operations.connect(target, connect_options(call), call.caller(WriteOptions()))
        return await self._connecting.answer(call.request, target, call.query)


# --- answers ---------------------------------------------------------------------------------------


def _answer(renderer: Renderer, result: Entry | Written | Answered) -> Response:
    """One object in the form asked for."""
    if isinstance(result, Entry):
        return _object_answer(renderer, result, 200, ())
    status, headers = 201 if result.created else 200, warning_headers(result.warnings)
    if isinstance(result, Written):
        return _object_answer(renderer, result.entry, status, headers)
    return Response(status, _answered(renderer, result), renderer.representation.content_type, headers)


def _object_answer(renderer: Renderer, entry: Entry, status: int, headers: Sequence[tuple[str, str]]) -> Response:
    """A stored object; if it takes long to show, that is done in a thread."""
    content_type = renderer.representation.content_type
    if renderer.lengthy((entry,)):
        return Response(status, [], content_type, headers, write=lambda: [renderer.one(entry)])
    plain = _plain(renderer, lambda json: json.one(entry))
    return Response(status, renderer.one(entry), content_type, headers, plain=plain)


def _plain(renderer: Renderer, make: Callable[[Renderer], bytes]) -> Callable[[], bytes] | None:
    """Makes an answer in protobuf again, in JSON, if that takes no time."""
    if renderer.representation.format != "protobuf" or renderer.representation.as_:
        return None
    json = Renderer(renderer.kind, PLAIN, "", renderer.clock)
    return partial(make, json) if json.direct else None


def _answered(renderer: Renderer, result: Answered) -> bytes:
    if result.kind is None:
        return renderer.encode(result.object)
    other = Renderer(result.kind, renderer.representation, renderer.include, renderer.clock)
    return renderer.encode(other.shown(result.object))


def _list_answer(renderer: Renderer, page: Page) -> Response | Awaitable[Response]:
    """A list in the form asked for.  If that takes long, others are answered meanwhile; some are made in a thread."""
    content_type = renderer.representation.content_type
    plain = _plain(renderer, lambda json: b"".join(json.many(page.entries, page.listing)))
    if not renderer.lengthy(page.entries):
        return Response(200, renderer.many(page.entries, page.listing), content_type, plain=plain)
    if renderer.whole:
        return Response(200, [], content_type, write=partial(renderer.many, page.entries, page.listing), plain=plain)

    async def in_portions() -> Response:
        return Response(200, await renderer.many_in_portions(page.entries, page.listing), content_type)

    return in_portions()


def warning_headers(sentences: Sequence[str]) -> list[tuple[str, str]]:
    """Warnings as headers.  What no header can carry is left out; many long ones are cut, as Kubernetes does."""
    if not sentences:
        return []
    seen = [s for s in dict.fromkeys(sentences) if s and not _control.search(s)]
    if sum(map(len, seen)) > MAX_WARNINGS:
        seen = [s[:CUT_WARNING] for s in seen][: MAX_WARNINGS // CUT_WARNING]
    return [("Warning", '299 - "{}"'.format(s.replace("\\", "\\\\").replace('"', '\\"'))) for s in seen]
