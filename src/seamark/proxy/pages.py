"""A small HTTP server for pages that are made when they are asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from socket import socket
from typing import Any

import msgspec

log = logging.getLogger(__name__)

_LONGEST_REQUEST = 16 * 1024
_PATIENCE = 10.0
Bind = Callable[[str, int], Awaitable[socket]]  # an address and a port as a socket that is bound to them


class Page(msgspec.Struct, frozen=True):
    code: int
    body: bytes
    type: str = "application/json"
    headers: Mapping[str, str] = {}


NOT_FOUND = Page(404, b"404 page not found\n", "text/plain; charset=utf-8")


class PageServer:
    """Answers every request, of whatever method, with the page that ``page`` makes for its path."""

    def __init__(
        self,
        page: Callable[[str], Page],
        *,
        admits: Callable[[str], bool] = lambda address: True,
        bind: Bind | None = None,
    ) -> None:
        """``admits`` says whether an address of ours is to be served; ``bind`` opens sockets of another network."""
        self._page = page
        self._admits = admits
        self._bind = bind
        self._servers: list[asyncio.Server] = []

    async def start(self, hosts: list[str], port: int) -> int:
        """Listen; raises ``OSError`` if that fails.  Returns the port."""
        where: list[dict[str, Any]] = [{"host": hosts, "port": port}]
        if self._bind is not None:
            where = [{"sock": await self._bind(host, port)} for host in hosts]
        self._servers = [await asyncio.start_server(self._serve, limit=_LONGEST_REQUEST, **each) for each in where]
        found: int = self._servers[0].sockets[0].getsockname()[1]
        return found

    def close(self) -> None:
        for server in self._servers:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if not self._admits(writer.get_extra_info("sockname")[0]):
                writer.transport.abort()
                return
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(), "", ""]
                writer.write(_answer(self._page(path.partition("?")[0]), method))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as problem:
            log.debug("a request came to nothing: %s", problem)
        finally:
            writer.close()


def _answer(page: Page, method: str) -> bytes:
    headers = {
        "Content-Type": page.type,
        "X-Content-Type-Options": "nosniff",
        **page.headers,
        "Content-Length": str(len(page.body)),
        "Connection": "close",
    }
    head = [f"HTTP/1.1 {page.code} {HTTPStatus(page.code).phrase}", *(f"{k}: {v}" for k, v in headers.items()), "", ""]
    return "\r\n".join(head).encode() + (b"" if method == "HEAD" else page.body)
