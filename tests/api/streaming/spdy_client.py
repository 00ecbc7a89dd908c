"""A client of SPDY that does what a test says, also what no client would do."""

from __future__ import annotations

import asyncio
import contextlib
import re

from seamark.access.spdy import frames
from seamark.access.spdy.frames import Data, Reset, Session, SynReply

V4 = "v4.channel.k8s.io"


class SpdyClient:
    """One connection.  ``got`` are the bytes of each stream, ``ended`` the streams that the server has ended."""

    def __init__(self, reader, writer, head):
        self.reader, self.writer = reader, writer
        lines = head.decode().split("\r\n")
        self.status = int(lines[0].split()[1])
        self.headers = [tuple(line.split(": ", 1)) for line in lines[1:] if line]
        self.session = Session()
        self.listener = None
        self.next = 1
        self.got, self.accepted, self.ended, self.refused, self.pongs = {}, set(), set(), set(), []

    def header(self, name):
        return [value for key, value in self.headers if key == name]

    async def open(self, kind=None, *, fin=False, **headers):
        """Open a stream and wait for its reply, as Go's clients do; returns its number."""
        stream = self.begin(kind, fin=fin, **headers)
        await self.until(lambda: stream in self.accepted | self.refused)
        return stream

    def begin(self, kind=None, *, fin=False, **headers):
        stream, self.next = self.next, self.next + 2
        named = {"streamtype": kind} if kind else {}
        self.writer.write(self.session.open(stream, named | headers, fin=fin))
        return stream

    def send(self, stream, data=b"", *, fin=False):
        self.writer.write(frames.data(stream, data, fin=fin))

    def reset(self, stream):
        self.writer.write(frames.reset(stream))

    async def until(self, done):
        """Read until this is so."""
        while not done():
            assert await self.read(), "the server has closed the connection"

    async def until_pong(self):
        """Read until the server has taken in all that was sent."""
        self.writer.write(frames.ping(7))
        await self.until(lambda: 7 in self.pongs)

    async def closed(self):
        """Read until the server has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await self.read():
                pass

    async def read(self):
        data = await self.reader.read(1 << 16)
        for frame in self.session.frames(data):
            match frame:
                case SynReply(stream):
                    self.accepted.add(stream)
                case Data(stream, payload, fin):
                    assert stream not in self.ended
                    self.got[stream] = self.got.get(stream, b"") + payload
                    self.ended |= {stream} if fin else set()
                case Reset(stream):
                    self.refused.add(stream)
                case frames.Ping(id):
                    self.pongs.append(id)
        return data


@contextlib.asynccontextmanager
async def spdy(client, path, *versions, method="POST"):
    """A connection to the server of this HTTP client; a refusal is a connection with the status of that."""
    host, port = re.findall(r"//(.*):(\d+)", client.server)[0]
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", f"Authorization: {client.headers['Authorization']}"]
    lines += ["Connection: Upgrade", "Upgrade: SPDY/3.1", *(f"X-Stream-Protocol-Version: {each}" for each in versions)]
    writer.write("\r\n".join([*lines, "", ""]).encode())
    try:
        session = SpdyClient(reader, writer, await reader.readuntil(b"\r\n\r\n"))
        session.listener = client.listener
        yield session
    finally:
        writer.close()
