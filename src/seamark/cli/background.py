"""``seamark up --detach``: the same command in a session of its own, writing to a log file in the data directory."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.failure import Failure
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.config import Config
    from seamark.presence import Presence

LOG_NAME = "seamark.log"
LARGEST_LOG = 16 * 1024 * 1024  # a longer one is put aside at the next start
LOOK_AGAIN = 0.02  # seconds


def start_in_background(config: Config, arguments: list[str]) -> Presence:
    """Start it, wait until it is ready, and say what runs; ``Failure`` with its own last words if it ends instead."""
    from seamark.presence import DirectoryError, find

    directory = Path(config.data_dir)
    log = Path(config.log.file or directory / LOG_NAME).absolute()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        holder = find(directory)
        output = _opened(log)
    except DirectoryError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot use the data directory {directory}: {error.strerror}; see --data-dir") from error
    try:
        if holder is not None:
            raise Failure(f"the data directory {directory} is in use by pid {holder.pid}; stop it or give --data-dir")
        began = os.fstat(output).st_size
        command = [sys.executable, "-m", "seamark", "up", *in_front(arguments)]
        process = subprocess.Popen(
            [*command, "--log-file", str(log)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    return _await_ready(process, directory, log, began)


def in_front(arguments: list[str]) -> list[str]:
    """The arguments of ``up`` for the process itself: what is done once it is ready is left to whoever started it."""
    kept: list[str] = []
    before = ""
    for word in arguments:
        taken = before == "--merge-kubeconfig" and not word.startswith("-")
        if not taken and word.partition("=")[0] not in ("--detach", "--merge-kubeconfig"):
            kept.append(word)
        before = word
    return kept


def _opened(log: Path) -> int:
    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_name(f"{log.name}.1"))
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _await_ready(process: subprocess.Popen[bytes], directory: Path, log: Path, began: int) -> Presence:
    from seamark.presence import find

    try:
        with Progress("starting …"):
            while process.poll() is None:
                found = find(directory)
                if found is not None and found.ready and found.pid == process.pid:
                    return found
                time.sleep(LOOK_AGAIN)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    raise Failure(
        _last_words(log, began) or f"it ended; see {log}", process.returncode if process.returncode > 0 else 1
    )


def _last_words(log: Path, began: int) -> str:
    """The one line it failed with, if it failed as commands do."""
    with log.open("rb") as lines:
        lines.seek(began)
        said = [line for line in lines.read().decode(errors="replace").splitlines() if line.startswith("seamark: ")]
    return said[-1].removeprefix("seamark: ") if said else ""
