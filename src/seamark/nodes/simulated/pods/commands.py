"""What a container's command would do, for the few commands whose end can be told without running them.  Pure.

    sleep 300               ends well after five minutes; ``sleep infinity`` never
    true, false, exit 3     end at once
    sh -c 'sleep 5; exit 1' one after the other, also with ``&&``

Jobs and CronJobs are often tried with such commands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import inf, isnan

from seamark.remembering import LONGEST

_SHELLS = frozenset({"sh", "bash", "ash", "dash"})
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

# After how many seconds, and with which exit code.
End = tuple[float, int]


def end(command: Sequence[str], arguments: Sequence[str]) -> End | None:
    """How a container with this command ends; None if only running it could tell."""
    words = (*command, *arguments)
    return (_end if sum(map(len, words)) <= LONGEST else _end.__wrapped__)(words) if command else None


@lru_cache(maxsize=1024)
def _end(words: tuple[str, ...]) -> End | None:
    if len(words) == 3 and _program(words[0]) in _SHELLS and words[1] == "-c":
        return _script(words[2])
    return _simple(words)


def _script(text: str) -> End | None:
    lasted, code = 0.0, 0
    for part in text.replace("&&", ";\0").split(";"):
        chained, words = part.startswith("\0"), part.lstrip("\0").split()
        if not words or (chained and code):
            continue
        done = (0.0, int(words[1])) if _is_exit(words) else _simple(words)
        if done is None:
            return None
        lasted, code = lasted + done[0], done[1]
        if words[0] == "exit":
            break
    return lasted, code


def _is_exit(words: Sequence[str]) -> bool:
    return len(words) == 2 and words[0] == "exit" and words[1].isascii() and words[1].isdigit() and int(words[1]) < 256


def _simple(words: Sequence[str]) -> End | None:
    match _program(words[0]), *words[1:]:
        case ["true"]:
            return 0.0, 0
        case ["false"]:
            return 0.0, 1
        case ["sleep", time]:
            seconds = _seconds(time)
            return None if seconds is None else (seconds, 0)
        case _:
            return None


def _program(path: str) -> str:
    return path.rpartition("/")[2]


def _seconds(text: str) -> float | None:
    number, unit = (text[:-1], _UNITS[text[-1:]]) if text[-1:] in _UNITS else (text, 1.0)
    try:
        seconds = float(number) * unit
    except ValueError:
        return None
    return None if isnan(seconds) or seconds < 0 else min(seconds, inf)
