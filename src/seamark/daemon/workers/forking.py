"""A process that only forks others.

It is forked from the main process when everything is imported, and before there are threads or an event loop: a fork
copies only the thread that calls it, and locks that other threads hold would stay locked for ever.  Its children share
the memory of what was imported.

When the main process ends, however it does, this process is told by the end of its socket.  It then makes sure that
its children end, too.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from seamark.store.relayed import Board

END_SECONDS = 6.0  # how long the children may take to end by themselves, once the main process has ended
LOOK_AGAIN = 0.05
SOCKETS = 2


class Birth(msgspec.Struct, frozen=True):
    """What a worker is given: its number, where clients reach it, a channel to the main process, and new connections.

    The sockets are the worker's ends; they do not go with the others, but as descriptors.
    """

    number: int
    address: tuple[str, int]
    sockets: tuple[int, ...] = ()

    @property
    def channel(self) -> socket.socket:
        return socket.socket(fileno=self.sockets[0])

    @property
    def connections(self) -> socket.socket:
        return socket.socket(fileno=self.sockets[1])


class Forker:
    """The main process's handle of the process that forks."""

    def __init__(self, work: Callable[[Birth, Board], None], workers: int) -> None:
        """Call it before there are threads or an event loop.  ``work`` is what a forked process does until it ends."""
        self.board = Board(workers)
        self._asking, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gc.freeze()  # or looking for garbage would write to, and so copy, all the memory that is shared
        self.pid = os.fork()
        if not self.pid:
            self._asking.close()
            _alone(lambda: _fork_when_told(answering, lambda birth: work(birth, self.board)))
        answering.close()

    def fork(self, birth: Birth, *sockets: socket.socket) -> None:
        """Start a worker with these sockets; raises OSError if the process that forks is gone."""
        socket.send_fds(self._asking, [msgspec.json.encode(birth)], [each.fileno() for each in sockets])

    def end(self) -> None:
        """Have it end, and wait until it has: its children are gone then."""
        self._asking.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


def _alone(work: Callable[[], None]) -> None:
    """Do the work of a process that was just forked, and end it: the code of its parent is not for it."""
    code = 1
    try:
        # A signal to the whole group of processes is for the main one, which then ends the others in order.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        work()
        code = 0
    finally:
        os._exit(code)


def _fork_when_told(asked: socket.socket, work: Callable[[Birth], None]) -> None:
    children: set[int] = set()
    while True:
        message, sockets, _, _ = socket.recv_fds(asked, 4096, SOCKETS)
        _reap(children)
        if not message:
            break
        birth = msgspec.structs.replace(msgspec.json.decode(message, type=Birth), sockets=tuple(sockets))
        child = os.fork()
        if not child:
            asked.close()
            _alone(lambda birth=birth: work(birth))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        children.add(child)
        for each in sockets:
            os.close(each)
    give_up = time.monotonic() + END_SECONDS
    while children and time.monotonic() < give_up:
        time.sleep(LOOK_AGAIN)
        _reap(children)
    for child in children:
        os.kill(child, signal.SIGKILL)


def _reap(children: set[int]) -> None:
    for child in list(children):
        if os.waitpid(child, os.WNOHANG) != (0, 0):
            children.remove(child)
