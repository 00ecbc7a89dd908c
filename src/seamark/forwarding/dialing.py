"""Connects to a backend: to a Pod through the API server, to any other address directly from this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from seamark import errors
from seamark.access.portforward.tunnels import Tunnels
from seamark.forwarding.backends import Backend
from seamark.forwarding.relay import CHUNK, Stream

T = TypeVar("T")

PATIENCE = 10.0  # seconds to connect to an address


class Unreachable(Exception):
    """A backend cannot be connected to; the text says which and why.

    ``never`` is set if that will not change: the cluster does not forward ports at all, or not for this user.
    """

    def __init__(self, message: str, *, never: bool = False) -> None:
        super().__init__(message)
        self.never = never


class DirectConnection:
    """A connection to an address, as a ``Stream``."""

    problem = ""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._sent_all = asyncio.Event()

    async def receive(self) -> bytes:
        return await self._reader.read(CHUNK)

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write_eof()
        self._sent_all.set()

    async def over(self) -> None:
        await self._sent_all.wait()

    async def close(self) -> None:
        self._writer.close()


class Dialer:
    """Connects to backends of one cluster."""

    def __init__(self, tunnels: Tunnels) -> None:
        self._tunnels = tunnels

    async def prepare(self, backend: Backend) -> None:
        """Find out whether the cluster forwards to this backend; raises :class:`Unreachable` if not."""
        if backend.pod is not None:
            await self._through_api(backend, self._tunnels.prepare(backend.pod))

    async def connect(self, backend: Backend) -> Stream:
        """A connection to a backend; raises :class:`Unreachable`."""
        if backend.pod is None:
            return await self._direct(backend)
        return await self._through_api(backend, self._tunnels.connect(backend.pod, backend.port))

    async def _through_api(self, backend: Backend, work: Awaitable[T]) -> T:
        try:
            return await work
        except errors.ApiError as error:
            raise _refused(backend, error) from error
        except ConnectionError as error:
            raise Unreachable(f"{backend} cannot be reached: {error}") from error

    async def _direct(self, backend: Backend) -> Stream:
        try:
            async with asyncio.timeout(PATIENCE):
                return DirectConnection(*await asyncio.open_connection(backend.address, backend.port))
        except TimeoutError:
            reason = f"no answer within {PATIENCE:.0f} s"
        except OSError as error:
            reason = error.strerror or str(error)
        raise Unreachable(
            f"{backend}:{backend.port} cannot be reached from this machine: {reason}; it belongs to no Pod, "
            "so the cluster cannot forward to it"
        )


def _refused(backend: Backend, error: errors.ApiError) -> Unreachable:
    if error.__cause__ is not None:
        return Unreachable(error.message)  # the server did not answer: the words are our own
    if error.code == 404 and "not found" in error.message:
        return Unreachable(f"{backend} is gone")
    if error.code in (404, 405, 501):
        return Unreachable(
            f"this cluster does not forward ports of Pods: {error.message}; only endpoints that are no Pods can be "
            "reached, directly from this machine",
            never=True,
        )
    if error.code == 403:
        return Unreachable(f"{error.message} (it takes `create` and `get` on pods/portforward)", never=True)
    return Unreachable(f"{backend} cannot be reached: {error.message}")
