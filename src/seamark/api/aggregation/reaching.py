"""Requests to aggregated servers: where the Service leads, and who asks."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import quote

from msgspec.structs import replace

from seamark.api.aggregation.backends import Backend
from seamark.api.authorization import User
from seamark.api.outgoing.calling import CallFailed, Outgoing
from seamark.errors import Object
from seamark.kinds.admission import Others
from seamark.kinds.resource import ENDPOINT_SLICES, SERVICES
from seamark.kinds.values.hosts import bracketed
from seamark.kinds.wellknown import SERVICE_NAME_LABEL

if TYPE_CHECKING:
    import aiohttp

    from seamark.api.aggregation.front_proxy import FrontProxy
    from seamark.api.outgoing.targets import Client

CONNECT_SECONDS = 10.0
# What stays as it is in a path; everything else is written as %XX.
_PLAIN = "/:@!$&'()*+,;=~-._"
_control = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Servers:
    """Reaches the aggregated servers of one cluster; ``others`` is where Services are looked up."""

    def __init__(self, outgoing: Outgoing, others: Others, front_proxy: FrontProxy | None) -> None:
        self._outgoing = outgoing
        self._others = others
        self._front_proxy = front_proxy

    def service(self, backend: Backend) -> tuple[Object | None, list[Object]]:
        """The Service of a server and its EndpointSlices, as they are now."""
        where = backend.client.service
        assert where is not None, "a backend has a Service"
        label = f'"{SERVICE_NAME_LABEL}":"{where.name}"'.encode()
        slices = list(self._others.all(ENDPOINT_SLICES, where.namespace, containing=label))
        return self._others.get(SERVICES, where.name, where.namespace), slices

    def client(self, backend: Backend, *, checked: bool = True) -> Client:
        """The server as it is called with our own certificate; ``checked`` if its certificate has to be right."""
        certificate = None if self._front_proxy is None else self._front_proxy.certificate()
        insecure = backend.client.insecure or not checked
        authority = b"" if insecure else backend.client.authority
        return replace(backend.client, certificate=certificate, insecure=insecure, authority=authority)

    def url(self, backend: Backend) -> str:
        """Where a request would go, for sentences about it."""
        host, port = self._outgoing.resolve(backend.client) or ("", 0)
        return f"https://{bracketed(host)}:{port}"

    @contextlib.asynccontextmanager
    async def answer(
        self,
        client: Client,
        method: str,
        path: str,
        query: str = "",
        headers: Iterable[tuple[str, str]] = (),
        body: bytes = b"",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer to one request, its body yet to be read; raises :class:`CallFailed`."""
        sent = quote(path, safe=_PLAIN)
        async with self._outgoing.open(client, method, path=sent, query=query, headers=headers, body=body) as answer:
            yield answer

    async def tunnel(self, client: Client, head: bytes) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """Send the head of a request that asks for another protocol; the head of the answer and the connection."""
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                reader, writer = await self._outgoing.connect(client)
            try:
                writer.write(head)
                return await reader.readuntil(b"\r\n\r\n"), reader, writer
            except BaseException:
                writer.close()
                raise
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            raise CallFailed(str(error) or type(error).__name__) from error


def target(path: str, query: str) -> str:
    """A decoded path and a query as they are sent."""
    return quote(path, safe=_PLAIN) + (f"?{query}" if query else "")


def identity(user: User) -> list[tuple[str, str]]:
    """The headers that tell an aggregated server who asks; raises :class:`CallFailed` for names that fit in none."""
    headers = [("X-Remote-User", user.name)]
    if user.uid:
        headers.append(("X-Remote-Uid", user.uid))
    headers += [("X-Remote-Group", group) for group in user.groups]
    for name, values in user.extra:
        header = f"X-Remote-Extra-{quote(name, safe='!#$&*+-.^_`|~')}"
        headers += [(header, value) for value in values]
    for name, value in headers:
        if _control.search(value):  # a certificate may hold any name, and a line break would begin another header
            raise CallFailed(f'net/http: invalid header field value for "{name}"')
    return headers


# Of one connection only, or about the user, whom :func:`identity` tells.  The answer is passed on uncompressed.
_DROPPED = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "accept-encoding"),
        *("transfer-encoding", "upgrade", "host", "content-length", "authorization", "expect"),
    }
)


def passed_on(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers of a client's request that the other server gets too."""
    return [
        (name, value)
        for name, value in headers.items()
        if name not in _DROPPED and not name.startswith(("x-remote-", "impersonate-"))
    ]
