"""What the daemon asks of the machine, and what the machine tells."""

from __future__ import annotations

import msgspec

from seamark.nodes.running.machine.roots import Step

MACHINE = "machine"  # in the place of a process: the machine's own PID namespace

# --- asked -----------------------------------------------------------------------------------------


class Namespace(msgspec.Struct, frozen=True, tag="namespace"):
    """Create namespaces for network, host name and IPC; answered with the network namespace as an open file."""

    name: str
    hostname: str = ""
    settings: dict[str, str] = {}  # by their path below /proc/sys
    shared_memory_of: str = ""  # the name of a namespace whose IPC it uses, instead of an own one


class Forget(msgspec.Struct, frozen=True, tag="forget"):
    """Let go of a namespace: the kernel removes it once no process and no socket uses it."""

    name: str


class Socket(msgspec.Struct, frozen=True, tag="socket"):
    """Open a socket in a namespace; answered with it."""

    namespace: str
    family: int
    kind: int
    protocol: int = 0


class Hold(msgspec.Struct, frozen=True, tag="hold"):
    """Start a process that does nothing but hold a PID namespace, for others that join it."""

    process: str
    processes: int = 0  # how many it may have, if not 0


class Mount(msgspec.Struct, frozen=True, tag="mount"):
    """Mount an empty file system in memory at a directory of the machine; what is started from now on sees it."""

    path: str
    size: int = 0  # in bytes; 0 for what the kernel allows
    mode: int = 0o777
    group: int = 0


class Unmount(msgspec.Struct, frozen=True, tag="unmount"):
    path: str


class Start(msgspec.Struct, frozen=True, tag="start"):
    """Start a process; comes with its standard input, output and error, or with one terminal for all three."""

    process: str  # a name for it, by which the other messages call it
    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: str = "/"
    namespace: str = ""
    root: tuple[Step, ...] = ()  # none: it sees the machine's file system as the helper does
    scratch: str = ""  # an empty directory of the machine, where the new root is put together
    inside: str = ""  # the name of a process that it joins, in all its namespaces
    beside: str = ""  # the name of a process whose PID namespace it joins; ``MACHINE`` for the helper's own
    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    terminal: bool = False
    gains_privileges: bool = True
    capabilities: tuple[int, ...] | None = None  # those it keeps; None for all
    processes: int = 0  # how many processes and threads its PID namespace may have, if not 0
    user_processes: int = 0  # and how many its user, in the whole machine
    cgroup: str = ""
    nice: int = 0  # by how much others come first
    open_files: int = 0  # the limit, if not 0


class Signal(msgspec.Struct, frozen=True, tag="signal"):
    """Send a signal to a process; answered with whether it takes note.

    The kernel drops a signal for the first process of a PID namespace that has not said what to do about it.
    """

    process: str
    number: int
    everyone: bool = False  # also to what it started


class Usage(msgspec.Struct, frozen=True, tag="usage"):
    """Answered with what each process used, together with what it started."""


Asked = Namespace | Forget | Socket | Hold | Mount | Unmount | Start | Signal | Usage


class Request(msgspec.Struct, frozen=True):
    number: int
    asked: Asked


# --- told ------------------------------------------------------------------------------------------


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The machine is there."""

    all_users: bool  # whether processes may run as any user, or only as the one who started the daemon
    own_processes: bool  # whether the kernel lets a process see its own PID namespace in /proc


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """There is no machine: what was tried, and what the kernel said."""

    tried: str
    number: int


class Spent(msgspec.Struct, frozen=True, array_like=True):
    """What a process used, together with what it started."""

    seconds: float = 0.0  # of CPU
    memory: int = 0  # bytes
    threads: int = 0  # of all its processes

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.seconds + other.seconds, self.memory + other.memory, self.threads + other.threads)


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """Done, or why not; open files may come with it."""

    number: int
    error: int = 0
    explanation: str = ""
    heard: bool = True  # whether the process that was sent a signal takes note of it
    usage: dict[str, Spent] = {}  # by process


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """A process ended: with this exit code, or by this signal."""

    process: str
    code: int
    signal: int = 0


Told = Ready | Refused | Answer | Ended

requests = msgspec.json.Decoder(Request)
tidings = msgspec.json.Decoder(Told)
