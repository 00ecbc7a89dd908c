"""The proxy of Pods and Services: a client's request goes to an HTTP server in a Pod, and the answer comes back.

The server sees the path behind ``/proxy``.  Absolute paths in its redirects and in the links of its pages are led back
through the proxy.
"""

from __future__ import annotations

import asyncio
import os
import re
from functools import partial
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httptools
import msgspec

from seamark import errors
from seamark.access.pod_streams import Connection
from seamark.api.aggregation.reaching import passed_on, target
from seamark.api.aggregation.relaying import OWN_HEADERS, Tunnel, pump
from seamark.api.http.wire.messages import Request, Response, Streaming
from seamark.api.http.wire.pieces import frame
from seamark.api.http.wire.stream import Stream
from seamark.api.streaming.sockets import Tasks
from seamark.errors import Object
from seamark.kinds.values.addresses import canonical, is_global_unicast
from seamark.kinds.values.hosts import bracketed

SMALL = 64 << 10  # bytes of an answer that is passed on as a whole
_PIECE = 64 << 10
# A head, or trailers, that go on for longer are no answer: the parser keeps them until they are complete.
LONGEST_HEAD = 1 << 20
_LONGEST_TAG = 64 << 10
_tag = re.compile(rb"<[a-zA-Z][^<>]*>")
_link = re.compile(
    rb"""(\s(?:href|src|action|background|cite|codebase|data|formaction|icon|longdesc|manifest|poster|usemap|xmlns)"""
    rb"""\s*=\s*)(?:"([^"]*)"|'([^']*)')""",
    re.IGNORECASE,
)


class Endpoint(msgspec.Struct, frozen=True):
    """Where a request goes; ``pod`` if a Pod is there."""

    address: str
    port: int
    pod: bool = True
    tls: bool = False


# --- finding the server ----------------------------------------------------------------------------


def split_name(kind: str, text: str) -> tuple[str, str, bool]:
    """Name, port and whether it speaks TLS, from ``NAME``, ``NAME:PORT`` or ``SCHEME:NAME:PORT``."""
    parts = text.split(":")
    scheme, name, port = ("", *parts, "")[:3] if len(parts) < 3 else parts[:3]
    if len(parts) > 3 or not name or scheme not in ("", "http", "https"):
        raise errors.BadRequest(f'invalid {kind} request "{text}"')
    return name, port, scheme == "https"


def pod_endpoint(pod: Object, port: str, *, tls: bool) -> Endpoint:
    """A port of a Pod, else the first that one of its containers names, else that of the protocol."""
    named = [each for c in pod["spec"].get("containers") or () for each in c.get("ports") or ()]
    if port.isdecimal():
        number = int(port)
    elif port:
        number = next((each["containerPort"] for each in named if each.get("name") == port), 0)
    else:
        number = named[0]["containerPort"] if named else 443 if tls else 80
    if not 0 < number < 65536:
        raise errors.BadRequest(f'invalid port "{port}" of pod {pod["metadata"]["name"]}')
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        raise errors.BadRequest(f"pod {pod['metadata']['name']} has no address yet")
    return Endpoint(_allowed(address), number, tls=tls)


def node_endpoint(node: Object, port: str, *, tls: bool) -> Endpoint:
    """A port of a node, at which a Pod that shares its network may listen."""
    name = node["metadata"]["name"]
    if not port.isdecimal() or not 0 < int(port) < 65536:
        raise errors.BadRequest(f'invalid port "{port}" of node {name}')
    addresses = (node.get("status") or {}).get("addresses") or ()
    address = next((each["address"] for each in addresses if each.get("type") == "InternalIP"), None)
    if address is None:
        raise errors.BadRequest(f"node {name} has no address yet")
    return Endpoint(_allowed(address), int(port), tls=tls)


def _allowed(address: str) -> str:
    """Refuse what stands for this machine or its links, as Kubernetes does: it is reached by who may write a status.

    The address is given as it is printed: the system's resolver reads 0177.0.0.1 as 127.0.0.1, and Kubernetes does not.
    """
    if not is_global_unicast(address):
        raise errors.BadRequest("address not allowed")
    return canonical(address)


def service_endpoints(service: Object, slices: list[Object], port: str, *, tls: bool) -> list[Endpoint]:
    """The ready endpoints behind a port of a Service, which is given by number or name.

    Names are left out, as by proxies: their owner chooses where they lead, to this machine itself, too.
    """
    name = service["metadata"]["name"]
    if port.isdecimal():
        ports = service["spec"].get("ports") or ()
        found = next((each for each in ports if each["port"] == int(port)), None)
        if found is None:
            raise errors.ServiceUnavailable(f'no service port {port} found for service "{name}"')
        port = found.get("name") or ""
    endpoints = [
        Endpoint(
            canonical(each["addresses"][0]), number["port"], (each.get("targetRef") or {}).get("kind") == "Pod", tls
        )
        for slice in slices
        for number in slice.get("ports") or ()
        if (number.get("name") or "") == port and number.get("port")
        for each in slice.get("endpoints") or ()
        if (each.get("conditions") or {}).get("ready") is not False and is_global_unicast(each["addresses"][0])
    ]
    if not endpoints:
        raise errors.ServiceUnavailable(f'no endpoints available for service "{name}"')
    return endpoints


def unreachable(endpoint: Endpoint, error: OSError) -> errors.ServiceUnavailable:
    reason = os.strerror(error.errno).lower() if error.errno else str(error) or type(error).__name__
    return errors.ServiceUnavailable(
        f"error trying to reach service: dial tcp {bracketed(endpoint.address)}:{endpoint.port}: connect: {reason}"
    )


# --- one request -----------------------------------------------------------------------------------


def redirect(request: Request) -> Response:
    """A page whose path does not end with a slash would have its relative links lead elsewhere."""
    query = f"?{request.query}" if request.query else ""
    return Response(301, b"", "", [("Location", f"{target(request.path, '')}/{query}")])


async def relay(tasks: Tasks, connection: Connection, request: Request, path: str) -> Response | Streaming:
    """The server's answer to the request; ``path`` is what it is asked for."""
    reader, writer = connection
    prefix = request.path[: len(request.path) - len(path)]
    upgrade = request.headers.get("upgrade", "")
    try:
        writer.write(_head(request, path, upgrade) + request.body)
        answer = await _Answer.begin(reader, headless=request.method == "HEAD")
    except BaseException:
        writer.close()
        raise
    if answer.status == 101:
        return _switched(tasks, connection, answer)
    host = request.headers.get("host", "")
    headers = [
        (name, _moved(name, value, prefix, host)) for name, value in answer.headers if name.lower() not in OWN_HEADERS
    ]
    content_type = answer.header("content-type")
    rewriting = Links(prefix, host) if content_type.startswith("text/html") and path else None
    if answer.done or answer.length <= SMALL:
        try:
            body = await answer.rest()
        finally:
            writer.close()
        shown = body if rewriting is None else rewriting.shown(body) + rewriting.rest()
        return Response(answer.status, shown, content_type, headers)

    async def pump(stream: Stream) -> None:
        try:
            while piece := await answer.piece():
                shown = piece if rewriting is None else rewriting.shown(piece)
                if shown and (not stream.write(frame(shown)) or (stream.stalled and not await stream.drain())):
                    return
            if rewriting is not None and (shown := rewriting.rest()):
                stream.write(frame(shown))
            stream.finish()
        finally:
            writer.close()

    return Streaming(tasks.starting(pump), content_type, headers, answer.status)


def _head(request: Request, path: str, upgrade: str) -> bytes:
    lines = [f"{request.method} {target(path or '/', request.query)} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in passed_on(request.headers)]
    lines.append(f"Host: {request.headers.get('host', '')}")
    lines.append(f"X-Forwarded-For: {request.peer or '127.0.0.1'}")
    lines.append(f"X-Forwarded-Uri: {target(request.path, '')}")
    if request.body or request.method in ("POST", "PUT", "PATCH"):
        lines.append(f"Content-Length: {len(request.body)}")
    lines += [f"Upgrade: {upgrade}", "Connection: Upgrade"] if upgrade else ["Connection: close"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


class _Answer:
    """An answer as it comes."""

    def __init__(self, reader: asyncio.StreamReader, *, headless: bool) -> None:
        self._reader = reader
        self._parser: Any = httptools.HttpResponseParser(self)
        self._pieces: list[bytes] = []
        self._began = False
        self._unread = 0  # bytes since the last piece of the body
        self._headless = headless
        self.done = False
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.after = b""  # what follows the head, if the protocol is another from then on

    @classmethod
    async def begin(cls, reader: asyncio.StreamReader, *, headless: bool) -> _Answer:
        """Read the head; raises ``OSError`` if there is none."""
        answer = cls(reader, headless=headless)
        while not answer._began:
            await answer._feed()
            if answer.done and not answer._began:
                raise ConnectionResetError("the server closed the connection without an answer")
        return answer

    async def _feed(self) -> None:
        data = await self._reader.read(_PIECE)
        if not data:
            self.done = True
            return
        self._unread += len(data)
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self.after = data[upgrade.args[0] :]
        except httptools.HttpParserError as error:
            raise ConnectionResetError(f"malformed HTTP response: {error}") from error
        if self._unread > LONGEST_HEAD:
            raise ConnectionResetError("the HTTP response has too many headers")

    async def piece(self) -> bytes:
        """Some of the body; none at its end."""
        while not self._pieces and not self.done:
            await self._feed()
        found, self._pieces = b"".join(self._pieces), []
        return found

    async def rest(self) -> bytes:
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name), "")

    @property
    def length(self) -> int:
        """The length that the head tells, or a large number if it tells none."""
        text = self.header("content-length")
        return int(text) if text.isdecimal() and len(text) < 20 else 1 << 62

    # --- httptools' side ---------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._began:
            self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status < 200 and self.status != 101:
            self.headers.clear()  # the answer proper is still to come
            return
        self._began = True
        self.done = self._headless or self.status in (204, 304)

    def on_body(self, body: bytes) -> None:
        self._unread = 0
        self._pieces.append(body)

    def on_message_complete(self) -> None:
        self.done = self._began


def _switched(tasks: Tasks, connection: Connection, answer: _Answer) -> Streaming:
    """From now on bytes pass both ways."""
    reader, writer = connection
    lines = ["HTTP/1.1 101 Switching Protocols", *(f"{name}: {value}" for name, value in answer.headers)]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1") + answer.after

    return Streaming(
        tasks.starting(partial(pump, reader, writer)), status=101, upgrade=lambda client: (head, Tunnel(client, writer))
    )


# --- links -----------------------------------------------------------------------------------------


def _moved(name: str, value: str, prefix: str, host: str) -> str:
    return led_back(value, prefix, host) if name.lower() == "location" else value


def led_back(link: str, prefix: str, host: str) -> str:
    """A link to an absolute path of the same server, led through the proxy; others stay as they are."""
    try:
        parts = urlsplit(link)
    except ValueError:
        return link
    if not parts.path.startswith("/") or parts.netloc not in ("", host) or parts.path.startswith(prefix):
        return link
    return urlunsplit(("", "", prefix + parts.path, parts.query, parts.fragment))


class Links:
    """Rewrites the links in a page that comes in pieces; an incomplete tag waits for its end."""

    def __init__(self, prefix: str, host: str) -> None:
        self._prefix, self._host = prefix, host
        self._held = b""

    def shown(self, piece: bytes) -> bytes:
        data = self._held + piece
        start = data.rfind(b"<")
        if start < 0 or b">" in data[start:] or len(data) - start > _LONGEST_TAG:
            start = len(data)
        self._held = data[start:]
        return _tag.sub(self._tag, data[:start])

    def rest(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def _tag(self, found: re.Match[bytes]) -> bytes:
        return _link.sub(self._attribute, found[0])

    def _attribute(self, found: re.Match[bytes]) -> bytes:
        value = found[2] if found[2] is not None else found[3]
        link = led_back(value.decode("latin-1"), self._prefix, self._host).encode("latin-1", "replace")
        quote = b'"' if found[2] is not None else b"'"
        return found[1] + quote + link + quote
