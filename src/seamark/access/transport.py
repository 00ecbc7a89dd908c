"""HTTP requests to an API server: connections, identity, retries, and every failure as an error of ours.

What is repeated, and what is not:

- 401 once, with a renewed identity, if the credentials can be renewed
- 429, and 503 for reads, as often as ``ATTEMPTS`` allows, if the server says when to come back
- a read whose answer was lost on the way.  A create or patch is never sent twice: it may have been done.  (An update
  or delete whose reused connection turns out to be closed is sent again by the HTTP library; doing them twice is
  harmless, and at worst reported as a conflict or as not found.)
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import random as _random
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec

from seamark import errors
from seamark.access.backoff import Backoff, Random
from seamark.access.credentials import Certificate, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.ratelimit import RateLimit

if TYPE_CHECKING:
    import aiohttp

ATTEMPTS = 6
LONGEST_WAIT = 30.0

# Seconds: to connect, and between two pieces of an answer.  A watch may be silent for as long as it lives.
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0

# A peer that vanished without a word is noticed after 30 + 3 * 10 seconds, however quiet the watch.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


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


class Transport:
    """Requests to one server.  Sessions are made when first needed, inside the event loop."""

    def __init__(
        self,
        connection: Connection,
        *,
        agent: str = "seamark",
        limit: RateLimit | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Random = _random.random,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """``warn`` is told what the server warns of in its answers."""
        self.connection = connection
        self._warn = warn
        self._agent = user_agent(agent)
        self._limit = limit
        self._sleep = sleep
        self._random = random
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def close(self) -> None:
        """Close every connection; open watches end with an error."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, request: Request) -> bytes:
        """The body of a successful answer."""
        async with self._answer(request, read_timeout=READ_TIMEOUT) as response:
            with self._foreign_errors(request):
                return await response.read()

    async def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        """The lines of a long answer, as many at a time as arrived together; first, once it stands, none.

        It is given up after ``lifetime`` silent seconds: the server should have ended it by then, and is not there.
        """
        async with self._answer(request, read_timeout=lifetime) as response:
            _keep_alive(response)
            yield []
            with self._foreign_errors(request):
                async for lines in _lines(response):
                    yield lines

    # --- one answer --------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _answer(self, request: Request, *, read_timeout: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response with a good status, after as many attempts as are right for this request."""
        backoff = Backoff(base=0.1, cap=2.0, random=self._random)
        renewed = False
        for attempt in range(1, ATTEMPTS + 1):
            if self._limit is not None:
                await self._limit.wait()
            identity = await self.connection.credentials.current()
            try:
                response = await self._once(request, identity, read_timeout)
            except errors.ServiceUnavailable as error:
                if attempt == ATTEMPTS or not (request.reads and _reply_lost(error)):
                    raise
                await self._sleep(backoff.next())
                continue
            if self._warn is not None:
                for header in response.headers.getall("Warning", ()):
                    self._warn(_warning(header))
            if response.status < 300:
                try:
                    yield response
                finally:
                    # After a whole answer this returns the connection to the pool; after a part it closes it.
                    response.release()
                return
            failure = await self._failure(request, response)
            if failure.code == 401 and not renewed and self.connection.credentials.refused(identity):
                renewed = True
                continue
            wait = _retry_after(request, failure)
            if wait is None or attempt == ATTEMPTS:
                raise failure
            await self._sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, request: Request, identity: Identity, read_timeout: float) -> aiohttp.ClientResponse:
        import aiohttp
        from yarl import URL

        headers: list[tuple[str, str]] = [
            ("Accept", request.accept),
            # Compressing costs both sides more than the bytes do on the networks clusters live in.
            ("Accept-Encoding", "identity"),
            ("User-Agent", self._agent),
            *self.connection.headers,
        ]
        if identity.authorization:
            headers.append(("Authorization", identity.authorization))
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        with self._foreign_errors(request):
            return await self._connections().request(
                request.method,
                URL(self.connection.server + request.path, encoded=True).with_query(request.query or None),
                data=request.body,
                headers=headers,
                allow_redirects=False,
                proxy=self.connection.proxy or None,
                ssl=self._tls_for(identity.certificate),
                server_hostname=self.connection.server_name or None,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout),
            )

    async def _failure(self, request: Request, response: aiohttp.ClientResponse) -> errors.ApiError:
        """The error a bad answer means."""
        with self._foreign_errors(request):
            body = await response.read()
        failure = errors.from_status(_status_of(response.status, body))
        header = response.headers.get("Retry-After", "")
        if failure.retry_after is None and header.isdigit():
            failure.retry_after = int(header)
        return failure

    @contextlib.contextmanager
    def _foreign_errors(self, request: Request) -> Any:
        """What the HTTP library raises, as errors of ours."""
        import aiohttp

        server = self.connection.server
        try:
            yield
        except TimeoutError as error:
            raise errors.Timeout(f"{server} did not answer {request.method} {request.path} in time") from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise errors.ServiceUnavailable(
                f"the certificate of {server} cannot be trusted: {error.certificate_error}; "
                "check certificate-authority and tls-server-name in the kubeconfig"
            ) from error
        except aiohttp.ClientConnectorError as error:
            raise errors.ServiceUnavailable(f"cannot reach {server}: {_reason(error.os_error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            what = str(error) or type(error).__name__
            raise errors.ServiceUnavailable(f"lost the connection to {server}: {what}") from error

    # --- connections -------------------------------------------------------------------------------

    def _connections(self) -> aiohttp.ClientSession:
        """The pool of connections, made inside the running event loop."""
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=10, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    def _tls_for(self, certificate: Certificate | None) -> ssl.SSLContext | bool:
        """How connections that show this certificate are made.

        The pool never hands out a connection made another way, so a renewed certificate is shown from the next request
        on, while what is under way may finish.
        """
        if not self.connection.server.startswith("https:"):
            return True
        if self._tls is None or self._tls[0] != certificate:
            self._tls = (certificate, tls_context(self.connection, certificate))
        return self._tls[1]


def user_agent(component: str) -> str:
    """``seamark/0.1.0 (linux/x86_64)``; the part before the slash names us in managedFields."""
    from importlib import metadata

    try:
        version = metadata.version("seamark")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return f"{component}/{version} ({platform.system().lower()}/{platform.machine()})"


def tls_context(connection: Connection, certificate: Certificate | None) -> ssl.SSLContext:
    """How to trust the server, and what to show it."""
    try:
        authority = connection.authority.decode() if connection.authority else None
        context = ssl.create_default_context(cadata=authority)
    except (ssl.SSLError, ValueError) as error:
        raise errors.ServiceUnavailable(
            f"the certificate-authority for {connection.server} is not a PEM certificate: {error}"
        ) from error
    # Newer Pythons refuse authorities without a key identifier, which many clusters have and everyone else accepts.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _show(context, certificate)
    return context


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load a certificate from memory; the ssl module wants a file, so there is one for a moment, for our eyes only."""
    handle, path = tempfile.mkstemp(prefix="seamark-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(certificate.certificate + b"\n" + certificate.key)
        context.load_cert_chain(path)
    except (ssl.SSLError, ValueError) as error:
        raise errors.Unauthorized(f"the client certificate or its key cannot be used: {error}") from error
    finally:
        os.unlink(path)


def _reply_lost(error: errors.ServiceUnavailable) -> bool:
    """Whether a request was on its way when the connection broke, rather than never sent."""
    import aiohttp

    return isinstance(error.__cause__, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError) or (
        isinstance(error.__cause__, aiohttp.ClientOSError)
        and not isinstance(error.__cause__, aiohttp.ClientConnectorError)
    )


def _retry_after(request: Request, failure: errors.ApiError) -> float | None:
    """In how many seconds to try again; None for not at all."""
    refused = failure.code == 429 or (failure.code == 503 and request.reads)
    return min(float(failure.retry_after), LONGEST_WAIT) if refused and failure.retry_after is not None else None


def _status_of(code: int, body: bytes) -> dict[str, Any]:
    """The ``Status`` in an answer; one made up if a proxy or something else wrote it."""
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status":
        return answer
    text = " ".join(body.decode(errors="replace").split())
    return {"code": code, "message": text[:200] or f"the server answered {code} without saying why"}


def _warning(header: str) -> str:
    """What a header such as ``299 - "v1 Endpoints is deprecated"`` says."""
    text = header.partition('"')[2].rpartition('"')[0]
    return text.replace('\\"', '"').replace("\\\\", "\\") or header


def _reason(error: OSError) -> str:
    """Why, in the system's words: asyncio has words of its own, which name the address once more."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    """Have the kernel check on a peer that says nothing."""
    transport = response.connection.transport if response.connection is not None else None
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """Whole lines, however they were cut up on the way; a line may be megabytes long."""
    begun: list[bytes] = []
    async for chunk in response.content.iter_any():
        first, *more = chunk.split(b"\n")
        begun.append(first)
        if not more:
            continue
        lines = [b"".join(begun), *more[:-1]]
        begun = [more[-1]]
        yield [line for line in lines if line]
    if any(begun):
        raise ConnectionResetError("the answer ended in the middle of a line")
