"""A small HTTP server with ``/health``, ``/ready`` and ``/metrics``, for probes and for Prometheus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

log = logging.getLogger(__name__)

Page = tuple[int, str]  # status code and text
_REASONS = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
_LONGEST_REQUEST = 16 * 1024
_PATIENCE = 10.0


class StatusServer:
    """``/health`` always answers 200 while the process runs; ``/ready`` answers what ``ready`` returns."""

    def __init__(self, *, ready: Callable[[], Awaitable[Page]], metrics: Callable[[], Awaitable[str]]) -> None:
        self._ready = ready
        self._metrics = metrics
        self._server: asyncio.Server | None = None
        self.address: tuple[str, int] = ("", 0)

    async def start(self, hosts: str | Sequence[str], port: int) -> None:
        """Listen on one address or several; raises ``OSError`` if that fails."""
        self._server = await asyncio.start_server(self._serve, hosts, port, limit=_LONGEST_REQUEST)
        self.address = self._server.sockets[0].getsockname()[:2]

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                head = await reader.readuntil(b"\r\n\r\n")
                method, path, *_ = [*head.split(b"\r\n", 1)[0].decode("latin-1").split(), "", ""]
                code, text = await self._page(method, path.partition("?")[0])
                body = text.encode()
                writer.write(
                    f"HTTP/1.1 {code} {_REASONS[code]}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                    f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                    + (b"" if method == "HEAD" else body)
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as problem:
            log.debug("a status request came to nothing: %s", problem)
        finally:
            writer.close()

    async def _page(self, method: str, path: str) -> Page:
        if method not in ("GET", "HEAD"):
            return 405, "only GET and HEAD\n"
        match path:
            case "/health" | "/healthz" | "/livez":
                return 200, "OK\n"
            case "/ready" | "/readyz":
                return await self._ready()
            case "/metrics":
                return 200, await self._metrics()
        return 404, "there are /health, /ready and /metrics\n"
