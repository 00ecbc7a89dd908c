"""The channels of a conversation with a command: its streams, how it ended, and the size of its terminal.

There are two ways to carry them.  *Messages of a WebSocket*: the first byte of each is its channel.  Since v5 a client
can also close a channel, by a message to channel 255: that is how its input ends.  The protocols with base64 are for
clients that can only send text: the channel is a digit there.  *Streams of SPDY*: the client opens one for each channel
and names it by a header; input ends with its stream.
"""

from __future__ import annotations

import asyncio
import base64
from collections import deque

import msgspec

from seamark.access.pod_streams import STDERR, STDIN, STDOUT, Command
from seamark.access.spdy.frames import Data, Reset, SpdyError, SynStream
from seamark.api.streaming.sockets import Socket, WebSocket
from seamark.api.streaming.spdy_streams import PATIENCE, SpdyStreams
from seamark.errors import Object

IN_MESSAGES = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "base64.channel.k8s.io",
    "channel.k8s.io",
)
IN_STREAMS = ("v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io")
ERROR, RESIZE, CLOSE = 3, 4, 255
_STREAM_TYPES = {"stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "error": ERROR, "resize": RESIZE}
_RESIZABLE = frozenset({"v4.channel.k8s.io", "v3.channel.k8s.io"})
_MOST_EARLY = 16  # pieces of input that come before all streams are there

Arrived = tuple[int, bytes | None]  # a channel and bytes in it, or None at its end


class Channels:
    """Either way.  Methods raise ``ConnectionError`` once the client is gone, or does not speak the protocol."""

    def __init__(self, protocol: str) -> None:
        self._tells_status = protocol.startswith(("v4.", "v5."))

    async def begin(self, command: Command) -> None:
        """Return once the command can be started."""
        raise NotImplementedError

    async def receive(self) -> Arrived:
        raise NotImplementedError

    async def send(self, channel: int, data: bytes) -> None:
        raise NotImplementedError

    async def end(self, channel: int) -> None:
        """Nothing more is sent in this channel."""

    async def tell(self, status: Object) -> None:
        """How the command ended: the last that is sent.  Before v4 a failure is a text, and success is not told."""
        if self._tells_status:
            await self.send(ERROR, msgspec.json.encode(status))
        elif status["status"] != "Success":
            await self.send(ERROR, status["message"].encode())


def channels_of(socket: Socket, protocol: str) -> Channels:
    return MessageChannels(socket, protocol) if isinstance(socket, WebSocket) else StreamChannels(socket, protocol)


class MessageChannels(Channels):
    """The messages of a WebSocket."""

    def __init__(self, socket: WebSocket, protocol: str) -> None:
        super().__init__(protocol)
        self._socket = socket
        socket.answers_close = False
        self._as_text = "base64." in protocol
        self._channel = STDIN  # that of the message of which pieces come
        self._held = b""  # of a message in base64: what cannot be decoded before the next piece

    async def begin(self, command: Command) -> None:
        await self.send(min((command.streams | {ERROR}) - {STDIN}), b"")  # says that the connection is there

    async def send(self, channel: int, data: bytes) -> None:
        if self._as_text:
            await self._socket.send_text(f"{channel}{base64.b64encode(data).decode()}")
        else:
            await self._socket.send(bytes([channel]) + data)

    async def receive(self) -> Arrived:
        begins, data = await self._socket.receive()
        if begins:
            first = data[0] if data else STDIN
            self._channel, data, self._held = (first - ord("0") if self._as_text and data else first), data[1:], b""
        if self._as_text:
            data = self._held + data
            whole = len(data) // 4 * 4
            data, self._held = base64.b64decode(data[:whole]), data[whole:]
        if self._channel == CLOSE:
            return (data[0], None) if data else (CLOSE, b"")
        return self._channel, data


class StreamChannels(Channels):
    """The streams of a SPDY session."""

    def __init__(self, socket: Socket, protocol: str) -> None:
        super().__init__(protocol)
        self._streams = SpdyStreams(socket)
        self._resizable = protocol in _RESIZABLE
        self._arrived: deque[Arrived] = deque()
        self._opened: set[int] = set()  # channels
        self._sending: dict[int, int] = {}  # the stream of each channel that this side has not ended
        self._receiving: dict[int, int] = {}  # the channel of each stream that the client has not ended

    async def begin(self, command: Command) -> None:
        wanted = {*command.streams, ERROR}
        if command.terminal and self._resizable:
            wanted.add(RESIZE)
        try:
            async with asyncio.timeout(PATIENCE):
                while not wanted <= self._opened:
                    await self._take()
                    if len(self._arrived) > _MOST_EARLY:
                        raise SpdyError("much input came before the streams were there")
        except TimeoutError:
            raise SpdyError("timed out waiting for client to create streams") from None

    async def receive(self) -> Arrived:
        while not self._arrived:
            await self._take()
        return self._arrived.popleft()

    async def _take(self) -> None:
        match await self._streams.receive():
            case SynStream(stream, headers, fin):
                channel = _STREAM_TYPES.get(headers.get("streamtype", ""))
                if channel is None or channel in self._opened:
                    await self._streams.refuse(stream)
                    return
                await self._streams.accept(stream)
                self._opened.add(channel)
                self._sending[channel], self._receiving[stream] = stream, channel
                self._arrives(stream, b"", fin=fin)
            case Data(stream, payload, fin):
                self._arrives(stream, payload, fin=fin)
            case Reset(stream):
                self._sending.pop(self._receiving.get(stream, -1), None)
                self._arrives(stream, b"", fin=True)

    def _arrives(self, stream: int, payload: bytes, *, fin: bool) -> None:
        channel = self._receiving.get(stream)
        if channel in (STDIN, RESIZE):
            self._arrived.extend([(channel, payload)] if payload else [])
            self._arrived.extend([(channel, None)] if fin else [])
        if fin:
            self._receiving.pop(stream, None)

    async def send(self, channel: int, data: bytes) -> None:
        if channel in self._sending:
            await self._streams.send(self._sending[channel], data)

    async def end(self, channel: int) -> None:
        if channel in self._sending:
            await self._streams.send(self._sending.pop(channel), fin=True)

    async def tell(self, status: Object) -> None:
        await super().tell(status)
        for channel in tuple(self._sending):
            await self.end(channel)
