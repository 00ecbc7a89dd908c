"""Sends requests to what a :class:`~seamark.api.outgoing.targets.Client` names, over pooled TLS connections.

Nothing is set up before the first request: a server without webhooks does not even import the HTTP library.  The pool
has no limit, so a server that hangs keeps only those waiting who asked it.  Pods that run have a network of their own:
a connection to an address there is made with a socket of that network.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from seamark.api.outgoing.targets import Address, Client, Unresolvable, addresses
from seamark.errors import ApiError, Object
from seamark.haste import LARGE_WITH_FEW_ENTRIES, Patience
from seamark.kinds.admission import Others
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, SERVICES
from seamark.kinds.wellknown import SERVICE_NAME_LABEL, SIMULATED_ANNOTATION

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

    from seamark.access.pod_streams import PodStreams

T = TypeVar("T")

AGENT = "kube-apiserver-admission"
KEPT_CONTEXTS = 256
LONGEST_ANSWER = 64 * 1024 * 1024
KEEPALIVE_SECONDS = 30.0

Headers = Iterable[tuple[str, str]]


class CallFailed(Exception):
    """No answer came; the text says why in the words of Kubernetes' HTTP library."""


class Answer(msgspec.Struct, frozen=True):
    """A complete answer, whatever its status."""

    status: int
    content_type: str
    body: bytes


class Outgoing:
    """The connections of one API server to those it calls.

    ``others`` is where Services are looked up; ``pods`` are those that run in this process, None if none do.
    """

    def __init__(self, others: Others, pods: Callable[[], PodStreams | None] = lambda: None) -> None:
        self._others = others
        self._pods = pods
        self._opened: dict[
            Address, list[socket.socket]
        ] = {}  # in the network of the Pods, each for its next connection
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._contexts: dict[tuple[str, bytes, bool, object], ssl.SSLContext] = {}
        self._turn = count()
        self._patience = Patience()

    async def close(self) -> None:
        """Close every connection; requests under way fail, and so do further ones."""
        self._closed = True
        for each in self._opened.values():
            for unused in each:
                unused.close()
        self._opened = {}
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self,
        client: Client,
        body: bytes,
        *,
        query: str = "",
        seconds: float,
        accept: str,
        longest: int | None = None,
    ) -> Answer:
        """Post a document and read the answer within so many seconds; raises :class:`CallFailed` if there is none."""
        headers = (("Content-Type", "application/json"), ("Accept", accept), ("User-Agent", AGENT))
        self._connections()  # imports the HTTP library, which is not to be taken from the first one's time
        try:
            async with asyncio.timeout(seconds):
                async with self.open(client, "POST", query=query, headers=headers, body=body) as response:
                    with _foreign_errors(client):
                        return Answer(response.status, response.content_type, await whole(response, longest))
        except TimeoutError:
            raise CallFailed("context deadline exceeded") from None

    async def understood(self, answer: Answer, read: Callable[[bytes], T]) -> T:
        """What an answer says; a long one is read in a thread."""
        if len(answer.body) < LARGE_WITH_FEW_ENTRIES:
            return read(answer.body)
        return await self._patience.hear(read, answer.body)

    @contextlib.asynccontextmanager
    async def open(
        self, client: Client, method: str, *, path: str = "", query: str = "", headers: Headers = (), body: bytes = b""
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer whose body is read as it comes.  ``path`` is added to the client's own; nothing limits the time."""
        import aiohttp

        url, host, address = self._url(client, path, query)
        session = self._connections()
        response: aiohttp.ClientResponse | None = None
        for attempt in range(2):
            try:
                with _foreign_errors(client, but=(aiohttp.ServerDisconnectedError, ConnectionResetError)):
                    response = await session.request(
                        method,
                        url,
                        data=body or None,
                        headers=[("Host", host), *headers],
                        allow_redirects=False,
                        ssl=self.tls(client),
                        server_hostname=client.server_name,
                        trace_request_ctx=address,
                    )
                break
            except (aiohttp.ServerDisconnectedError, ConnectionResetError) as error:
                # The server may have closed a connection that was idle just when it was used again.
                if attempt:
                    raise CallFailed("EOF") from error
        assert response is not None, "the second attempt returns or raises"
        try:
            yield response
        finally:
            # Returns the connection to the pool if the answer was read completely, else closes it.
            response.release()

    def resolve(self, client: Client) -> Address | None:
        """The address to connect to, of several the next one; None if the URL says it."""
        reference = client.service
        if reference is None:
            return None
        label = f'"{SERVICE_NAME_LABEL}":"{reference.name}"'.encode()
        slices = self._others.all(ENDPOINT_SLICES, reference.namespace, containing=label)
        service = self._others.get(SERVICES, reference.name, reference.namespace)
        try:
            found = addresses(reference, service, slices, simulated=self._is_simulated)
        except Unresolvable as error:
            raise CallFailed(str(error)) from None
        return found[next(self._turn) % len(found)]

    def _is_simulated(self, endpoint: Object) -> bool:
        """Whether the endpoint is a Pod of a simulated node that runs no processes."""
        pod = endpoint.get("targetRef") or {}
        if pod.get("kind") != "Pod" or not (node_name := endpoint.get("nodeName")):
            return False
        node = self._others.get(NODES, node_name)
        if node is None or SIMULATED_ANNOTATION not in (node["metadata"].get("annotations") or {}):
            return False
        pods = self._pods()
        return pods is None or not pods.runs(pod.get("uid", ""))

    def tls(self, client: Client) -> ssl.SSLContext:
        """The TLS settings for a client.  Each server name has its own, by which the pool keeps connections apart."""
        from seamark.access.credentials import ANONYMOUS, Fixed
        from seamark.access.kubeconfig import Connection
        from seamark.access.sending import tls_context

        key = (client.server_name, client.authority, client.insecure, client.certificate)
        context = self._contexts.get(key)
        if context is None:
            while len(self._contexts) >= KEPT_CONTEXTS:
                self._contexts.pop(next(iter(self._contexts)))
            connection = Connection(
                client.address, Fixed(ANONYMOUS), authority=client.authority or None, insecure=client.insecure
            )
            try:
                context = self._contexts[key] = tls_context(connection, client.certificate)
            except ApiError as error:
                raise CallFailed("unable to load root certificates: unable to parse bytes as PEM block") from error
        return context

    async def connect(self, client: Client) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection of its own, for another protocol than HTTP; raises ``OSError``."""
        address = self.resolve(client) or ("", 0)
        tls, name = self.tls(client), client.server_name
        opened = await self._socket_to(address)
        if opened is None:
            return await asyncio.open_connection(*address, ssl=tls, server_hostname=name)
        try:
            await asyncio.get_running_loop().sock_connect(opened, address)
            return await asyncio.open_connection(sock=opened, ssl=tls, server_hostname=name)
        except BaseException:
            opened.close()
            raise

    async def _socket_to(self, address: Address) -> socket.socket | None:
        """A socket of the Pods' network, if the address belongs to it."""
        pods = self._pods()
        return None if pods is None else await pods.socket(address[0])

    def _url(self, client: Client, path: str, query: str) -> tuple[URL, str, Address | None]:
        """The URL to connect to, the host that the request names, and the address of an endpoint."""
        from yarl import URL

        where = client.address.rstrip("/") + path if path else client.address
        shown = URL(f"{where}?{query}" if query else where, encoded=True)
        address = self.resolve(client)
        if address is None:
            return shown, shown.raw_authority, None
        return shown.with_host(address[0]).with_port(address[1]), shown.raw_authority, address

    def _connections(self) -> aiohttp.ClientSession:
        """The pool of connections, created on first use because it needs a running event loop; raises CallFailed."""
        import aiohttp

        if self._closed:
            raise CallFailed("the server is stopping")
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0, ttl_dns_cache=10, keepalive_timeout=KEEPALIVE_SECONDS, socket_factory=self._socket_for
            )
            tracing = aiohttp.TraceConfig()
            tracing.on_connection_create_start.append(self._before_connecting)
            # The caller says how long it may take; an answer may be streamed for hours.
            unlimited = aiohttp.ClientTimeout(total=None)
            self._session = aiohttp.ClientSession(
                connector=connector,
                timeout=unlimited,
                cookie_jar=aiohttp.DummyCookieJar(),
                trace_configs=[tracing],
            )
        return self._session

    async def _before_connecting(self, session: object, context: SimpleNamespace, parameters: object) -> None:
        """Open the socket ahead, since the connector wants it at once."""
        address: Address | None = context.trace_request_ctx
        opened = None if address is None else await self._socket_to(address)
        if address is not None and opened is not None:
            self._opened.setdefault(address, []).append(opened)

    def _socket_for(self, found: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, where = found
        opened = self._opened.get(where[:2])
        if not opened:
            return socket.socket(family, kind, protocol)
        taken = opened.pop()
        if not opened:
            del self._opened[where[:2]]
        return taken


async def whole(response: aiohttp.ClientResponse, longest: int | None = None) -> bytes:
    """The whole body; raises :class:`CallFailed` if it has no end, or is longer than that."""
    longest = LONGEST_ANSWER if longest is None else longest
    parts: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_any():
        size += len(chunk)
        if size > longest:
            raise CallFailed(f"the answer is longer than {longest} bytes")
        parts.append(chunk)
    return b"".join(parts)


@contextlib.contextmanager
def _foreign_errors(client: Client, *, but: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Translate the HTTP library's exceptions, ``but`` these, into :class:`CallFailed`."""
    import aiohttp

    try:
        yield
    except but:
        raise
    except aiohttp.ClientConnectorCertificateError as error:
        raise CallFailed(f"tls: failed to verify certificate: x509: {_distrust(client, error)}") from error
    except aiohttp.ClientConnectorDNSError as error:
        raise CallFailed(f"dial tcp: lookup {error.host}: no such host") from error
    except aiohttp.ClientConnectorSSLError as error:
        raise CallFailed(f"remote error: tls: {error.os_error.strerror or error.os_error}") from error
    except aiohttp.ClientConnectorError as error:
        raise CallFailed(f"dial tcp {error.host}:{error.port}: connect: {_reason(error.os_error)}") from error
    except (aiohttp.ClientError, OSError) as error:
        if isinstance(error, TimeoutError):
            raise
        raise CallFailed(str(error) or type(error).__name__) from error


def _distrust(client: Client, error: aiohttp.ClientConnectorCertificateError) -> str:
    cause = error.certificate_error
    if isinstance(cause, ssl.SSLCertVerificationError):
        if "mismatch" in cause.verify_message:
            return f"certificate is not valid for {client.server_name}"
        if "expired" in cause.verify_message:
            return "certificate has expired or is not yet valid"
    return "certificate signed by unknown authority"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno).lower() if error.errno and error.errno > 0 else error.strerror or str(error)
