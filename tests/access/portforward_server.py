"""A server that forwards ports of Pods as an API server and a kubelet do, and passes all else on to a real API server.

It speaks ``SPDY/3.1+portforward.k8s.io`` as Kubernetes' own parts do, including what is awkward for a client: bytes
that come before a stream is accepted are lost, an error ends both streams, and pings want answers.  kubectl works
with it as well (``tests/journeys/kubectl``), so that our client and this server cannot agree on a mistake.
"""

from __future__ import annotations

import asyncio
import contextlib
import json

import aiohttp
from aiohttp import web

from seamark.access.spdy import frames as spdy
from seamark.access.spdy.frames import Data, Ping, Reset, Session, SynStream

PROTOCOL = "SPDY/3.1+portforward.k8s.io"


class Pair:
    """The two streams of one request."""

    def __init__(self):
        self.streams = {}
        self.writer = None
        self.early = []


class PodTunnel:
    """One WebSocket; ``ports`` maps the ports of the Pod to addresses on this machine."""

    def __init__(self, websocket, pod, ports):
        self.websocket = websocket
        self.pod = pod
        self.ports = ports
        self.session = Session()
        self.pairs = {}
        self.pair_of = {}
        self.tasks = set()
        self.pongs = []

    async def serve(self):
        await self.websocket.send_bytes(spdy.ping(2))
        try:
            async for message in self.websocket:
                for frame in self.session.frames(message.data):
                    await self.take(frame)
        finally:
            for pair in self.pairs.values():
                if pair.writer is not None:
                    pair.writer.close()
            for task in self.tasks:
                task.cancel()

    async def take(self, frame):
        match frame:
            case SynStream(stream, headers):
                await self.open(stream, headers)
            case Data(stream, payload, fin):
                pair = self.pair_of.get(stream)
                if pair is None or pair.streams.get("data") != stream:
                    return
                if pair.writer is None:
                    pair.early.append((payload, fin))
                    return
                await self.write(pair, payload, fin)
            case Reset(stream):
                pair = self.pair_of.pop(stream, None)
                if pair is not None and pair.writer is not None:
                    pair.writer.close()
            case Ping(id):
                self.pongs.append(id)

    async def write(self, pair, payload, fin):
        with contextlib.suppress(OSError):
            if payload:
                pair.writer.write(payload)
                await pair.writer.drain()
            if fin:
                pair.writer.write_eof()

    async def open(self, stream, headers):
        port, kind = headers.get("port", ""), headers.get("streamtype", "")
        if not port.isdigit() or kind not in ("error", "data"):
            await self.websocket.send_bytes(spdy.reset(stream, 1))
            return
        pair = self.pairs.setdefault(headers["requestid"], Pair())
        pair.streams[kind] = stream
        self.pair_of[stream] = pair
        await self.websocket.send_bytes(self.session.accept(stream))
        if len(pair.streams) == 2:
            task = asyncio.ensure_future(self.forward(pair, int(port)))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    async def forward(self, pair, port):
        said = ""
        data, error = pair.streams["data"], pair.streams["error"]
        try:
            if port not in self.ports:
                raise ConnectionRefusedError(f"dial tcp4 127.0.0.1:{port}: connect: connection refused")
            reader, pair.writer = await asyncio.open_connection(*self.ports[port])
            for payload, fin in pair.early:
                await self.write(pair, payload, fin)
            while chunk := await reader.read(32 * 1024):
                await self.websocket.send_bytes(spdy.data(data, chunk))
        except OSError as problem:
            message = f"error forwarding port {port} to pod {self.pod}, uid : {problem}"
            said = json.dumps({"closeConnection": True, "message": message}) + "\n"
        if said:
            await self.websocket.send_bytes(spdy.data(error, said.encode()))
        await self.websocket.send_bytes(spdy.data(error, fin=True))
        await self.websocket.send_bytes(spdy.data(data, fin=True))
        if pair.writer is not None:
            pair.writer.close()


class PortForwardServer:
    """``pods`` says which ports of which Pods lead where: ``{("default", "web-1"): {8080: ("127.0.0.1", 1234)}}``.

    ``refusal`` is the code of an answer that refuses every tunnel, ``expired`` a token that is refused.  ``tunnels``
    are all that were opened.
    """

    def __init__(self, behind=None, *, refusal=0):
        self.pods = {}
        self.tunnels = []
        self.tokens = []
        self.refusal = refusal
        self.expired = ""
        self._behind = behind
        self._session = None

    async def __aenter__(self):
        self._session = aiohttp.ClientSession()
        app = web.Application(client_max_size=1 << 24)
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{pod}/portforward", self._tunnel)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_):
        for tunnel in self.tunnels:
            await tunnel.websocket.close()
        await self._session.close()
        await self._runner.cleanup()

    async def _tunnel(self, request):
        key = (request.match_info["namespace"], request.match_info["pod"])
        self.tokens.append(request.headers.get("Authorization", ""))
        if self.expired and self.tokens[-1] == self.expired:
            return self._status(401, "Unauthorized", reason="Unauthorized")
        if self.refusal:
            return self._status(self.refusal, "Seamark's simulated nodes run no containers")
        if key not in self.pods:
            return self._status(404, f'pods "{key[1]}" not found', reason="NotFound")
        if PROTOCOL not in request.headers.get("Sec-WebSocket-Protocol", ""):
            return self._status(400, "Upgrade request required", reason="BadRequest")
        websocket = web.WebSocketResponse(protocols=(PROTOCOL,), max_msg_size=0)
        await websocket.prepare(request)
        tunnel = PodTunnel(websocket, key[1], self.pods[key])
        self.tunnels.append(tunnel)
        await tunnel.serve()
        return websocket

    @staticmethod
    def _status(code, message, *, reason=""):
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        return web.json_response(status | {"code": code, "reason": reason}, status=code)

    async def _pass_on(self, request):
        """The API server's own answer, piece by piece, because a watch has no end."""
        if self._behind is None:
            return self._status(404, "there is no API server behind this")
        url, headers, tls = self._behind
        kept = {name: request.headers[name] for name in ("Accept", "Content-Type") if name in request.headers}
        async with self._session.request(
            request.method, url + request.path_qs, data=await request.read(), headers=headers | kept, ssl=tls
        ) as answer:
            # With its parameters, by which kubectl recognizes the form of discovery documents.
            response = web.StreamResponse(
                status=answer.status, headers={"Content-Type": answer.headers.get("Content-Type", "")}
            )
            await response.prepare(request)
            with contextlib.suppress(ConnectionError):
                async for chunk in answer.content.iter_any():
                    await response.write(chunk)
            return response
