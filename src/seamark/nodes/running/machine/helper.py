"""The helper's loop: it carries out what the daemon asks, one by one, and tells which processes ended."""

from __future__ import annotations

import os
import selectors
import signal
import socket
from contextlib import suppress

import msgspec

from seamark.linux import calls
from seamark.nodes.running.machine.birth import become, hold
from seamark.nodes.running.machine.channel import Channel
from seamark.nodes.running.machine.messages import (
    MACHINE,
    Answer,
    Ended,
    Forget,
    Hold,
    Mount,
    Namespace,
    Request,
    Signal,
    Socket,
    Spent,
    Start,
    Unmount,
    Usage,
    requests,
)

_KINDS = {"net": calls.NEW_NETWORK, "uts": calls.NEW_HOSTNAME, "ipc": calls.NEW_IPC}
_TICK = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NOTHING = Spent()


class Birth(msgspec.Struct, frozen=True):
    """A process that was created and has not reached its program yet."""

    number: int  # of the request
    process: str
    pid: int
    explanation: list[bytes]


class Helper:
    """Holds the namespaces and the processes of the machine."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._own = _open_namespaces()
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY)
        self._namespaces: dict[str, dict[int, int]] = {"": self._own}
        self._pids: dict[str, int] = {}
        self._names: dict[int, str] = {}
        # The mount namespaces of processes that do not have a PID namespace for themselves: what they start is in it.
        self._shared: dict[str, int] = {}
        self._births: dict[int, Birth] = {}  # by the pipe that tells
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        """Serve until the daemon closes its end, or is gone."""
        waking, woken = socket.socketpair()
        for each in (waking, woken):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        self._selector.register(self._channel.socket, selectors.EVENT_READ)
        self._selector.register(waking, selectors.EVENT_READ)
        while True:
            for ready, _ in self._selector.select():
                if ready.fileobj is self._channel.socket:
                    received = self._channel.receive()
                    if received is None:
                        return
                    self._serve(*received)
                elif ready.fileobj is waking:
                    waking.recv(4096)
                else:
                    self._hear(ready.fd)
            self._reap()

    def _serve(self, content: bytes, files: list[int]) -> None:
        request = requests.decode(content)
        try:
            self._carry_out(request, files)
        except OSError as error:
            self._channel.send(Answer(request.number, error.errno or 5, error.strerror or str(error)))
        except KeyError as error:
            self._channel.send(Answer(request.number, 2, f"{error.args[0]} is not there"))
        finally:
            for each in files:
                os.close(each)

    def _carry_out(self, request: Request, files: list[int]) -> None:
        match request.asked:
            case Namespace() as asked:
                made = self._create(asked)
                self._channel.send(Answer(request.number), [made])
            case Forget(name=name):
                for opened in self._namespaces.pop(name, {}).values():
                    os.close(opened)
                self._channel.send(Answer(request.number))
            case Socket() as asked:
                with self._opened(asked) as found:
                    self._channel.send(Answer(request.number), [found.fileno()])
            case Hold(process=process, processes=most):
                self._hold(process, most)
                self._channel.send(Answer(request.number))
            case Mount() as asked:
                options = f"mode={asked.mode:o},gid={asked.group}" + (f",size={asked.size}" if asked.size else "")
                calls.mount("memory", asked.path, "tmpfs", calls.NO_SUID | calls.NO_DEVICES, options)
                self._channel.send(Answer(request.number))
            case Unmount(path=path):
                calls.unmount(path)
                self._channel.send(Answer(request.number))
            case Start() as asked:
                self._start(request.number, asked, files)
            case Signal(process=process, number=number, everyone=everyone):
                heard = True
                if (pid := self._pids.get(process)) is not None:
                    heard = _hears(pid, number)
                    _signal_all(_alike(pid) if everyone else {pid}, number)
                self._channel.send(Answer(request.number, heard=heard))
            case Usage():
                self._channel.send(Answer(request.number, usage=self._usage()))

    # --- namespaces --------------------------------------------------------------------------------

    def _create(self, asked: Namespace) -> int:
        try:
            calls.unshare(calls.NEW_NETWORK | calls.NEW_HOSTNAME | calls.NEW_IPC)
            if asked.shared_memory_of:
                calls.enter(self._namespaces[asked.shared_memory_of][calls.NEW_IPC], calls.NEW_IPC)
            if asked.hostname:
                socket.sethostname(asked.hostname)
            write_settings(asked.settings)
            self._namespaces[asked.name] = made = _open_namespaces()
        finally:
            for kind, opened in self._own.items():
                calls.enter(opened, kind)
        return made[calls.NEW_NETWORK]

    def _opened(self, asked: Socket) -> socket.socket:
        calls.enter(self._namespaces[asked.namespace][calls.NEW_NETWORK], calls.NEW_NETWORK)
        try:
            return socket.socket(asked.family, asked.kind | socket.SOCK_CLOEXEC, asked.protocol)
        finally:
            calls.enter(self._own[calls.NEW_NETWORK], calls.NEW_NETWORK)

    # --- processes ---------------------------------------------------------------------------------

    def _hold(self, process: str, most: int) -> None:
        calls.unshare(calls.NEW_PID)
        try:
            pid = os.fork()
            if not pid:
                hold(most)
        finally:
            calls.enter(self._own_pids, calls.NEW_PID)
        self._pids[process], self._names[pid] = pid, process

    def _start(self, number: int, asked: Start, files: list[int]) -> None:
        """A process in a PID namespace of its own, or in that of the process it joins."""
        namespaces = self._namespaces[asked.namespace]
        inside = os.pidfd_open(self._pids[asked.inside]) if asked.inside else None
        hearing, telling = os.pipe()
        try:
            if inside is not None:
                calls.enter(inside, calls.NEW_PID)
            elif asked.beside:
                self._enter_processes(asked.beside)
            else:
                calls.unshare(calls.NEW_PID)
            try:
                pid = os.fork()
                if not pid:
                    become(asked, files, namespaces, inside, telling)
            finally:
                calls.enter(self._own_pids, calls.NEW_PID)
        except BaseException:
            os.close(hearing)
            raise
        finally:
            os.close(telling)
            if inside is not None:
                os.close(inside)
        self._pids[asked.process] = pid
        self._names[pid] = asked.process
        self._births[hearing] = Birth(number, asked.process, pid, [])
        self._selector.register(hearing, selectors.EVENT_READ)

    def _enter_processes(self, process: str) -> None:
        if process != MACHINE:
            opened = os.pidfd_open(self._pids[process])
            try:
                calls.enter(opened, calls.NEW_PID)
            finally:
                os.close(opened)

    def _hear(self, hearing: int) -> None:
        """What a new process tells: nothing and the end of the pipe if its program started, or what went wrong."""
        birth = self._births[hearing]
        said = os.read(hearing, 4096)
        if said:
            birth.explanation.append(said)
            return
        self._selector.unregister(hearing)
        os.close(hearing)
        del self._births[hearing]
        *mounts, said = b"".join(birth.explanation).rsplit(b"@", 1)
        if mounts:
            self._shared[birth.process] = int(mounts[0])
        if not said:
            self._channel.send(Answer(birth.number))
            return
        error, _, explanation = said.decode(errors="replace").partition(" ")
        self._names.pop(birth.pid, None)
        self._pids.pop(birth.process, None)
        self._channel.send(Answer(birth.number, int(error), explanation))

    def _reap(self) -> None:
        """Take note of all processes that ended.  Process 1 also inherits those whose parents are gone."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            for hearing in [hearing for hearing, birth in self._births.items() if birth.pid == pid]:
                self._hear_out(hearing)
            process = self._names.pop(pid, None)
            if process is not None:
                del self._pids[process]
                self._sweep(process)
                code = os.waitstatus_to_exitcode(status)
                self._channel.send(Ended(process, code) if code >= 0 else Ended(process, 128 - code, -code))

    def _sweep(self, process: str) -> None:
        """End what a process has left in a PID namespace that is not its own: it is in the mount namespace it had.

        All are stopped before the first is killed, since one that ends makes room for another of a fork bomb.
        """
        mounts = self._shared.pop(process, None)
        if mounts is None:  # the kernel ends a PID namespace with its first process
            return
        stopped: set[int] = set()
        while left := {pid for pid, number in _processes() if number == mounts} - stopped:
            stopped |= left
            _signal_all(left, signal.SIGSTOP)
        _signal_all(stopped, signal.SIGKILL)

    def _hear_out(self, hearing: int) -> None:
        while hearing in self._births:
            self._hear(hearing)

    def _usage(self) -> dict[str, Spent]:
        """What each process and those in its mount namespace use, which are its children and what joined it."""
        found: dict[str, Spent] = {}
        everyone = _processes()
        numbers = dict(everyone)
        first: dict[int, str] = {}
        for process, pid in self._pids.items():
            if pid in numbers:
                first.setdefault(numbers[pid], process)
        for pid, number in everyone:
            if (process := first.get(number, "")) and (used := _used(pid)) is not None:
                found[process] = found.get(process, _NOTHING) + used
        return found


def _alike(pid: int) -> set[int]:
    """A process and those in its mount namespace, which are its children and what joined it."""
    everyone = dict(_processes())
    return {pid, *(other for other, number in everyone.items() if number == everyone.get(pid))}


def _signal_all(pids: set[int], number: int) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _hears(pid: int, number: int) -> bool:
    """Whether a child takes note of a signal: it catches, ignores or blocks it, or is not process 1 where it lives."""
    try:
        with open(f"/proc/{pid}/status") as file:
            fields = dict(line.partition(":")[::2] for line in file)
    except OSError:
        return True
    if int(fields["PPid"]) != os.getpid() or fields.get("NSpid", "").split()[-1:] != ["1"]:
        return True
    known = int(fields["SigCgt"], 16) | int(fields["SigIgn"], 16) | int(fields["SigBlk"], 16)
    return number in (signal.SIGKILL, signal.SIGSTOP) or bool(known >> (number - 1) & 1)


def write_settings(settings: dict[str, str]) -> None:
    """Settings of the namespaces that this process is in."""
    for path, value in settings.items():
        with open(f"/proc/sys/{path}", "w") as file:
            file.write(value)


def _open_namespaces() -> dict[int, int]:
    return {kind: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name, kind in _KINDS.items()}


def _processes() -> list[tuple[int, int]]:
    """Each process of the machine, and the number of its mount namespace."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                found.append((int(name), os.stat(f"/proc/{name}/ns/mnt").st_ino))
            except OSError:  # it ended meanwhile
                continue
    return found


def _used(pid: int) -> Spent | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    ticks = sum(int(each) for each in fields[11:15])  # its own and those of children that ended
    return Spent(ticks / _TICK, int(fields[21]) * _PAGE, int(fields[17]))
