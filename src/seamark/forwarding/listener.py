"""A local port: each connection to it goes to a backend, and to the next one if that cannot be reached."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from seamark.forwarding.backends import Backend, InTurn, Sticky
from seamark.forwarding.dialing import Dialer, Unreachable
from seamark.forwarding.relay import Stream, relay


class Listener:
    """Listens on local addresses, from ``listen`` to ``close``.

    ``backends`` gives those of the moment; ``tell`` gets a sentence for everything that a person should know.
    """

    def __init__(
        self,
        name: str,
        backends: Callable[[], Sequence[Backend]],
        dialer: Dialer,
        *,
        policy: Sticky | InTurn,
        tell: Callable[[str], None],
    ) -> None:
        self.name = name
        self._backends = backends
        self._dialer = dialer
        self._policy = policy
        self._tell = tell
        self._servers: list[asyncio.Server] = []
        self._connections: set[asyncio.Task[None]] = set()

    async def listen(self, host: str, port: int) -> tuple[str, int]:
        """Listen on an address as well; returns it with the real port.  Raises ``OSError``."""
        server = await asyncio.start_server(self._accept, host, port)
        self._servers.append(server)
        address: tuple[str, int] = server.sockets[0].getsockname()[:2]
        return address

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        for server in self._servers:
            server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._carry(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            stream = await self._connect()
            if stream is None:
                writer.transport.abort()
                return
            try:
                with contextlib.suppress(OSError):  # one of the two sides is gone, and the other is told by closing it
                    await relay(reader, writer, stream)
                if stream.problem:
                    self._tell(f"{self.name}: {stream.problem}")
            finally:
                await stream.close()
        finally:
            writer.close()

    async def _connect(self) -> Stream | None:
        """A connection to the first backend that can be reached; None, and a sentence for each, if none can."""
        backends = self._policy.order(self._backends())
        if not backends:
            self._tell(f"{self.name} has no ready endpoints: a connection was closed")
        for backend in backends:
            try:
                stream = await self._dialer.connect(backend)
            except Unreachable as error:
                self._tell(f"{self.name}: {error}")
                if error.never:
                    return None
                continue
            self._chose(backend)
            return stream
        return None

    def _chose(self, backend: Backend) -> None:
        before, self._policy.current = self._policy.current, backend
        if isinstance(self._policy, Sticky) and before is not None and before != backend:
            self._tell(f"{self.name}: {before} is gone or not ready; connections go to {backend} now")
