"""What can go wrong around a server: kills, stops, a full disk, and a network that drops, holds or delays.

Each fault waits until the clients have made some progress, happens, and is repaired, again and again until cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import resource
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager

from history import Recorder
from processes import Machine
from runs import Faults

from etcd_server import EtcdCluster, Member
from free_ports import free_port

# A fault is in force inside the context.
Fault = Callable[[random.Random], AbstractAsyncContextManager[None]]


def repeated(faults: Sequence[Fault], *, between: tuple[int, int] = (20, 80)) -> Faults:
    """One fault after another, chosen at random, with so many operations in between."""

    async def go(recorder: Recorder, chance: random.Random) -> None:
        while True:
            await progress(recorder, chance.randrange(*between))
            async with chance.choice(faults)(chance):
                pass

    return go


async def progress(recorder: Recorder, operations: int) -> None:
    """Wait until so many more operations have begun."""
    goal = recorder.progress + operations
    while recorder.progress < goal:
        await asyncio.sleep(0.002)


def for_a_while(fault: Fault, shortest: float, longest: float) -> Fault:
    """The fault, lasting so many seconds."""

    @contextlib.asynccontextmanager
    async def lasting(chance: random.Random) -> AsyncIterator[None]:
        async with fault(chance):
            await asyncio.sleep(chance.uniform(shortest, longest))
            yield

    return lasting


# --- processes -------------------------------------------------------------------------------------


def worker_stopped(machine: Machine) -> Fault:
    """SIGSTOP of one of several processes that serve together; then it goes on, or is killed and replaced."""

    @contextlib.asynccontextmanager
    async def fault(chance: random.Random) -> AsyncIterator[None]:
        workers = machine.workers
        with contextlib.suppress(ProcessLookupError, IndexError):  # the last one killed is not replaced yet
            os.kill(chance.choice(workers), signal.SIGSTOP)
        try:
            yield
        finally:
            how = chance.choice((signal.SIGCONT, signal.SIGKILL))
            for worker in workers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, how)

    return fault


def killed(machines: Sequence[Machine]) -> Fault:
    """``kill -9`` of a server; it is started again."""

    @contextlib.asynccontextmanager
    async def fault(chance: random.Random) -> AsyncIterator[None]:
        machine = chance.choice(machines)
        await machine.kill()
        try:
            yield
        finally:
            await machine.start()

    return fault


def stopped(pids: Callable[[], Sequence[int]]) -> Fault:
    """SIGSTOP of a process: its connections stay open, nothing answers."""

    @contextlib.asynccontextmanager
    async def fault(chance: random.Random) -> AsyncIterator[None]:
        pid = chance.choice(pids())
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    return fault


def full_disk(machine: Machine) -> Fault:
    """No file of the server can grow."""

    @contextlib.asynccontextmanager
    async def fault(chance: random.Random) -> AsyncIterator[None]:
        before = resource.prlimit(machine.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(machine.pid, resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            yield
        finally:
            resource.prlimit(machine.pid, resource.RLIMIT_FSIZE, before)

    return fault


def member_killed(cluster: EtcdCluster) -> Fault:
    """``kill -9`` of an etcd member; it is started again."""

    @contextlib.asynccontextmanager
    async def fault(chance: random.Random) -> AsyncIterator[None]:
        member: Member = chance.choice(cluster.members)
        member.kill()
        try:
            yield
        finally:
            member.start()
            await asyncio.to_thread(cluster.wait_until_healthy, member)

    return fault


# --- the network -----------------------------------------------------------------------------------


class Relay:
    """Passes bytes on between its clients and one address, or fails to."""

    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = host, int(port)
        self.address = f"127.0.0.1:{free_port()}"
        self._open: set[asyncio.StreamWriter] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._refusing = False
        self._delay = 0.0

    async def start(self) -> None:
        host, _, port = self.address.rpartition(":")
        self._server = await asyncio.start_server(self._serve, host, int(port))

    async def stop(self) -> None:
        self._server.close()
        self._cut()
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            if self._refusing:
                return
            other_reader, other_writer = await asyncio.open_connection(*self._target)
            self._open.add(other_writer)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._pass(reader, other_writer))
                    both.create_task(self._pass(other_reader, writer))
            finally:
                self._open.discard(other_writer)
                other_writer.close()
        except* OSError:
            pass  # one side is gone, so the other is let go
        finally:
            self._open.discard(writer)
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            if self._delay:
                await asyncio.sleep(self._delay)
            await self._flowing.wait()
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError("this side is done")

    def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    @contextlib.asynccontextmanager
    async def dropping(self, chance: random.Random) -> AsyncIterator[None]:
        """Every connection breaks, and new ones break at once."""
        self._refusing = True
        self._cut()
        try:
            yield
        finally:
            self._refusing = False

    @contextlib.asynccontextmanager
    async def holding(self, chance: random.Random) -> AsyncIterator[None]:
        """Nothing gets through, and neither side is told; it arrives when that is over."""
        self.hold()
        try:
            yield
        finally:
            self.release()

    def hold(self) -> None:
        self._flowing.clear()

    def release(self) -> None:
        self._flowing.set()

    @contextlib.asynccontextmanager
    async def delaying(self, chance: random.Random) -> AsyncIterator[None]:
        """Everything takes longer."""
        self._delay = chance.uniform(0.001, 0.05)
        try:
            yield
        finally:
            self._delay = 0.0


@contextlib.asynccontextmanager
async def relays(targets: Sequence[str]) -> AsyncIterator[list[Relay]]:
    """A relay in front of each address."""
    made = [Relay(target) for target in targets]
    for relay in made:
        await relay.start()
    try:
        yield made
    finally:
        for relay in made:
            await relay.stop()
