"""HTTP requests to an API server: connections, identity, retries, and the translation of failures.

These requests are sent again:

- after a 401, once, if the credentials can be renewed
- after a 429, or a 503 to a read, if the server says when to come back, up to ``ATTEMPTS`` times in all
- a read, if its answer was lost.  A create or patch is never sent twice, because the server may have executed it.  (The
  HTTP library resends an update or delete if the connection it reused turns out to be closed; executing these twice is
  harmless, and at worst reported as a conflict or as not found.)
"""

from __future__ import annotations

import contextlib
import os
import platform
import random as _random
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from seamark import errors
from seamark.access.backoff import Backoff, Random
from seamark.access.credentials import Certificate, Identity
from seamark.access.kubeconfig import Connection
from seamark.access.ratelimit import RateLimit
from seamark.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

ATTEMPTS = 6
LONGEST_WAIT = 30.0

# Timeouts in seconds: to connect, and between two pieces of an answer.  A watch may be silent for its whole lifetime.
CONNECT_TIMEOUT = 10.0
READ_TIMEOUT = 60.0

# Seconds between two pings on a WebSocket; without an answer it counts as lost.
HEARTBEAT = 30.0

# TCP keepalive detects a peer that vanished after 30 + 3 * 10 seconds, also during a silent watch.
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


class Sender(Protocol):
    """What sends requests to one server, such as a :class:`Transport`."""

    async def send(self, request: Request) -> bytes:
        """Send a request and return the body of the answer; raises an ``ApiError`` if it is not a success."""
        ...

    def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        """The lines of a long answer, in lists of lines that arrived together, of which the first is empty."""
        ...


class Transport:
    """Sends requests to one server.  Connections are opened when first needed, inside the event loop."""

    def __init__(
        self,
        connection: Connection,
        *,
        agent: str = "seamark",
        limit: RateLimit | None = None,
        clock: Clock = SYSTEM_CLOCK,
        random: Random = _random.random,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        """``warn`` is called with the text of each Warning header in an answer."""
        self.connection = connection
        self._warn = warn
        self._agent = user_agent(agent)
        self._limit = limit
        self._clock = clock
        self._random = random
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Certificate | None, ssl.SSLContext] | None = None

    async def close(self) -> None:
        """Close every connection; open watches end with an error."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def send(self, request: Request) -> bytes:
        """Send a request and return the body of the answer; raises an ``ApiError`` if it is not a success."""
        async with self._answer(request, read_timeout=READ_TIMEOUT) as response:
            with self._foreign_errors(request):
                return await response.read()

    async def ask(self, request: Request) -> tuple[int, bytes]:
        """Send a request once; the code and the body of the answer, also if it is no success."""
        response = await self._once(request, await self.connection.credentials.current(), READ_TIMEOUT)
        try:
            with self._foreign_errors(request):
                return response.status, await response.read()
        finally:
            response.release()

    async def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        """The lines of a long answer, in lists of lines that arrived together.

        The first list is empty: it says that the server has accepted the request.  After ``lifetime`` silent seconds
        the stream fails, because the server should have ended it by then and must be gone.
        """
        async with self._answer(request, read_timeout=lifetime) as response:
            _keep_alive(response)
            yield []
            with self._foreign_errors(request):
                async for lines in lines_of(response):
                    yield lines

    async def websocket(self, request: Request, protocol: str) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket with this subprotocol; raises an ``ApiError`` if the server refuses."""
        import aiohttp

        identity = await self.connection.credentials.current()
        for renewed in (False, True):
            try:
                with self._foreign_errors(request, but=aiohttp.WSServerHandshakeError):
                    return await self._connections().ws_connect(
                        self._url(request),
                        protocols=(protocol,),
                        headers=self._headers(identity),
                        proxy=self.connection.proxy or None,
                        ssl=self._tls_for(identity.certificate),
                        server_hostname=self.connection.server_name or None,
                        heartbeat=HEARTBEAT,
                        max_msg_size=0,
                    )
            except aiohttp.WSServerHandshakeError as error:
                if error.status != 401 or renewed or not self.connection.credentials.refused(identity):
                    raise await self._refused_upgrade(request, error.status) from None
            identity = await self.connection.credentials.current()
        raise AssertionError("the second attempt returns or raises")

    async def _refused_upgrade(self, request: Request, code: int) -> errors.ApiError:
        """Why a WebSocket was refused: the library drops the answer's body, so the same is asked without upgrading."""
        status, body = await self.ask(request)
        if status == code:
            return errors.from_status(status_of(status, body))
        return errors.from_status(status_of(code, b""))

    # --- one answer --------------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _answer(self, request: Request, *, read_timeout: float) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response with a success status, after as many attempts as this request allows."""
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
                await self._clock.sleep(backoff.next())
                continue
            if self._warn is not None:
                for header in response.headers.getall("Warning", ()):
                    self._warn(_warning(header))
            if response.status < 300:
                try:
                    yield response
                finally:
                    # Returns the connection to the pool if the answer was read completely, else closes it.
                    response.release()
                return
            failure = await self._failure(request, response)
            if failure.code == 401 and not renewed and self.connection.credentials.refused(identity):
                renewed = True
                continue
            wait = _retry_after(request, failure)
            if wait is None or attempt == ATTEMPTS:
                raise failure
            await self._clock.sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    async def _once(self, request: Request, identity: Identity, read_timeout: float) -> aiohttp.ClientResponse:
        import aiohttp

        headers = [
            ("Accept", request.accept),
            # In a cluster's network, compression costs both sides more time than it saves.
            ("Accept-Encoding", "identity"),
            *self._headers(identity),
        ]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        with self._foreign_errors(request):
            return await self._connections().request(
                request.method,
                self._url(request),
                data=request.body,
                headers=headers,
                allow_redirects=False,
                proxy=self.connection.proxy or None,
                ssl=self._tls_for(identity.certificate),
                server_hostname=self.connection.server_name or None,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout),
            )

    def _url(self, request: Request) -> URL:
        from yarl import URL

        return URL(self.connection.server + request.path, encoded=True).with_query(request.query or None)

    def _headers(self, identity: Identity) -> list[tuple[str, str]]:
        """The headers that say who asks."""
        headers = [("User-Agent", self._agent), *self.connection.headers]
        return [*headers, ("Authorization", identity.authorization)] if identity.authorization else headers

    async def _failure(self, request: Request, response: aiohttp.ClientResponse) -> errors.ApiError:
        """The error for an answer that is not a success."""
        with self._foreign_errors(request):
            body = await response.read()
        failure = errors.from_status(status_of(response.status, body))
        header = response.headers.get("Retry-After", "")
        if failure.retry_after is None and header.isdigit():
            failure.retry_after = int(header)
        return failure

    @contextlib.contextmanager
    def _foreign_errors(self, request: Request, *, but: type[Exception] | tuple[()] = ()) -> Any:
        """Translate the HTTP library's exceptions, ``but`` this one, into errors of :mod:`seamark.errors`."""
        import aiohttp

        server = self.connection.server
        try:
            yield
        except but:
            raise
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
        """The pool of connections, created on first use because it needs a running event loop."""
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=10, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session

    def _tls_for(self, certificate: Certificate | None) -> ssl.SSLContext | bool:
        """The TLS context for connections with this client certificate.

        The pool reuses a connection only for requests with the same context, so a renewed certificate is used from the
        next request on, while requests under way can finish.
        """
        if not self.connection.server.startswith("https:"):
            return True
        if self._tls is None or self._tls[0] != certificate:
            self._tls = (certificate, tls_context(self.connection, certificate))
        return self._tls[1]


def user_agent(component: str) -> str:
    """``seamark/0.1.0 (linux/x86_64)``; the server uses the part before the slash as manager in managedFields."""
    from importlib import metadata

    try:
        version = metadata.version("seamark")
    except metadata.PackageNotFoundError:
        version = "unknown"
    return f"{component}/{version} ({platform.system().lower()}/{platform.machine()})"


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
    if connection.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate is not None:
        _show(context, certificate)
    return context


def _show(context: ssl.SSLContext, certificate: Certificate) -> None:
    """Load a certificate from memory.  The ssl module needs a file, so one exists briefly, readable by us only."""
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
    """Whether the connection broke after the request was sent, rather than before."""
    import aiohttp

    return isinstance(error.__cause__, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError) or (
        isinstance(error.__cause__, aiohttp.ClientOSError)
        and not isinstance(error.__cause__, aiohttp.ClientConnectorError)
    )


def _retry_after(request: Request, failure: errors.ApiError) -> float | None:
    """In how many seconds to send the request again; None: do not."""
    refused = failure.code == 429 or (failure.code == 503 and request.reads)
    return min(float(failure.retry_after), LONGEST_WAIT) if refused and failure.retry_after is not None else None


def status_of(code: int, body: bytes) -> dict[str, Any]:
    """The ``Status`` in an answer; one is made up if the answer has none, for example because a proxy wrote it."""
    try:
        answer = msgspec.json.decode(body)
    except msgspec.DecodeError:
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


def _reason(error: OSError) -> str:
    """The system's text for an error: asyncio's own text would repeat the address."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    """Let the kernel detect a silent peer that is gone."""
    transport = response.connection.transport if response.connection is not None else None
    sock = transport.get_extra_info("socket") if transport is not None else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _KEEPALIVE.items():
        if hasattr(socket, option):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def lines_of(response: aiohttp.ClientResponse) -> AsyncIterator[list[bytes]]:
    """The non-empty lines of an answer, in lists of lines that arrived together; a line may be megabytes long."""
    begun: list[bytes] = []
    async for chunk in response.content.iter_any():
        first, *more = chunk.split(b"\n")
        begun.append(first)
        if not more:
            continue
        lines = [b"".join(begun), *more[:-1]]
        begun = [more[-1]]
        if whole := [line for line in lines if line]:
            yield whole
    if any(begun):
        raise ConnectionResetError("the answer ended in the middle of a line")
