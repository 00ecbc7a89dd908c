"""A client for commands that ask a few questions and end: one connection, no event loop.

An event loop and an HTTP library take longer to import than all answers take to come.  So the same coroutines are
driven by :func:`run`, which knows two things to wait for: answers of one server, and other coroutines
(:func:`together`).  When none of them can go on, all their requests are sent at once on one connection, and the answers
are read in that order, as HTTP/1.1 prescribes.
"""

from __future__ import annotations

import socket
import ssl
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Iterator, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from seamark.access.credentials import Identity
from seamark.access.kubeconfig import Connection
from seamark.access.sending import CONNECT_TIMEOUT, READ_TIMEOUT, Attempts, Request
from seamark.clock import in_event_loop

T = TypeVar("T")

_AT_ONCE = 16  # requests under way; more would be no faster, and must fit into the buffers between us and the server


# --- coroutines without an event loop --------------------------------------------------------------


class _Awaited:
    """What :func:`run` waits for on behalf of a coroutine."""

    def __await__(self) -> Generator[_Awaited, Any, Any]:
        return (yield self)


class _Together(_Awaited):
    def __init__(self, work: Sequence[Coroutine[Any, Any, Any]]) -> None:
        self.work = work


class _Exchange(_Awaited):
    def __init__(self, line: _Line, request: bytes) -> None:
        self.line = line
        self.request = request


class _Task:
    """A coroutine under way, and the outcomes of those that it waits for."""

    def __init__(self, work: Coroutine[Any, Any, Any], parent: _Task | None = None, place: int = 0) -> None:
        self.work = work
        self.parent = parent
        self.place = place
        self.outcomes: list[Any] = []
        self.left = 0


class _Raised(msgspec.Struct, frozen=True):
    """The outcome of what did not end with a result."""

    error: Exception


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits only for answers of a ``BlockingTransport`` and for other coroutines."""
    ready: deque[tuple[_Task, Any]] = deque([(_Task(work), None)])  # a task, and the outcome of what it waited for
    waiting: deque[tuple[_Task, _Exchange]] = deque()
    while True:
        while ready:
            task, outcome = ready.popleft()
            try:
                wanted = task.work.throw(outcome.error) if isinstance(outcome, _Raised) else task.work.send(outcome)
            except StopIteration as end:
                if task.parent is None:
                    return end.value  # type: ignore[no-any-return]  # what the first coroutine returns
                ready.extend(_told(task.parent, task.place, end.value))
                continue
            except Exception as error:
                if task.parent is None:
                    raise
                ready.extend(_told(task.parent, task.place, _Raised(error)))
                continue
            if isinstance(wanted, _Together):
                task.outcomes, task.left = [None] * len(wanted.work), len(wanted.work)
                ready.extend((_Task(each, task, place), None) for place, each in enumerate(wanted.work))
            else:
                waiting.append((task, wanted))
        batch = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
        line = batch[0][1].line
        asked = [(task, exchange.request) for task, exchange in batch if exchange.line is line]
        answers = line.exchange([request for _, request in asked])
        ready.extend((task, answer) for (task, _), answer in zip(asked, answers, strict=True))
        waiting.extendleft(reversed([each for each in batch if each[1].line is not line]))


def _told(parent: _Task, place: int, outcome: Any) -> Iterator[tuple[_Task, Any]]:
    """Note one outcome; when all are there, the parent goes on with them, or with the first that is an error."""
    parent.outcomes[place] = outcome
    parent.left -= 1
    if not parent.left:
        failed = (each for each in parent.outcomes if isinstance(each, _Raised))
        yield parent, next(failed, parent.outcomes)


async def together(*work: Coroutine[Any, Any, Any]) -> Any:
    """The results of several coroutines that run at the same time, in an event loop or under :func:`run`."""
    if in_event_loop():
        import asyncio

        return await asyncio.gather(*work)
    return await _Together(work)


# --- one connection --------------------------------------------------------------------------------


class _Headers(msgspec.Struct):
    """Header fields in the order of the answer."""

    fields: list[tuple[str, str]]

    def get(self, key: str, default: str, /) -> str:
        return next(iter(self.getall(key, ())), default)

    def getall(self, key: str, default: Iterable[str], /) -> Iterable[str]:
        return [value for name, value in self.fields if name == key.lower()] or default


class Answer(msgspec.Struct):
    """An answer that was read completely."""

    status: int
    headers: _Headers
    body: bytes
    last: bool
    """The server closes the connection after it."""

    async def read(self) -> bytes:
        return self.body

    def release(self) -> None:
        """It has no connection any more."""


class _Line:
    """A connection to the server, opened when first needed and again when it was lost."""

    def __init__(self, connection: Connection, tls: ssl.SSLContext | None) -> None:
        server = urlsplit(connection.server)
        self.tls = tls
        self._host = server.hostname or ""
        self._port = server.port or (80 if tls is None else 443)
        self._server_name = connection.server_name or self._host
        self._socket: socket.socket | None = None
        self._read: Any = None

    def close(self) -> None:
        if self._socket is not None:
            self._read.close()
            self._socket.close()
            self._socket = None

    def exchange(self, requests: Sequence[bytes]) -> list[Answer | _Raised]:
        """The answers to these requests, or what happened instead."""
        lost: Exception | None = None
        try:
            if self._socket is None:
                self._open()
            self._socket.sendall(b"".join(requests))  # type: ignore[union-attr]  # just opened
        except OSError as error:
            lost = error
        answers: list[Answer | _Raised] = []
        while lost is None and len(answers) < len(requests):
            try:
                answer = _answer(self._read)
            except (OSError, ValueError) as error:
                lost = error
            else:
                answers.append(answer)
                lost = ConnectionResetError("the server closed the connection") if answer.last else None
        if lost is not None:
            self.close()
            answers += [_Raised(lost)] * (len(requests) - len(answers))
        return answers

    def _open(self) -> None:
        # Names as bytes are used as they are; for others Python would load the tables of international names.
        try:
            made: socket.socket = socket.create_connection((_plain(self._host), self._port), CONNECT_TIMEOUT)  # type: ignore[arg-type]  # bytes are fine
        except OSError as error:
            raise Unreachable(error) from error
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.settimeout(READ_TIMEOUT)
        if self.tls is not None:
            try:
                made = self.tls.wrap_socket(made, server_hostname=_plain(self._server_name))
            except ssl.SSLCertVerificationError:
                raise
            except OSError as error:
                raise Unreachable(error) from error
        self._socket, self._read = made, made.makefile("rb")


class Unreachable(OSError):
    """The connection could not be opened; ``error`` says why."""

    def __init__(self, error: OSError) -> None:
        self.error = error


def _plain(host: str) -> str | bytes:
    return host.encode() if host.isascii() else host


def _answer(stream: Any) -> Answer:
    """Read one answer; raises ``ValueError`` if it is not HTTP."""
    status = 100
    while status < 200 and status != 101:
        line = stream.readline()
        if not line:
            raise ConnectionResetError("the server closed the connection")
        version, _, rest = line.partition(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError(f"the answer is not HTTP: {line[:60]!r}")
        status = int(rest[:3])
        fields = []
        while (line := stream.readline()) not in (b"\r\n", b"\n"):
            if not line:
                raise ConnectionResetError("the answer ended in the middle of its head")
            name, _, value = line.decode("latin-1").partition(":")
            fields.append((name.strip().lower(), value.strip()))
    headers = _Headers(fields)
    length = headers.get("content-length", "")
    chunked = headers.get("transfer-encoding", "").lower() == "chunked"
    last = version == b"HTTP/1.0" or headers.get("connection", "").lower() == "close"
    if status in (204, 304):
        body = b""
    elif chunked:
        body = b"".join(_chunks(stream))
    elif length:
        body = _exactly(stream, int(length))
    else:
        body, last = stream.read(), True
    return Answer(status, headers, body, last)


def _chunks(stream: Any) -> Iterator[bytes]:
    while size := int(stream.readline().partition(b";")[0], 16):
        yield _exactly(stream, size + 2)[:-2]
    while stream.readline() not in (b"\r\n", b"\n", b""):
        pass  # trailers


def _exactly(stream: Any, size: int) -> bytes:
    data: bytes = stream.read(size)
    if len(data) < size:
        raise ConnectionResetError("the answer ended in the middle")
    return data


# --- requests --------------------------------------------------------------------------------------


class BlockingTransport(Attempts):
    """Sends requests to one server for coroutines that :func:`run` drives.  It knows no proxies and no watches."""

    _line: _Line | None = None

    async def close(self) -> None:
        if self._line is not None:
            self._line.close()

    def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        raise NotImplementedError("a watch needs an event loop")

    async def _once(self, request: Request, identity: Identity, read_timeout: float) -> Answer:
        line = self._connected(identity)
        try:
            answer: Answer = await _Exchange(line, self._encoded(request, identity))
        except TimeoutError as error:
            raise self._too_late(request) from error
        except ssl.SSLCertVerificationError as error:
            raise self._cannot_trust(error) from error
        except Unreachable as error:
            if isinstance(error.error, TimeoutError):
                raise self._too_late(request) from error
            raise self._cannot_reach(error.error) from error
        except (OSError, ValueError) as error:
            raise self._lost(error) from error
        return answer

    async def _read(self, request: Request, answer: Answer) -> bytes:
        return answer.body

    def _connected(self, identity: Identity) -> _Line:
        tls = self._tls_for(identity.certificate)
        if self._line is None or self._line.tls is not tls:
            self._line = _Line(self.connection, tls)
        return self._line

    def _encoded(self, request: Request, identity: Identity) -> bytes:
        server = urlsplit(self.connection.server)
        query = f"?{urlencode(request.query, quote_via=quote)}" if request.query else ""
        body = request.body or b""
        headers = [("Host", server.netloc.rpartition("@")[2]), *self._headers(request, identity)]
        if request.body is not None:
            headers.append(("Content-Length", str(len(body))))
        lines = [f"{request.method} {server.path}{request.path}{query} HTTP/1.1", *(f"{n}: {v}" for n, v in headers)]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
