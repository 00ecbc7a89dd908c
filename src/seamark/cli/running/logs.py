"""``seamark logs``: the log of a Seamark in the background."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import deque
from pathlib import Path
from typing import IO

from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.running.up import LOG_NAME

EXAMPLES = """\
seamark logs
seamark logs -f                 # and what it says from now on, until Ctrl-C or `seamark down`
seamark logs --tail 20
"""
LOOK_AGAIN = 0.2  # seconds


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "logs",
        "Print the log of a Seamark started with `seamark up --detach` (or with --log-file).",
        examples=EXAMPLES,
    )
    add_data_dir_option(made)
    add_switch(made, "-f", "--follow", help="go on as more is said")
    made.add_argument("--tail", metavar="N", type=int, default=-1, help="only the last N lines (default: all)")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    directory = data_dir_of(options.data_dir)
    found = running_in(directory)
    path = Path(found.log) if found is not None and found.log else directory / LOG_NAME
    if found is not None and found.ready and not found.log:
        raise Failure(f"pid {found.pid} runs in the foreground: what it says is on its terminal")
    try:
        with path.open("rb") as log:
            _show(log, options.tail)
            if options.follow:
                _follow(log, path, directory)
    except FileNotFoundError as error:
        raise Failure(f"there is no log at {path}: nothing has run in the background there") from error
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror}") from error
    return 0


def _show(log: IO[bytes], tail: int) -> None:
    lines = log if tail < 0 else deque(log, maxlen=tail)
    for line in lines:
        sys.stdout.write(line.decode(errors="replace"))
    sys.stdout.flush()


def _follow(log: IO[bytes], path: Path, directory: Path) -> None:
    """Print what is added to the file, until the Seamark of the directory has ended."""
    while True:
        ended = running_in(directory) is None  # before reading, so that its last lines are not missed
        _show(log, -1)
        if ended:
            return
        time.sleep(LOOK_AGAIN)
        if path.exists() and path.stat().st_ino != os.fstat(log.fileno()).st_ino:
            # The file was rotated: go on with the new one.
            _show(log, -1)
            with path.open("rb") as begun_anew:
                _follow(begun_anew, path, directory)
            return
