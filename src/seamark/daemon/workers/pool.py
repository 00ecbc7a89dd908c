"""The main process's side of the workers."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import socket
import sys
import termios
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Protocol

import msgspec

from seamark.api.http.documents import Report
from seamark.api.http.wire.listener import Listener
from seamark.channel import Channel, Handler, Lost
from seamark.daemon.workers.forking import Birth
from seamark.daemon.workers.worker import READY, STOP, TELL, TO_MAIN, TO_WORKER, Told
from seamark.metrics import Registry, exposition
from seamark.runtime.supervisor import Part, Started, Supervisor
from seamark.runtime.workers import Expected
from seamark.store.relayed import Board

log = logging.getLogger(__name__)

MAIN = "0"  # the main process's number, in metrics
PATIENCE = 5.0  # seconds that a worker may take to say how it is
LOOK = 15.0  # seconds after which a worker is asked whether it still answers
STUCK = 60.0  # seconds after which one that does not is killed, to be replaced
LEFT = 1.0  # seconds for which a worker may leave connections that it was handed before it gets no more


class Forks(Protocol):
    """Starts a process for a worker; all of them share the ``board``."""

    board: Board

    def fork(self, birth: Birth, *sockets: socket.socket) -> None: ...

    def kill(self, pid: int) -> None: ...


class Running:
    """A worker that takes connections."""

    def __init__(self, number: int, pid: int, channel: Channel, connections: socket.socket) -> None:
        self.number, self.pid, self.channel, self.connections = number, pid, channel, connections
        self.handed = 0
        self._leaves_since: float | None = None

    def takes(self, now: float) -> bool:
        """Whether it takes the connections that it is handed: a process that was stopped leaves them where they are."""
        left = int.from_bytes(fcntl.ioctl(self.connections, termios.TIOCOUTQ, bytes(4)), sys.byteorder)
        if not left:
            self._leaves_since = None
        elif self._leaves_since is None:
            self._leaves_since = now
        return self._leaves_since is None or now - self._leaves_since < LEFT


class Workers(Handler):
    """All workers but the main process, which serves clients as well and has the number 0."""

    def __init__(
        self,
        count: int,
        forks: Forks,
        supervisor: Supervisor,
        metrics: Registry,
        *,
        store: Handler | None,
        changed: Callable[[], None],
    ) -> None:
        """``store`` answers what the workers ask of the store; None if they open it themselves.

        ``changed`` is called when other processes run than before.
        """
        self._numbers = range(1, count)
        self._forks = forks
        self._board = forks.board
        self._supervisor = supervisor
        self._metrics = metrics
        self._handlers: Mapping[str, Handler] = {TO_MAIN: self, **({"store": store} if store is not None else {})}
        self._running: dict[int, Running] = {}
        self._changed = changed
        self._listener: Listener
        self._told: dict[int, Mapping[str, str | None]] = {}  # what is wrong with the workers' parts, as last told

    @property
    def pids(self) -> tuple[int, ...]:
        return tuple(worker.pid for worker in self._running.values())

    def parts(self, listener: Listener) -> list[Part]:
        """A part for each worker, which start it, and start it again when it has ended."""
        self._listener = listener
        listener.share = self._hand_over
        return [self._part(number) for number in self._numbers]

    def _part(self, number: int) -> Part:
        async def work(started: Started) -> None:
            ours, theirs = socket.socketpair()
            handing, taking = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            handing.setblocking(False)
            self._board.numbers[number] = 0
            with handing:
                try:
                    with theirs, taking:
                        self._forks.fork(Birth(number, self._listener.address), theirs, taking)
                except OSError:
                    ours.close()
                    raise
                channel = await Channel.over(ours, self._handlers)
                try:
                    await self._run(number, channel, handing, started)
                finally:
                    self._running.pop(number, None)
                    self._told.pop(number, None)
                    await channel.close()

        return self._supervisor.part(f"worker-{number}", work)

    async def _run(self, number: int, channel: Channel, handing: socket.socket, started: Started) -> None:
        """Until it ends: raises then, and stops it when cancelled."""
        try:
            pid = int(await channel.ask(TO_WORKER, READY))
            self._running[number] = Running(number, pid, channel, handing)
            self._changed()
            started()
            await self._watch(self._running[number])
        except Lost:
            pass  # it has ended, which is told below
        except asyncio.CancelledError:
            self._running.pop(number, None)
            with suppress(Lost):
                await channel.ask(TO_WORKER, STOP)
            raise
        raise Expected("the process ended")

    async def _watch(self, worker: Running) -> None:
        """Until a worker ends.  One that is stuck never would, and has connections and perhaps all controllers."""
        closed = worker.channel.closed
        while not closed.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await closed.wait()
                    return
            try:
                async with asyncio.timeout(STUCK):
                    await worker.channel.ask(TO_WORKER, READY)
            except TimeoutError:
                said = "worker %d: pid %d has not answered for %g seconds: it is killed and replaced"
                log.error(said, worker.number, worker.pid, STUCK)
                self._forks.kill(worker.pid)
                await closed.wait()

    def _hand_over(self, client: socket.socket) -> bool:
        """Hand a new connection to the process that has the fewest; False if that is this one."""
        fewest, chosen, now = self._listener.count, None, time.monotonic()
        for worker in self._running.values():
            count = worker.handed - self._board.numbers[worker.number]
            if count <= fewest and worker.takes(now):
                fewest, chosen = count, worker
        if chosen is None:
            return False
        try:
            socket.send_fds(chosen.connections, [b"c"], [client.fileno()])
        except OSError:  # it is gone, or too busy to take any more
            return False
        chosen.handed += 1
        client.close()
        return True

    # --- reports -----------------------------------------------------------------------------------

    def problems(self) -> Mapping[str, str | None]:
        """What is wrong with the parts of all processes; None where all is well.  Of the workers, as they last told."""
        found = self._supervisor.problems()
        for told in self._told.values():
            found |= {name: problem for name, problem in told.items() if not found.get(name)}
        return found

    async def report(self) -> Report:
        """What is wrong with the parts, and the metrics, of all processes."""
        workers = list(self._running.values())
        told = await asyncio.gather(*map(_told_by, workers))
        for worker, each in zip(workers, told, strict=True):
            if worker.number in self._running:
                self._told[worker.number] = each.problems
        metrics = exposition(self._metrics.exposed(worker=MAIN), *(each.metrics for each in told))
        return Report(self.problems(), metrics)

    async def answer(self, body: bytes) -> bytes:
        return msgspec.json.encode(await self.report())


async def _told_by(worker: Running) -> Told:
    try:
        async with asyncio.timeout(PATIENCE):
            return msgspec.json.decode(await worker.channel.ask(TO_WORKER, TELL), type=Told)
    except Lost:
        return Told({}, {})
    except TimeoutError:
        return Told({f"worker-{worker.number}": f"pid {worker.pid} has not answered for {PATIENCE:g} seconds"}, {})
