"""The daemon's side of the machine: starts the helper, asks it, and learns which processes ended."""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from signal import SIGKILL
from socket import AF_NETLINK, SOCK_RAW, socket

from seamark.linux.links import Links
from seamark.linux.netlink import NETFILTER, ROUTING
from seamark.nodes.running.machine.channel import Channel
from seamark.nodes.running.machine.messages import (
    Answer,
    Asked,
    Ended,
    Forget,
    Hold,
    Mount,
    Namespace,
    Ready,
    Refused,
    Request,
    Signal,
    Socket,
    Spent,
    Start,
    Unmount,
    Usage,
    tidings,
)

FABRIC = ""  # the name of the machine's own network namespace, to which all nodes are connected
_GONE = "the machine that Pods run on has ended"


class NoMachine(Exception):
    """Pods cannot run here: one line that says why, and what to do."""


class HelperDied(NoMachine):
    """The helper process ended without a word: what it wrote to the terminal says more."""


class Process:
    """A process of a Pod: ``ended`` tells how it ended, once it has."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()


class Machine:
    """Use ``Machine.start``; ``close`` ends all processes of all Pods."""

    def __init__(self, channel: Channel, helper: asyncio.subprocess.Process) -> None:
        self._channel = channel
        self._helper = helper
        self._loop = asyncio.get_running_loop()
        self._count = 0
        self._asked: dict[int, asyncio.Future[tuple[Answer, list[int]]]] = {}
        self._processes: dict[str, Process] = {}
        self._ready: asyncio.Future[Ready] = self._loop.create_future()
        self._room = asyncio.Lock()
        self.gone = asyncio.Event()
        self.all_users = False
        self.own_processes = False

    @classmethod
    async def start(cls) -> Machine:
        ours, theirs = Channel.pair()
        helper = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "seamark.nodes.running.machine",
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
        )
        theirs.close()
        machine = cls(Channel(ours), helper)
        try:
            await machine._begin()
        except BaseException:
            await machine.close()
            raise
        return machine

    async def _begin(self) -> None:
        ours = self._channel.socket
        ours.setblocking(False)
        if os.geteuid() == 0 and await self._loop.sock_recv(ours, 16) == b"map":
            # Root of the host writes the map of users, since the helper has left the namespace that has the right to.
            await asyncio.to_thread(_map_all_users, self._helper.pid)
            await self._loop.sock_sendall(ours, b"m")
        self._loop.add_reader(ours, self._hear)
        ready = await self._ready
        self.all_users, self.own_processes = ready.all_users, ready.own_processes

    async def close(self) -> None:
        self._end()
        self._channel.socket.close()
        await self._helper.wait()

    # --- asking ------------------------------------------------------------------------------------

    async def namespace(
        self, name: str, hostname: str = "", settings: dict[str, str] | None = None, *, shared_memory_of: str = ""
    ) -> int:
        """Create a namespace; returns its network namespace as an open file, which the caller closes."""
        (found,) = await self._ask(Namespace(name, hostname, settings or {}, shared_memory_of))
        return found

    async def forget(self, name: str) -> None:
        await self._ask(Forget(name))

    async def open(self, namespace: str, family: int, kind: int, protocol: int = 0) -> socket:
        """A socket that belongs to this namespace; it does not block."""
        (found,) = await self._ask(Socket(namespace, family, kind, protocol))
        opened = socket(fileno=found)
        opened.setblocking(False)
        return opened

    async def links(self, namespace: str) -> Links:
        """The interfaces and routes of this namespace."""
        return Links(await self._netlink(namespace, ROUTING))

    async def netfilter(self, namespace: str) -> socket:
        """A socket for the rules of this namespace."""
        return await self._netlink(namespace, NETFILTER)

    async def _netlink(self, namespace: str, family: int) -> socket:
        (found,) = await self._ask(Socket(namespace, AF_NETLINK, SOCK_RAW, family))
        return socket(fileno=found)

    async def hold(self, process: str, processes: int = 0) -> None:
        """A PID namespace that others join, with at most so many processes, until this one is sent SIGKILL."""
        await self._ask(Hold(process, processes))

    async def mount(self, path: str, *, size: int, group: int, mode: int) -> None:
        """A file system in memory at this directory, for processes that are started from now on."""
        await self._ask(Mount(path, size, mode, group))

    async def unmount(self, path: str) -> None:
        await self._ask(Unmount(path))

    async def run(self, start: Start, files: Sequence[int]) -> Process:
        """Start a process; raises ``OSError`` if its program does not start."""
        process = self._processes[start.process] = Process(start.process)
        try:
            await self._ask(start, files)
        except BaseException:
            self._processes.pop(start.process, None)
            raise
        return process

    async def signal(self, process: str, number: int) -> bool:
        """Send a signal; nothing happens if the process has ended.  Tells whether the process takes note of it."""
        answer, _ = await self._answer(Signal(process, number))
        return answer.heard

    async def end(self, process: str) -> None:
        """Kill a process and what it started, all of them at once."""
        await self._answer(Signal(process, SIGKILL, everyone=True))

    async def usage(self) -> dict[str, Spent]:
        """What each process uses, with what it started."""
        answer, _ = await self._answer(Usage())
        return answer.usage

    async def _ask(self, asked: Asked, files: Sequence[int] = ()) -> list[int]:
        """The open files that come with the answer."""
        return (await self._answer(asked, files))[1]

    async def _answer(self, asked: Asked, files: Sequence[int] = ()) -> tuple[Answer, list[int]]:
        if self.gone.is_set():
            raise OSError(errno.ECONNRESET, _GONE)
        self._count += 1
        number = self._count
        answer = self._asked[number] = self._loop.create_future()
        try:
            await self._send(Request(number, asked), files)
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            answer.add_done_callback(_discard)
            raise

    async def _send(self, request: Request, files: Sequence[int]) -> None:
        async with self._room:
            while True:
                try:
                    self._channel.send(request, files)
                    return
                except BlockingIOError:
                    await self._writable()
                except OSError as error:
                    self._end()
                    raise OSError(errno.ECONNRESET, _GONE) from error

    async def _writable(self) -> None:
        free: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_writer(self._channel.socket, _resolve, free)
        try:
            await free
        finally:
            self._loop.remove_writer(self._channel.socket)

    # --- hearing -----------------------------------------------------------------------------------

    def _hear(self) -> None:
        while True:
            try:
                received = self._channel.receive()
            except BlockingIOError:
                return
            if received is None:
                self._end()
                return
            self._take(*received)

    def _take(self, content: bytes, files: list[int]) -> None:
        match tidings.decode(content):
            case Answer() as answer:
                waiting = self._asked.pop(answer.number)
                if answer.error:
                    waiting.set_exception(OSError(answer.error, answer.explanation))
                else:
                    waiting.set_result((answer, files))
            case Ended() as ended:
                process = self._processes.pop(ended.process, None)
                if process is not None:
                    process.ended.set_result(ended)
            case Ready() as ready:
                self._ready.set_result(ready)
            case Refused() as refused:
                self._ready.set_exception(NoMachine(_advice(refused)))

    def _end(self) -> None:
        """The helper is gone, and with it every process."""
        if self.gone.is_set():
            return
        self.gone.set()
        self._loop.remove_reader(self._channel.socket)
        if not self._ready.done():
            self._ready.set_exception(HelperDied("the helper process of the machine did not start"))
            self._ready.exception()
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(OSError(errno.ECONNRESET, _GONE))
                waiting.exception()
        self._asked.clear()
        for process in self._processes.values():
            process.ended.set_result(Ended(process.name, 137, 9))
        self._processes.clear()


def _map_all_users(process: int) -> None:
    for name in ("uid_map", "gid_map"):
        Path(f"/proc/{process}/{name}").write_text("0 0 4294967295")


def _resolve(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


def _discard(answer: asyncio.Future[tuple[Answer, list[int]]]) -> None:
    """The asker was cancelled: files that come with the answer are closed."""
    if not answer.cancelled() and answer.exception() is None:
        for each in answer.result()[1]:
            os.close(each)


def _advice(refused: Refused) -> str:
    said = f"Pods cannot run as processes here: {refused.tried}: {os.strerror(refused.number)}"
    for setting, forbids, remedy in (
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl kernel.unprivileged_userns_clone=1"),
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", _APPARMOR),
        ("/proc/sys/user/max_user_namespaces", "0", "sysctl user.max_user_namespaces=15000"),
    ):
        try:
            if Path(setting).read_text().strip() == forbids:
                return f"{said}; an administrator can allow it by: {remedy}"
        except OSError:
            continue
    return f"{said}; user namespaces seem to be forbidden on this machine"


_APPARMOR = "sysctl kernel.apparmor_restrict_unprivileged_userns=0"
