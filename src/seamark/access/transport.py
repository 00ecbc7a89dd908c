"""HTTP requests to an API server through aiohttp: for what lives in an event loop, watches and WebSockets included."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from seamark import errors
from seamark.access.credentials import Identity
from seamark.access.sending import CONNECT_TIMEOUT, Attempts, Request, status_of

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

# Seconds between two pings on a WebSocket; without an answer it counts as lost.
HEARTBEAT = 30.0

# TCP keepalive detects a peer that vanished after 30 + 3 * 10 seconds, also during a silent watch.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class Transport(Attempts):
    """Sends requests to one server.  Connections are opened when first needed, inside the event loop."""

    _session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

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
                        headers=self._identifying(identity),
                        proxy=self.connection.proxy or None,
                        ssl=self._tls_for(identity.certificate) or True,
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

    # --- one attempt -------------------------------------------------------------------------------

    async def _once(self, request: Request, identity: Identity, read_timeout: float) -> aiohttp.ClientResponse:
        import aiohttp

        with self._foreign_errors(request):
            return await self._connections().request(
                request.method,
                self._url(request),
                data=request.body,
                headers=self._headers(request, identity),
                allow_redirects=False,
                proxy=self.connection.proxy or None,
                ssl=self._tls_for(identity.certificate) or True,
                server_hostname=self.connection.server_name or None,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_TIMEOUT, sock_read=read_timeout),
            )

    async def _read(self, request: Request, answer: aiohttp.ClientResponse) -> bytes:
        with self._foreign_errors(request):
            return await answer.read()

    def _url(self, request: Request) -> URL:
        from yarl import URL

        return URL(self.connection.server + request.path, encoded=True).with_query(request.query or None)

    @contextlib.contextmanager
    def _foreign_errors(self, request: Request, *, but: type[Exception] | tuple[()] = ()) -> Any:
        """Translate the HTTP library's exceptions, ``but`` this one, into errors of :mod:`seamark.errors`."""
        import aiohttp

        try:
            yield
        except but:
            raise
        except TimeoutError as error:
            raise self._too_late(request) from error
        except aiohttp.ClientConnectorCertificateError as error:
            raise self._cannot_trust(error.certificate_error) from error
        except aiohttp.ClientConnectorError as error:
            raise self._cannot_reach(error.os_error) from error
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientPayloadError, aiohttp.ClientOSError) as error:
            raise self._lost(error) from error
        except (aiohttp.ClientError, OSError) as error:
            raise errors.ServiceUnavailable(self._lost(error).message) from error

    def _connections(self) -> aiohttp.ClientSession:
        """The pool of connections, created on first use because it needs a running event loop."""
        import aiohttp

        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=10, keepalive_timeout=30)
            self._session = aiohttp.ClientSession(connector=connector)
        return self._session


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
