"""Processes for workers.

The first ones are forked when everything is imported, and before the main process has threads or an event loop: a fork
copies only the thread that calls it, and locks that other threads hold would stay locked for ever.  So they share the
memory of what was imported.  A worker that replaces one which ended begins as a new program: the main process cannot be
forked by then, and a process that waits for being forked would have a third copy of what both change.

When the main process ends, however it does, the kernel ends its workers.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence

import msgspec

from seamark.store.relayed import Board

END_SECONDS = 6.0  # how long workers may take to end by themselves, once the main process has told them to
LOOK_AGAIN = 0.01
MOST_BYTES = 1 << 20  # of a message to a worker that begins


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


class Program(msgspec.Struct, frozen=True):
    """What a new process runs: a command, to which the number of a descriptor is added for :func:`introduced`."""

    command: Sequence[str]
    told: bytes  # what it has to know


class Forker:
    """The main process's handle of the processes for workers."""

    def __init__(self, work: Callable[[Birth, Board], None], program: Program, workers: int) -> None:
        """Call it before there are threads or an event loop.  ``work`` and ``program`` do the same, until they end."""
        self._program = program
        self._memory = os.fdopen(os.memfd_create("seamark-board"), "r+b", buffering=0)
        self.board = Board(workers, self._memory.fileno())
        self._waiting: list[socket.socket] = []  # through which processes that were forked are told to begin
        self._children: set[int] = set()
        gc.freeze()  # or looking for garbage would write to, and so copy, all the memory that is shared
        main = os.getpid()
        for _ in range(1, workers):
            telling, told = _pair()
            self._waiting.append(telling)
            pid = os.fork()
            if not pid:
                for each in self._waiting:
                    each.close()
                _alone(main, lambda told=told: _wait(told, lambda birth: work(birth, self.board)))  # type: ignore[misc]
            told.close()
            self._children.add(pid)

    def fork(self, birth: Birth, *sockets: socket.socket) -> None:
        """Have a worker begin with these sockets; raises OSError if there is no process for it."""
        self._reap()
        with self._waiting.pop() if self._waiting else self._start() as telling:
            socket.send_fds(telling, [msgspec.json.encode(birth)], [each.fileno() for each in sockets])

    def kill(self, pid: int) -> None:
        """End a worker that does not react; nothing if it has ended."""
        self._reap()
        if pid in self._children:
            os.kill(pid, signal.SIGKILL)

    def _start(self) -> socket.socket:
        telling, told = _pair()
        with told:
            told.set_inheritable(True)
            command = [*self._program.command, str(told.fileno())]
            self._children.add(os.posix_spawn(command[0], command, os.environ))
        socket.send_fds(telling, [self._program.told], [self._memory.fileno()])
        return telling

    def _reap(self) -> None:
        for child in list(self._children):
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                self._children.remove(child)

    def end(self) -> None:
        """Wait until all have ended: those that never began, and the workers, which know that they are to."""
        for each in self._waiting:
            each.close()
        give_up = time.monotonic() + END_SECONDS
        while self._children:
            self._reap()
            if time.monotonic() > give_up:
                for child in self._children:
                    os.kill(child, signal.SIGKILL)
            time.sleep(LOOK_AGAIN)
        self._memory.close()


def _pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _alone(main: int, work: Callable[[], None]) -> None:
    """Do the work of a process that was just forked, and end it: the code of its parent is not for it."""
    code = 1
    try:
        obey(main)
        work()
        code = 0
    finally:
        os._exit(code)


def obey(main: int) -> None:
    """Let this process end when the main process does or says so, and not otherwise."""
    from seamark.linux.calls import die_with_parent

    # A signal to the whole group of processes is for the main one, which then ends the others in order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    die_with_parent(signal.SIGKILL)
    if os.getppid() != main:  # it had ended before
        os._exit(1)


def _wait(told: socket.socket, work: Callable[[Birth], None]) -> None:
    """Do the work once this process is told to begin; nothing if it is not going to be told."""
    with told:
        message, sockets, _, _ = socket.recv_fds(told, MOST_BYTES, 2)
    if message:
        work(msgspec.structs.replace(msgspec.json.decode(message, type=Birth), sockets=tuple(sockets)))


def introduced(descriptor: int, work: Callable[[bytes, int, Birth], None]) -> None:
    """Do the work of a worker in a new program.  It is given what it has to know, and the file of the board."""
    obey(os.getppid())
    told = socket.socket(fileno=descriptor)
    known, memory, _, _ = socket.recv_fds(told, MOST_BYTES, 1)
    _wait(told, lambda birth: work(known, memory[0], birth))
