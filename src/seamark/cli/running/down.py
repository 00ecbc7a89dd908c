"""``seamark down``: stop the Seamark of a data directory."""

from __future__ import annotations

import argparse
import contextlib
import os
import select
import signal
import time
from pathlib import Path

from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.parsing import duration, verb_parser
from seamark.cli.terminal import Progress

EXAMPLES = """\
seamark down
seamark down --data-dir ./data --timeout 60
"""
LOOK_AGAIN = 0.02  # seconds


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "down",
        "Stop the Seamark that runs in a data directory, and wait until it has ended.  Its state stays.\n"
        "The process is the one that holds the directory's lock, so no other can be hit by mistake.",
        examples=EXAMPLES,
        codes={0: "it has ended, or was not running", 1: "it could not be stopped"},
    )
    add_data_dir_option(made)
    made.add_argument(
        "--timeout", metavar="DURATION", type=duration, default=30.0, help="how long to wait (default 30)"
    )
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    directory = data_dir_of(options.data_dir)
    found = running_in(directory)
    if found is None:
        print(f"not running in {directory}")
        return 0
    if not found.pid:
        raise Failure(f"the Seamark in {directory} runs where it cannot be reached from here: another container?")
    try:
        with Progress(f"waiting for pid {found.pid} to end …"):
            ended = _end(directory, found.pid, options.timeout)
    except PermissionError as error:
        raise Failure(f"pid {found.pid} belongs to another user: {error.strerror}") from error
    if not ended:
        raise Failure(f"pid {found.pid} has not ended within {options.timeout:g} s; wait, or `kill -9 {found.pid}`")
    print(f"stopped pid {found.pid}")
    return 0


def _end(directory: Path, pid: int, seconds: float) -> bool:
    """Ask the process to end; whether it has ended within so many seconds."""
    if not hasattr(os, "pidfd_open"):
        return _end_by_number(directory, pid, seconds)
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True  # it has ended by itself
    try:
        # A process number may be reused: only if the holder is still the same now is the handle surely the holder's.
        still = running_in(directory)
        if still is None or still.pid != pid:
            return True
        signal.pidfd_send_signal(process, signal.SIGTERM)
        ended, _, _ = select.select([process], [], [], seconds)
        return bool(ended)
    finally:
        os.close(process)


def _end_by_number(directory: Path, pid: int, seconds: float) -> bool:
    """The same on systems without process handles: it has ended when it no longer holds the directory."""
    until = time.monotonic() + seconds
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    while (found := running_in(directory)) is not None and found.pid == pid:
        if time.monotonic() >= until:
            return False
        time.sleep(LOOK_AGAIN)
    return True
