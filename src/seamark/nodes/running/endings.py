"""How containers are asked to end, and what is said of those that ended."""

from __future__ import annotations

import signal
from pathlib import Path

from seamark.nodes.running.machine.messages import Start
from seamark.nodes.running.preparing.starting import MESSAGE
from seamark.nodes.running.spec import Container
from seamark.nodes.running.streaming.container_logs import LogFile

_LONGEST_MESSAGE = 4096


def stop_signal(name: str) -> int:
    """``SIGUSR1``, ``USR1``, ``SIGRTMIN+3`` or a number; SIGTERM if nothing is said."""
    word, plus, more = name.upper().removeprefix("SIG").partition("+")
    if word.isdecimal():
        return int(word)
    number = getattr(signal, f"SIG{word}", signal.SIGTERM) if word else signal.SIGTERM
    return int(number) + (int(more) if plus and more.isdecimal() else 0)


def start_error(start: Start, error: OSError) -> str:
    """Why a program could not be started, in the words of a container runtime."""
    if isinstance(error, FileNotFoundError):
        return f'exec: "{start.arguments[0]}": executable file not found in $PATH'
    return f'exec: "{start.arguments[0]}": {error.strerror or error}'


def message(container: Container, folder: Path, log: LogFile, *, failed: bool) -> str:
    """What a container of the Pod with this folder left as its message, or the end of its log where that stands in."""
    try:
        with open(folder / "containers" / container.name / MESSAGE, "rb") as opened:
            left = opened.read(_LONGEST_MESSAGE).decode(errors="replace")
    except OSError:
        left = ""
    if left or not failed or container.termination_message_policy != "FallbackToLogsOnError":
        return left
    return log.end()
