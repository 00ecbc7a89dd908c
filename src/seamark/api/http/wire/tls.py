"""TLS between a socket's transport and the HTTP protocol: what is written is encrypted and sent at once.

Our own rather than the event loop's, which has buffers on both sides of the encryption and looks after them at every
write: for an event to a thousand watchers that is a tenth of the CPU (docs/benchmarks.md).  Here the only buffer is
that of the socket's transport, for what the system does not take; what it takes does not pass the transport.  That
transport stays the event loop's: it knows every way in which a connection ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from typing import Any

HANDSHAKE_SECONDS = 30.0
# How long a connection that was closed may take to send what is left and to be closed by its client too.  Until then
# what the client sends is ignored: a socket that is closed with unread data would take the last answer back.
GOODBYE_SECONDS = 30.0
RECORD = 16 * 1024  # the most bytes in one record of TLS


async def secure(client: socket.socket, context: ssl.SSLContext, protocol: asyncio.Protocol) -> None:
    """Shake hands with a client and give the connection to the protocol; return then, or when it is lost before."""
    tls = Tls(client, context, protocol)
    try:
        await asyncio.get_running_loop().connect_accepted_socket(lambda: tls, client)
        await tls.settled
    except BaseException:
        tls.abort()
        raise


class Tls(asyncio.Protocol, asyncio.Transport):
    """To the socket's transport it is a protocol, to the HTTP protocol it is the transport."""

    __slots__ = (
        "_client",
        "_closing",
        "_encryption",
        "_incoming",
        "_lags",
        "_outgoing",
        "_patience",
        "_protocol",
        "_reads",
        "_shaken",
        "_socket",
        "_tls",
        "settled",
    )

    def __init__(self, client: socket.socket, context: ssl.SSLContext, protocol: asyncio.Protocol) -> None:
        self._client = client
        self._protocol = protocol
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        # What ``_tls`` wraps: by way of the wrapper, an event to a watcher costs 2 to 3 % more (docs/benchmarks.md).
        self._encryption: Any = self._tls._sslobj  # type: ignore[attr-defined]  # the standard library's own
        self._socket: Any = None  # its transport
        self._lags = False  # the transport was given what the system did not take
        self._shaken = False
        self._reads = True
        self._closing = False
        self._patience: asyncio.TimerHandle | None = None  # ends a handshake or a goodbye that takes too long
        self.settled = asyncio.get_running_loop().create_future()  # done after the handshake, or when it failed

    # --- the socket's side -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._socket = transport
        self._patience = asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._closing = True
        self._wait_no_longer()
        if self._shaken:
            self._protocol.connection_lost(exc)
        else:
            self._settle()

    def data_received(self, data: bytes) -> None:
        if not self._closing:
            self._incoming.write(data)
            self._decrypt()

    def eof_received(self) -> None:
        """The client sends no more: what was written goes out, and its transport closes then."""
        self.close()

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _decrypt(self) -> None:
        """Give the protocol what has come, as long as it reads."""
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._begin()
            while self._incoming.pending and self._reads and not self._closing:
                data = self._tls.read(RECORD)
                if data:
                    self._protocol.data_received(data)
                else:
                    self.close()  # the client has said goodbye
        except ssl.SSLWantReadError:
            pass  # the rest of a record, or of the handshake, has yet to come
        except ssl.SSLError:
            self.close()  # with an alert that tells the client why
        except BaseException:
            self.abort()
            raise
        if self._outgoing.pending:
            self._send()

    def _begin(self) -> None:
        self._shaken = True
        self._wait_no_longer()
        self._settle()
        self._protocol.connection_made(self)

    def _settle(self) -> None:
        if not self.settled.done():
            self.settled.set_result(None)

    def _wait_no_longer(self) -> None:
        patience, self._patience = self._patience, None
        if patience is not None:
            patience.cancel()

    # --- the protocol's side -----------------------------------------------------------------------

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._tls if name == "ssl_object" else self._socket.get_extra_info(name, default)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        try:
            done = self._encryption.write(data)
            while done < len(data):  # that was one record
                done += self._encryption.write(memoryview(data)[done:])
        except ssl.SSLError:
            self.abort()
        else:
            self._send()

    def _send(self) -> None:
        """Give the system what is encrypted, and the transport what the system does not take."""
        data = self._outgoing.read()
        if self._lags:
            self._lags = self._socket.get_write_buffer_size() > 0
        try:
            sent = 0 if self._lags else self._client.send(data)
        except OSError:  # the system's buffer is full, or the connection is broken, which the transport will tell
            sent = 0
        if sent < len(data):
            self._lags = True
            self._socket.write(memoryview(data)[sent:])

    def get_write_buffer_size(self) -> int:
        size: int = self._socket.get_write_buffer_size()
        return size

    def is_reading(self) -> bool:
        return self._reads and not self._closing

    def pause_reading(self) -> None:
        if self._reads and not self._closing:
            self._reads = False
            self._socket.pause_reading()

    def resume_reading(self) -> None:
        if not self._reads and not self._closing:
            self._reads = True
            asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        """First what has come: a protocol that pauses often would otherwise let ever more of it pile up here."""
        self.data_received(b"")
        if self._reads and not self._closing:
            self._socket.resume_reading()

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Send what is written, say goodbye, and wait a while until the client has left too."""
        if self._closing:
            return
        self._closing = True
        self._wait_no_longer()
        self._patience = asyncio.get_running_loop().call_later(GOODBYE_SECONDS, self.abort)
        try:
            self._tls.unwrap()
            left = True
        except ssl.SSLError:  # most often that the client has not said goodbye yet
            left = False
        self._send()
        if left:
            self._socket.close()
        else:
            with contextlib.suppress(OSError):  # the client is gone, which will be told
                self._socket.write_eof()
            self._socket.resume_reading()

    def abort(self) -> None:
        """End the connection at once."""
        if self._socket is not None:
            self._closing = True
            self._socket.abort()
