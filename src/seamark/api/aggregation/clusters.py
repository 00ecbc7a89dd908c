"""The kinds of aggregated servers for components of this process, with the rights and the name of each."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.sending import READ_TIMEOUT, Request, status_of
from seamark.access.transport import lines_of
from seamark.api import authorization
from seamark.api.aggregation.backends import Backend
from seamark.api.aggregation.reaching import Servers, identity
from seamark.api.authorization import Authorizer, User
from seamark.api.http.url import asked, parse_query
from seamark.api.outgoing.calling import CallFailed, whole
from seamark.kinds.resource import Resource

if TYPE_CHECKING:
    import aiohttp

    from seamark.api.aggregation.following import Aggregation


class Elsewhere:
    """Finds the cluster in which one user has the kinds that other servers serve."""

    def __init__(self, aggregation: Aggregation, authorizer: Authorizer, user: User) -> None:
        self._aggregation = aggregation
        self._authorizer = authorizer
        self._user = user
        self._cluster: Cluster | None = None

    def __call__(self, resource: Resource) -> Cluster | None:
        """None if this server serves the kind itself, or no server does."""
        if (resource.group, resource.version) not in self._aggregation.backends:
            return None
        if self._cluster is None:
            from seamark.access.remote import HttpCluster

            self._cluster = HttpCluster(Relay(self._aggregation, self._authorizer, self._user), "an aggregated server")
        return self._cluster


class Relay:
    """Sends the requests of one user to the aggregated server that answers for their path."""

    def __init__(self, aggregation: Aggregation, authorizer: Authorizer, user: User) -> None:
        self._aggregation = aggregation
        self._authorizer = authorizer
        self._user = user

    async def send(self, request: Request) -> bytes:
        try:
            async with asyncio.timeout(READ_TIMEOUT), self._answer(request) as answer:
                return await whole(answer)
        except TimeoutError:
            raise errors.Timeout(f"the server of {request.path} did not answer in time") from None

    async def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        try:
            async with asyncio.timeout(lifetime), self._answer(request) as answer:
                yield []
                async for lines in lines_of(answer):
                    yield lines
        except TimeoutError:
            raise errors.Timeout(f"the server of {request.path} ended no watch in time") from None

    @contextlib.asynccontextmanager
    async def _answer(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is a success."""
        import aiohttp

        query = urlencode(request.query)
        backend = self._backend(request, query)
        headers = [*identity(self._user), ("Accept", request.accept)]
        if request.body is not None:
            headers.append(("Content-Type", request.content_type))
        servers: Servers = self._aggregation.servers
        try:
            async with servers.answer(
                servers.client(backend), request.method, request.path, query, headers, request.body or b""
            ) as answer:
                if answer.status >= 300:
                    raise errors.from_status(status_of(answer.status, await whole(answer)))
                yield answer
        except (CallFailed, aiohttp.ClientError, OSError) as error:
            raise errors.ServiceUnavailable(f"error trying to reach service: {error}") from error

    def _backend(self, request: Request, query: str) -> Backend:
        """The server that is asked; raises if it is gone, is not available, or may not be asked by the user."""
        if not self._authorizer.trusts(self._user):
            what = asked(request.method, request.path, parse_query(query))
            authorization.check(self._authorizer, self._user, what)
        backend = self._aggregation.backend_of(request.path)
        if backend is None:
            raise errors.NotFound("the server could not find the requested resource", details={})
        if not backend.available:
            raise errors.ServiceUnavailable("service unavailable")
        return backend
