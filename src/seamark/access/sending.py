"""Requests to an API server: who asks, how often a request is sent again, and what a refusal means.

These requests are sent again:

- after a 401, once, if the credentials can be renewed
- after a 429, or a 503 to a read, if the server says when to come back, up to ``ATTEMPTS`` times in all
- a read, if its answer was lost.  A create or patch is never sent twice, because the server may have executed it.  (The
  HTTP library of :mod:`seamark.access.transport` resends an update or delete if the connection it reused turns out to
  be closed; executing these twice is harmless, and at worst reported as a conflict or as not found.)
"""

from __future__ import annotations

import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec

from seamark import __version__, errors
from seamark.access.backoff import Backoff, Random, at_random
from seamark.access.credentials import Certificate, Identity
from seamark.access.kubeconfig import Connection
from seamark.clock import SYSTEM_CLOCK, Clock

ATTEMPTS = 6
LONGEST_WAIT = 30.0

# Timeouts in seconds: to connect, and between two pieces of an answer.  A watch may be silent for its whole lifetime.
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    content_type: str = "application/json"
    accept: str = "application/json"

    @property
    def reads(self) -> bool:
        return self.method == "GET"


class Sender(Protocol):
    """What sends requests to one server, such as a ``Transport``."""

    async def send(self, request: Request) -> bytes:
        """Send a request and return the body of the answer; raises an ``ApiError`` if it is not a success."""
        ...

    def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        """The lines of a long answer, in lists of lines that arrived together, of which the first is empty."""
        ...


class LostAnswer(errors.ServiceUnavailable):
    """The connection broke after the request was sent, so the server may have executed it."""


class Headers(Protocol):
    def get(self, key: str, default: str, /) -> str: ...

    def getall(self, key: str, default: Iterable[str], /) -> Iterable[str]: ...


class Answer(Protocol):
    """The beginning of an answer; ``read`` waits for the rest."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Headers: ...

    async def read(self) -> bytes: ...

    def release(self) -> object:
        """Give the connection back, or close it if the answer was not read to its end."""
        ...


class Attempts:
    """Sends each request as often as it may be sent.  A subclass says how one attempt is made."""

    def __init__(
        self,
        connection: Connection,
        *,
        agent: str = "seamark",
        clock: Clock = SYSTEM_CLOCK,
        random: Random = at_random,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """``warn`` is called with the text of each Warning header in an answer."""
        self.connection = connection
        self._warn = warn
        self._agent = user_agent(agent)
        self._clock = clock
        self._random = random
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def close(self) -> None:
        """Close every connection; open watches end with an error."""
        raise NotImplementedError

    async def _once(self, request: Request, identity: Identity, read_timeout: float) -> Any:
        """One attempt: an :class:`Answer`, whatever its status; raises an ``ApiError`` if there is none."""
        raise NotImplementedError

    async def _read(self, request: Request, answer: Any) -> bytes:
        """The body of an answer."""
        raise NotImplementedError

    async def send(self, request: Request) -> bytes:
        """Send a request and return the body of the answer; raises an ``ApiError`` if it is not a success."""
        async with self._answer(request, read_timeout=READ_TIMEOUT) as answer:
            return await self._read(request, answer)

    async def ask(self, request: Request) -> tuple[int, bytes]:
        """Send a request once; the code and the body of the answer, also if it is no success."""
        answer = await self._once(request, await self.connection.credentials.current(), READ_TIMEOUT)
        try:
            return answer.status, await self._read(request, answer)
        finally:
            answer.release()

    @asynccontextmanager
    async def _answer(self, request: Request, *, read_timeout: float) -> AsyncIterator[Any]:
        """An answer with a success status, after as many attempts as this request allows."""
        backoff = Backoff(base=0.1, cap=2.0, random=self._random)
        renewed = False
        for attempt in range(1, ATTEMPTS + 1):
            identity = await self.connection.credentials.current()
            try:
                answer: Answer = await self._once(request, identity, read_timeout)
            except LostAnswer:
                if attempt == ATTEMPTS or not request.reads:
                    raise
                await self._clock.sleep(backoff.next())
                continue
            if self._warn is not None:
                for header in answer.headers.getall("Warning", ()):
                    self._warn(_warning(header))
            if answer.status < 300:
                try:
                    yield answer
                finally:
                    answer.release()
                return
            failure = await self._failure(request, answer)
            if failure.code == 401 and not renewed and self.connection.credentials.refused(identity):
                renewed = True
                continue
            wait = _retry_after(request, failure)
            if wait is None or attempt == ATTEMPTS:
                raise failure
            await self._clock.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _failure(self, request: Request, answer: Answer) -> errors.ApiError:
        """The error for an answer that is not a success."""
        body = await self._read(request, answer)
        failure = errors.from_status(status_of(answer.status, body))
        if failure.code == 401:  # servers say no more than that they do not know who asks
            shown = f"{self.connection.server} does not accept the token or client certificate that it was shown"
            failure = errors.Unauthorized(f"{shown}; it may have expired or been replaced")
        header = answer.headers.get("Retry-After", "")
        if failure.retry_after is None and header.isdigit():
            failure.retry_after = int(header)
        return failure

    # --- the parts of a request --------------------------------------------------------------------

    def _headers(self, request: Request, identity: Identity) -> list[tuple[str, str]]:
        headers = [
            ("Accept", request.accept),
            # In a cluster's network, compression costs both sides more time than it saves.
            ("Accept-Encoding", "identity"),
            *self._identifying(identity),
        ]
        return headers if request.body is None else [*headers, ("Content-Type", request.content_type)]

    def _identifying(self, identity: Identity) -> list[tuple[str, str]]:
        """The headers that say who asks."""
        headers = [("User-Agent", self._agent), *self.connection.headers]
        return [*headers, ("Authorization", identity.authorization)] if identity.authorization else headers

    def _tls_for(self, certificate: Certificate | None) -> ssl.SSLContext | None:
        """The TLS context for connections with this client certificate; None for a server without TLS.

        A connection is reused only for requests with the same context, so a renewed certificate is used from the next
        request on, while requests under way can finish.
        """
        if not self.connection.server.startswith("https:"):
            return None
        if self._tls is None or self._tls[0] != certificate:
            self._tls = (certificate, tls_context(self.connection, certificate))
        return self._tls[1]

    def _cannot_trust(self, error: object) -> errors.ServiceUnavailable:
        return errors.ServiceUnavailable(
            f"the certificate of {self.connection.server} cannot be trusted: {error}; "
            "check certificate-authority and tls-server-name in the kubeconfig"
        )

    def _cannot_reach(self, error: OSError) -> errors.ServiceUnavailable:
        """The system's text for an error: a library's own text would repeat the address."""
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        return errors.ServiceUnavailable(f"cannot reach {self.connection.server}: {reason}")

    def _lost(self, error: Exception) -> errors.ApiError:
        said = str(error) or type(error).__name__
        if re.search("ALERT_.*(CERTIFICATE|UNKNOWN_CA)", said):  # the last that it says, in the words of TLS
            return errors.Unauthorized(f"{self.connection.server} does not accept the client certificate: {said}")
        return LostAnswer(f"lost the connection to {self.connection.server}: {said}")

    def _too_late(self, request: Request) -> errors.Timeout:
        return errors.Timeout(f"{self.connection.server} did not answer {request.method} {request.path} in time")


def user_agent(component: str) -> str:
    """``seamark/0.1.0 (linux/x86_64)``; the server uses the part before the slash as manager in managedFields."""
    machine = os.uname().machine if hasattr(os, "uname") else os.environ.get("PROCESSOR_ARCHITECTURE", "unknown")
    return f"{component}/{__version__} ({sys.platform}/{machine})"


def tls_context(connection: Connection, certificate: Certificate | None) -> ssl.SSLContext:
    """TLS settings: the CA to trust, and the client certificate."""
    try:
        authority = connection.authority.decode() if connection.authority else None
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        raise errors.ServiceUnavailable(
            f"the certificate-authority for {connection.server} is not a PEM certificate: {error}"
        ) from error
    # Python 3.13 rejects CAs without a key identifier; many clusters have such CAs, and other clients accept them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    # Go trusts every certificate it is given by itself, also one that another authority issued; Python does since 3.13.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _show(context, certificate)
    return context


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load a certificate from memory.  The ssl module needs a file, so one exists briefly, readable by us only."""
    content = certificate.certificate + b"\n" + certificate.key
    try:
        if hasattr(os, "memfd_create"):  # a file of Linux that is in no directory
            with os.fdopen(os.memfd_create("certificate"), "wb", buffering=0) as file:
                file.write(content)
                context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
        else:
            _show_by_name(context, content)
    except (ssl.SSLError, ValueError) as error:
        raise errors.Unauthorized(f"the client certificate or its key cannot be used: {error}") from error


def _show_by_name(context: ssl.SSLContext, content: bytes) -> None:
    import tempfile

    handle, path = tempfile.mkstemp(prefix="seamark-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)


def _retry_after(request: Request, failure: errors.ApiError) -> float | None:
    """In how many seconds to send the request again; None: do not."""
    refused = failure.code == 429 or (failure.code == 503 and request.reads)
    return min(float(failure.retry_after), LONGEST_WAIT) if refused and failure.retry_after is not None else None


def status_of(code: int, body: bytes) -> dict[str, Any]:
    """The ``Status`` in an answer; one is made up if the answer has none, for example because a proxy wrote it."""
    try:
        answer = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status":
        return answer
    text = " ".join(body.decode(errors="replace").split())
    if code == 404 and text == "404 page not found":
        # The answer to a path of an API group that is not served; kubectl words it like any unknown resource.
        return errors.status(errors.NotFound("the server could not find the requested resource", details={}))
    return {"code": code, "message": text[:200] or f"the server answered {code} without saying why"}


def _warning(header: str) -> str:
    """The text of a Warning header such as ``299 - "v1 Endpoints is deprecated"``."""
    text = header.partition('"')[2].rpartition('"')[0]
    return text.replace('\\"', '"').replace("\\\\", "\\") or header
