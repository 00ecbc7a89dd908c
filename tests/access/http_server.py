"""A small HTTP/1.1 server whose handler decides everything, also how to misbehave."""

import asyncio
import contextlib
import json
from urllib.parse import parse_qs, urlsplit


class Request:
    def __init__(self, method, target, headers, body):
        parts = urlsplit(target)
        self.method = method
        self.path = parts.path
        self.query = {key: values[0] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


class Exchange:
    """One request and the means to answer it."""

    def __init__(self, request, writer):
        self.request = request
        self.writer = writer
        self.cut = False

    async def answer(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(data)}", "Content-Type: application/json"]
        lines += [f"{name}: {value}" for name, value in headers]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        await self.writer.drain()

    async def fail(self, status, reason, message="no", headers=(), **details):
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason}
        await self.answer(status, {**body, "details": details, "code": status}, headers)

    async def begin(self):
        self.writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json\r\n\r\n")
        await self.writer.drain()

    async def piece(self, data):
        self.writer.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        await self.writer.drain()

    async def event(self, type_, obj):
        await self.piece(json.dumps({"type": type_, "object": obj}).encode() + b"\n")

    async def end(self):
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    def drop(self):
        """Close the connection without another byte."""
        self.cut = True
        self.writer.transport.abort()


class HttpServer:
    """Serves ``handler(exchange)`` on a free port; remembers the requests and counts the connections."""

    def __init__(self, handler, ssl=None, host="127.0.0.1"):
        self.handler = handler
        self.ssl = ssl
        self.host = host
        self.requests = []
        self.connections = 0
        self.peers = []  # the certificates clients showed
        self._tasks = set()

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._accept, self.host, 0, ssl=self.ssl)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self.ssl else 'http'}://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *exc):
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader, writer):
        self.connections += 1
        self.peers.append(writer.get_extra_info("peercert"))
        task = asyncio.current_task()
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while exchange := await self._read(reader, writer):
                    self.requests.append(exchange.request)
                    await self.handler(exchange)
                    if exchange.cut:
                        break
        finally:
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _read(self, reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        method, target, _ = first.split(" ")
        pairs = [line.split(": ", 1) for line in lines if line]
        headers = {}
        for name, value in pairs:
            headers.setdefault(name.lower(), []).append(value)
        length = int(headers.get("content-length", ["0"])[0])
        body = await reader.readexactly(length) if length else b""
        return Exchange(Request(method, target, headers, body), writer)
