"""The API server as one callable: a request in, an answer out.  The order of checks is the order of the code.

authenticate → fixed documents (health, version, metrics, discovery, OpenAPI) → parse the path → authorize → check the
verb → wait for a turn, if there is too much to do → perform it.  All but the last two need only the head of a request
and are done before its body is read (:meth:`Application.admit`).  An error on the way becomes a ``Status`` here and
nowhere else.
"""

from __future__ import annotations

import logging
import time
from asyncio import Future
from collections.abc import Awaitable, Callable
from functools import partial
from urllib.parse import unquote_plus

import msgspec

from seamark import errors
from seamark.api.aggregation.backends import Backend
from seamark.api.aggregation.following import Aggregation
from seamark.api.audit.events import Audited
from seamark.api.audit.measuring import AGGREGATED, Measures
from seamark.api.authentication import Authenticator
from seamark.api.authorization import Attributes, Authorizer, User, check
from seamark.api.call import NOT_AVAILABLE, Target, check_verb, not_allowed
from seamark.api.custom import Definitions
from seamark.api.http.auditing import Auditing, id_of
from seamark.api.http.documents import Documents
from seamark.api.http.fairness import LONG_LIST, CalmQueue, FairQueue, Full, Load
from seamark.api.http.levels import Levels
from seamark.api.http.negotiate import PLAIN, compressed, indented, negotiate_error
from seamark.api.http.render import encode
from seamark.api.http.url import Query, asked, check_timeout, first, flag, parse, parse_query, selected_name
from seamark.api.http.verbs import Answer, Call, Verbs, verb_of, warning_headers
from seamark.api.http.wire.incoming import MAX_BODY
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.impersonation import Impersonation, impersonates
from seamark.api.operations import Operations, attributes
from seamark.api.state.failures import RETRY_SECONDS, unavailable
from seamark.clock import Clock
from seamark.haste import LARGE, Patience, is_large
from seamark.kinds.admission import Notes, Seats
from seamark.kinds.kind import Kind
from seamark.metrics import Registry
from seamark.store.protocol import StoreError, Unavailable

log = logging.getLogger("seamark.api")

# Reviews, which users without rights may post, and Bindings are small.
MAX_UNSTORED_BODY = 128 * 1024
# How many requests with large bodies are worked on at once.  A body of 3 MB can take a hundred times the memory.
LARGE_AT_ONCE = 2
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})


class Label(Notes):
    """What a request is about, for metrics and the audit log; and a warning that goes with every answer."""

    verb: str = ""
    resource: str = ""
    warning: str = ""
    audited: Audited | None = None
    level: tuple[tuple[str, str], ...] = ()  # the headers that name the priority level, if they are sent
    load: Load | None = None  # what a long list takes of the room for them, until it has been sent
    settled: bool = False  # whether it has waited for what other servers acknowledged


class Checked(msgspec.Struct):
    """What the head of a request asks for, which its sender may do."""

    label: Label
    verb: str
    target: Target
    query: Query
    user: User
    watch: bool  # the path says that it is one


class Relayed(msgspec.Struct):
    """A request that another server answers, and that its sender may make."""

    label: Label
    backend: Backend
    user: User


class Described(msgspec.Struct):
    """A request for a document that takes a while to make, and that its sender may make."""

    label: Label


class Unsettled(msgspec.Struct):
    """A request to be looked at again when this server has caught up with the others that serve together with it."""

    label: Label


Found = Checked | Relayed | Described | Unsettled | Response


class Application:
    """Answers every request; never raises."""

    def __init__(
        self,
        *,
        operations: Operations,
        verbs: Verbs,
        documents: Documents,
        authenticator: Authenticator,
        authorizer: Authorizer,
        levels: Levels,
        metrics: Registry,
        max_in_flight: int,
        clock: Clock,
        patience: Patience,
        aggregation: Aggregation,
        definitions: Definitions,
        auditing: Auditing | None = None,
    ) -> None:
        self._operations = operations
        self._definitions = definitions
        self._aggregation = aggregation
        self._verbs = verbs
        self._clock = clock
        self._documents = documents
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._levels = levels
        self._impersonation = Impersonation(authorizer)
        self._auditing = auditing
        self._patience = patience
        self._queue: FairQueue[Answer | Awaitable[Answer]] = FairQueue(max_in_flight)
        self._large: FairQueue[Answer | Awaitable[Answer]] = CalmQueue(LARGE_AT_ONCE)
        self._measures = Measures(metrics, lambda: {group for group, _ in aggregation.backends})
        operations.kinds.on_change(self._kind_changed)
        metrics.measured(
            "seamark_api_requests_in_flight",
            "Requests being worked on, watches apart.",
            lambda: float(self.in_flight),
        )
        metrics.measured(
            "seamark_api_requests_waiting", "Requests that wait for their turn.", lambda: float(self.waiting)
        )
        metrics.measured(
            "seamark_api_list_bytes", "Bytes of long lists under way.", lambda: float(self._queue.room.used)
        )

    @property
    def in_flight(self) -> int:
        return self._queue.taken + self._large.taken

    @property
    def waiting(self) -> int:
        return self._queue.waiting + self._large.waiting

    def admit(self, request: Request) -> Response | None:
        """Look at a request whose body has not come; the answer if it needs no body or is refused."""
        began = time.perf_counter()
        label = Label(seats=self._queue)
        try:
            found = self._check(request, label)
        except Exception as error:
            found = refusal(error, request)
        if not isinstance(found, Response):
            request.checked = found
            return None
        return self._complete(request, found, label, began)

    def __call__(self, request: Request) -> Answer | Awaitable[Answer]:
        began = time.perf_counter()
        label = Label(seats=self._queue) if request.checked is None else request.checked.label
        try:
            answer = self._route(request, label, began)
        except Exception as error:
            answer = refusal(error, request)
        if isinstance(answer, Response) and answer.write is not None:
            answer = self._written(request, answer, answer.write)
        if isinstance(answer, Response | Streaming):
            return self._finished(request, answer, label, began)
        return self._later(request, answer, label, began)

    async def _later(self, request: Request, answer: Awaitable[Answer], label: Label, began: float) -> Answer:
        try:
            result = await answer
            if isinstance(result, Response) and result.write is not None:
                result = await self._written(request, result, result.write)
        except Exception as error:
            long = isinstance(error, errors.ApiError) and len(error.message) >= LARGE
            result = await self._patience.hear(refusal, error, request) if long else refusal(error, request)
        except BaseException:
            if label.load is not None:
                label.load.release()
            raise
        return self._finished(request, result, label, began)

    async def _written(self, request: Request, answer: Response, write: Callable[[], list[bytes]]) -> Response:
        """Make a body that takes long, while others are answered; not for a client that has gone meanwhile."""
        answer.body = await self._patience.hear(lambda: [] if request.gone else write())
        answer.write = None
        return answer

    async def _in_turn(self, queue: Seats, turn: Future[Answer | Awaitable[Answer]]) -> Answer:
        answer = await turn
        return answer if isinstance(answer, Response | Streaming) else await self._seated(queue, answer)

    async def _seated(self, queue: Seats, answer: Awaitable[Answer]) -> Answer:
        queue.enter()
        try:
            return await answer
        finally:
            queue.leave()

    def _finished(self, request: Request, answer: Answer, label: Label, began: float) -> Answer:
        if isinstance(answer, Response):
            return self._complete(request, answer, label, began)
        self._counted(request, answer, label, began)
        return answer

    def _complete(self, request: Request, answer: Response, label: Label, began: float) -> Response:
        self._counted(request, answer, label, began)
        answer = compressed(request, indented(request, answer))
        answer.load = label.load
        return answer

    def _counted(self, request: Request, answer: Answer, label: Label, began: float) -> None:
        self._measures.count(label.verb, label.resource, answer.status, began)
        if self._auditing is not None and label.audited is not None:
            label.audited.annotations = label.annotations or {}
            self._auditing.end(label.audited, request, answer)
            id = label.audited.id
        else:
            # As Kubernetes, whether or not it is logged: by this word a client finds its request in its own logs.
            id = id_of(request)
        answer.headers = (*answer.headers, ("Audit-Id", id))
        if label.level:
            answer.headers = (*answer.headers, *label.level)
        if label.warning:
            # The warning of a deprecated kind goes with errors, too.
            answer.headers = (*warning_headers([label.warning]), *answer.headers)
        if label.warnings:
            answer.headers = (*answer.headers, *warning_headers(label.warnings))

    def _kind_changed(self, old: Kind | None, new: Kind | None) -> None:
        """Forget the measures of a kind that is gone, because definitions may come and go under ever new names."""
        if old is None or new is not None:
            return
        resource = old.resource.qualified
        if all(kind.resource.qualified != resource for kind in self._operations.kinds):
            self._measures.forget(resource)

    # --- routing -----------------------------------------------------------------------------------

    def _check(self, request: Request, label: Label) -> Found:
        """What the head of a request asks for, or the answer if that is a document.  Does not look at the body."""
        try:
            return self._look(request, label)
        except (errors.NotFound, errors.Forbidden, errors.Unauthorized):
            if self._unsettled(label):
                return Unsettled(label)
            raise

    def _look(self, request: Request, label: Label) -> Found:
        user = self._authenticator.user(request.headers, request.certificate)
        acts = impersonates(request.headers)
        path = request.path
        if (backend := self._aggregation.backend_of(path)) is not None:
            label.verb, label.resource = request.method.lower(), f"{AGGREGATED}{backend.group}"
            what = asked(request.method, path, parse_query(request.query))
            return Relayed(label, backend, self._check_path(request, user, label, what, acts=acts))
        if self._documents.serves(path):
            label.verb, label.resource = "get", "documents"
            self._check_path(request, user, label, Attributes(request.method.lower(), path=path), acts=acts)
            if path.startswith("/api") and self._unsettled(label):
                return Unsettled(label)
            return Described(label) if self._documents.takes_time(path) else self._documents.answer(request)
        query = parse_query(request.query)
        try:
            route = parse(path, self._operations.kinds)
        except errors.NotFound:
            # A user without rights on this path is refused, and does not learn that nothing is there.
            self._check_path(request, user, label, asked(request.method, path, query), acts=acts)
            raise
        if route is None:
            self._check_path(request, user, label, asked(request.method, path, query), acts=acts)
            return Unsettled(label) if self._unsettled(label) else not_found_page()
        target = route.target
        verb = verb_of(request.method, target, watch=route.watch)
        watches = verb == "list" and (route.watch or flag(query, "watch"))
        label.verb, label.resource = "watch" if watches else verb, target.kind.resource.qualified
        label.warning = target.kind.request_warning
        selected = selected_name(query) if not target.name and "fieldSelector" in query else ""
        if acts or self._auditing is not None:
            user = self._noted(request, user, label, attributes(label.verb, target, selected), acts=acts)
        if self._levels.told:
            label.level = self._levels.of(user, attributes(label.verb, target)).headers
        if not watches:
            check_timeout(query)
        self._operations.authorize(user, label.verb, target, selected)
        proxied = target.subresource is not None and target.subresource.goes_on
        if request.method not in METHODS and not (proxied and request.method in ("HEAD", "OPTIONS")):
            raise not_allowed()
        resource = target.kind.resource
        if verb == "create" and not target.kind.built_in and resource.namespaced and not target.namespace:
            return not_found_page()
        try:
            check_verb("get" if proxied else verb, target)
        except errors.ApiError as error:
            if error.code != NOT_AVAILABLE:
                raise
            verb = "connect"  # into a Pod
        return Checked(label, verb, target, query, user, route.watch)

    def _unsettled(self, label: Label) -> bool:
        """Whether another server may have acknowledged a kind, a right or a user that this one does not know yet."""
        return not label.settled and not self._definitions.settled

    async def _settle(self, request: Request, label: Label, began: float) -> Answer:
        """Answer a request once this server knows all that was acknowledged before it came."""
        await self._definitions.settle()
        request.checked, label.settled = None, True
        answer = self._route(request, label, began)
        return answer if isinstance(answer, Response | Streaming) else await answer

    def _check_path(self, request: Request, user: User, label: Label, asked: Attributes, *, acts: bool) -> User:
        """Raise unless the user may ask for a document, or for what is not here; returns whom the sender acts as."""
        user = self._noted(request, user, label, asked, acts=acts)
        if self._levels.told:
            label.level = self._levels.of(user, asked).headers
        check(self._authorizer, user, asked)
        return user

    def _noted(self, request: Request, sender: User, label: Label, asked: Attributes, *, acts: bool) -> User:
        """Whom the sender acts as.  The audit log has the request also if that is refused, and knows the sender."""
        if self._auditing is not None and label.audited is None:
            label.audited = self._auditing.begin(request, sender, asked)
        acting = self._impersonation.acting(sender, request.headers, asked) if acts else None
        user = sender if acting is None else acting.user
        if (audited := label.audited) is not None:
            if acting is not None:
                audited.acts_as, audited.constraint = acting
            audited.decision = self._authorizer.authorize(user, asked)
        return user

    def _route(self, request: Request, label: Label, began: float) -> Answer | Awaitable[Answer]:
        found = request.checked or self._check(request, label)
        if not isinstance(found, Checked):
            return self._other(found, request, label, began)
        if request.crowded:
            raise too_many()
        limit = MAX_BODY if found.target.kind.stored else MAX_UNSTORED_BODY
        if request.too_large or len(request.body) > limit:
            raise errors.RequestEntityTooLarge(f"Request entity too large: limit is {limit}")
        queue, patience = self._queue, None
        if len(request.body) >= LARGE and is_large(request.body):
            # They wait for each other, and not in the seats of small ones.
            queue, patience = self._large, self._patience
            label.seats = queue
        call = Call(request, found.target, found.query, found.user, self._clock, found.watch, label, patience)
        if label.verb == "watch" or found.verb == "connect":  # they last, and would keep their seats
            return self._verbs.perform(found.verb, call)
        flow, work = (found.user.name, label.resource), partial(self._verbs.perform, found.verb, call)
        seat = found.verb not in ("get", "list")
        if found.verb == "list":
            label.load = self._load(found, flow)
        answer = queue.at_once(work, began=began, seat=seat, load=label.load)
        if answer is None:
            level = self._levels.of(found.user, attributes(label.verb, found.target))
            if level.rejects:
                raise too_many()
            try:
                turn = queue.wait(flow, work, seat=seat, load=label.load, exempt=level.exempt)
            except Full:
                raise too_many() from None
            request.waits = turn
            return self._in_turn(queue, turn)
        return answer if isinstance(answer, Response | Streaming) else self._seated(queue, answer)

    def _other(
        self, found: Relayed | Described | Unsettled | Response, request: Request, label: Label, began: float
    ) -> Answer | Awaitable[Answer]:
        """Answer what is not about this server's own objects, or not yet."""
        if isinstance(found, Response):
            return found
        if isinstance(found, Described):
            return self._documents.described(request)
        if isinstance(found, Unsettled):
            return self._settle(request, label, began)
        if request.crowded:
            raise too_many()
        if request.too_large:
            raise errors.RequestEntityTooLarge(f"Request entity too large: limit is {MAX_BODY}")
        return self._aggregation.relay(found.backend, request, found.user)

    def _load(self, found: Checked, flow: tuple[str, str]) -> Load | None:
        """What a list takes of the room; None if it is not long."""
        limit = first(found.query, "limit")
        size = self._operations.weight(found.target, int(limit) if limit.isdecimal() and len(limit) < 10 else 0)
        return Load(self._queue, flow, size) if size >= LONG_LIST else None


def too_many() -> errors.TooManyRequests:
    return errors.TooManyRequests(
        "the server has received too many requests and has asked us to try again later",
        details={},
        retry_after=RETRY_SECONDS,
    )


def not_found_page() -> Response:
    """What Go's mux says about a path that is not served."""
    return Response(404, b"404 page not found\n", "text/plain; charset=utf-8")


def refusal(error: Exception, request: Request) -> Response:
    """The one place where an error becomes a ``Status``."""
    if isinstance(error, StoreError):
        # A store that is away is told once, by :class:`~seamark.store.metered.MeteredStore`, not with every request.
        level = logging.DEBUG if isinstance(error, Unavailable) else logging.WARNING
        log.log(level, "%s %s: %s", request.method, unquote_plus(request.path), error)
        error = unavailable(error)
    elif not isinstance(error, errors.ApiError):
        log.error("%s %s failed", request.method, request.path, exc_info=error)
        error = errors.internal(str(error) or type(error).__name__)
    representation = PLAIN
    try:
        representation = negotiate_error(request.headers.get("accept", ""))
    except errors.NotAcceptable as unreadable:
        # As in Kubernetes, a client that could not read the error is told so instead.
        error = error if isinstance(error, errors.NotAcceptable) else unreadable
    headers = [("Retry-After", str(error.retry_after))] if error.retry_after is not None else []
    status, content_type = errors.status(error), representation.content_type
    plain = None if representation.format == "json" else partial(encode, status, PLAIN)
    return Response(error.code, encode(status, representation), content_type, headers, plain=plain)
