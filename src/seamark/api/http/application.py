"""The API server as one callable: a request in, an answer out.  The order of checks is the order of the code.

who asks → fixed documents (health, version, metrics, discovery, OpenAPI) → what is meant → is there room for it → may
they → the verb.  Whatever is raised on the way becomes a ``Status`` here and nowhere else.
"""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Awaitable, Callable
from urllib.parse import unquote_plus

import msgspec

from seamark import errors
from seamark.api import auth
from seamark.api.http.answers import Answer, warning_headers
from seamark.api.http.call import Call, verb_of
from seamark.api.http.documents import Documents
from seamark.api.http.options import check_timeout, first, flag, parse_query
from seamark.api.http.protocol import MAX_BODY, Request, Response, Streaming
from seamark.api.http.subresource_verbs import SubresourceVerbs
from seamark.api.http.target import Target, not_allowed, parse
from seamark.api.http.verbs import Verbs
from seamark.api.subresources import BINDING
from seamark.kinds.table import Kinds
from seamark.metrics import Distribution, Registry, Value
from seamark.store.protocol import StoreError

log = logging.getLogger("seamark.api")

# Bodies below this are not worth compressing (Kubernetes' own threshold).
GZIP_FROM = 128 * 1024
RETRY_SECONDS = 1
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
# People at a terminal or in a browser, who get their JSON indented.
_PEOPLE = ("curl", "Wget", "Mozilla/5.0")


class Label(msgspec.Struct):
    """What a request turned out to be about: for metrics, and for the warning that goes with every answer."""

    verb: str = ""
    resource: str = ""
    warning: str = ""


class Application:
    """Answers every request; never raises."""

    def __init__(
        self,
        *,
        verbs: Verbs,
        subresource_verbs: SubresourceVerbs,
        kinds: Kinds,
        documents: Documents,
        authenticator: auth.Authenticator,
        metrics: Registry,
        max_in_flight: int,
        clock: Callable[[], float],
    ) -> None:
        self._verbs = verbs
        self._subresource_verbs = subresource_verbs
        self._clock = clock
        self._kinds = kinds
        self._documents = documents
        self._authenticator = authenticator
        self._metrics = metrics
        self._max_in_flight = max_in_flight
        self.in_flight = 0
        self._measures: dict[tuple[str, str, int], tuple[Value, Distribution]] = {}
        metrics.measured("seamark_api_requests_in_flight", "Requests being worked on, watches apart.", self._inflight)

    def _inflight(self) -> float:
        return self.in_flight

    def __call__(self, request: Request) -> Answer | Awaitable[Answer]:
        began = time.perf_counter()
        label = Label()
        try:
            answer = self._route(request, label)
        except Exception as error:
            answer = refusal(error, request)
        if isinstance(answer, Response | Streaming):
            return self._finished(request, answer, label, began)
        return self._later(request, answer, label, began)

    async def _later(self, request: Request, answer: Awaitable[Answer], label: Label, began: float) -> Answer:
        self.in_flight += 1
        try:
            result = await answer
        except Exception as error:
            result = refusal(error, request)
        finally:
            self.in_flight -= 1
        return self._finished(request, result, label, began)

    def _finished(self, request: Request, answer: Answer, label: Label, began: float) -> Answer:
        self._count(label, answer.status, began)
        if label.warning:
            # A deprecated kind is warned about whatever the answer is, an error included.
            answer.headers = (*warning_headers([label.warning]), *answer.headers)
        return answer if isinstance(answer, Streaming) else self._compressed(request, indented(request, answer))

    def _count(self, label: Label, status: int, began: float) -> None:
        verb, resource = label.verb, label.resource
        key = (verb, resource, status)
        measures = self._measures.get(key)
        if measures is None:
            measures = self._measures[key] = (
                self._metrics.counter(
                    "seamark_api_requests_total",
                    "Requests answered.",
                    verb,
                    resource,
                    str(status),
                    labels=("verb", "resource", "code"),
                ),
                self._metrics.histogram(
                    "seamark_api_request_seconds",
                    "Time to answer, watches to their first byte.",
                    verb,
                    resource,
                    labels=("verb", "resource"),
                ),
            )
        measures[0].add()
        measures[1].observe(time.perf_counter() - began)

    # --- routing -----------------------------------------------------------------------------------

    def _route(self, request: Request, label: Label) -> Answer | Awaitable[Answer]:
        user = self._authenticator.user(request)
        path = request.path
        if self._documents.serves(path):
            label.verb, label.resource = "get", "documents"
            if not auth.may(user, "get", path=path):
                raise auth.forbid_path(user, request.method, path)
            return self._documents.answer(request)
        target = parse(path, self._kinds)
        if target is None:
            if not auth.may(user, "get", path=path):
                raise auth.forbid_path(user, request.method, path)
            return not_found_page()
        query = parse_query(request.query)
        verb = verb_of(request.method, target)
        watches = verb == "list" and (target.watch or flag(query, "watch"))
        resource = target.kind.resource
        label.verb, label.resource = "watch" if watches else verb, resource.qualified
        label.warning = target.kind.request_warning
        if not watches:
            check_timeout(query)
            if self.in_flight >= self._max_in_flight:
                raise too_many()
        if not auth.may(user, label.verb, group=resource.group, resource=resource.plural):
            raise auth.forbid(user, label.verb, target)
        if request.method not in METHODS:
            raise not_allowed()
        if request.too_large:
            raise errors.RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}")
        return self._do(verb, Call(request, target, query, user, self._clock))

    def _do(self, verb: str, call: Call) -> Answer | Awaitable[Answer]:
        target = call.target
        if target.subresource is not None:
            return self._subresource(verb, call, target.subresource.name, target.subresource.verbs)
        if verb not in target.kind.verbs or (verb == "create" and target.name) or _misplaced(verb, target):
            raise not_allowed()
        verbs = self._verbs
        match verb:
            case "get":
                return verbs.get(call)
            case "list":
                return verbs.list_or_watch(call)
            case "create" if target.kind is BINDING:
                return self._subresource_verbs.bind(call)
            case "create":
                return verbs.create(call)
            case "update":
                return verbs.update(call)
            case "patch":
                return verbs.patch(call)
            case "delete":
                return verbs.delete(call)
            case _:
                return verbs.delete_collection(call)

    def _subresource(self, verb: str, call: Call, name: str, allowed: tuple[str, ...]) -> Answer | Awaitable[Answer]:
        if verb not in allowed:
            raise not_allowed()
        verbs, own = self._verbs, self._subresource_verbs
        match name, verb:
            case "binding", "create":
                return own.bind(call)
            case "eviction", "create":
                return own.evict(call)
            case "scale", "update" | "patch":
                return own.scale(call)
            case "status" | "scale" | "finalize" | "ephemeralcontainers" | "resize", "get":
                return verbs.get(call)
            case "status" | "finalize" | "ephemeralcontainers" | "resize", "update":
                return verbs.update(call)
            case "status" | "ephemeralcontainers" | "resize", "patch":
                return verbs.patch(call)
            case _:
                # Listed by discovery as in every cluster, but there is no kubelet behind: log, exec, port-forward …
                raise errors.ApiError(
                    f"seamark runs no containers: {call.kind.resource.plural}/{name} is not available",
                    code=501,
                    reason="NotImplemented",
                    details={},
                )

    # --- answers -----------------------------------------------------------------------------------

    @staticmethod
    def _compressed(request: Request, answer: Response) -> Response:
        body = answer.body
        size = sum(map(len, body)) if isinstance(body, list) else len(body)
        if size < GZIP_FROM or "gzip" not in request.headers.get("accept-encoding", ""):
            return answer
        whole = b"".join(body) if isinstance(body, list) else body
        packed = gzip.compress(whole, compresslevel=1, mtime=0)
        headers = (*answer.headers, ("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding"))
        return Response(answer.status, packed, answer.content_type, headers)


def _misplaced(verb: str, target: Target) -> bool:
    """Verbs that need a name or a namespace which the path does not have."""
    if verb in ("update", "patch", "delete") and not target.name:
        return True
    return verb in ("create", "deletecollection") and target.kind.resource.namespaced and not target.namespace


def too_many() -> errors.TooManyRequests:
    return errors.TooManyRequests(
        "the server has received too many requests and has asked us to try again later",
        details={},
        retry_after=RETRY_SECONDS,
    )


def indented(request: Request, answer: Response) -> Response:
    """The answer with its JSON indented, for people and for whoever asks for it."""
    asked = first(parse_query(request.query), "pretty") if "pretty" in request.query else ""
    wanted = asked in ("1", "t", "T", "TRUE", "true", "True")
    if not (wanted or (not asked and request.headers.get("user-agent", "").startswith(_PEOPLE))):
        return answer
    if answer.content_type != "application/json":
        return answer
    whole = b"".join(answer.body) if isinstance(answer.body, list) else answer.body
    return Response(answer.status, msgspec.json.format(whole, indent=2) + b"\n", answer.content_type, answer.headers)


def not_found_page() -> Response:
    """What Go's mux says about a path nobody serves."""
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


def refusal(error: Exception, request: Request) -> Response:
    """The one place where an error becomes a ``Status``."""
    if isinstance(error, StoreError):
        log.warning("%s %s: %s", request.method, unquote_plus(request.path), error)
        unavailable = errors.ServiceUnavailable(str(error), details={}, retry_after=RETRY_SECONDS)
        unavailable.__cause__ = error
        error = unavailable
    elif not isinstance(error, errors.ApiError):
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        error = errors.InternalError(f"Internal error occurred: {error or type(error).__name__}")
    headers = [("Retry-After", str(error.retry_after))] if error.retry_after is not None else []
    return Response(error.code, msgspec.json.encode(errors.status(error)), headers=headers)
