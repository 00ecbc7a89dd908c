"""A worker's process (``--workers``): what it does when it was forked, and as a program when it replaces another."""

from __future__ import annotations

import logging
import sys

import msgspec
import uvloop

from seamark import __version__
from seamark.cli.logging_setup import set_up
from seamark.cli.running import memory
from seamark.config import Config
from seamark.daemon.workers import Birth, Board, Worker, introduced

log = logging.getLogger(__name__)


class Task(msgspec.Struct, frozen=True):
    """What all workers of a server do alike: its settings, and what it runs beside the API server."""

    config: Config
    components: frozenset[str]
    version: str = __version__  # of the code that the server runs


def work(task: Task, birth: Birth, board: Board) -> None:
    memory.settle()
    uvloop.run(Worker(task.config, board, birth, task.components).run())


def replace(told: bytes, file: int, birth: Birth) -> None:
    """Work as a program of its own: for a task in JSON, with the board in this file."""
    task = msgspec.json.decode(told, type=Task)
    set_up(task.config.log)
    if task.version != __version__:
        log.error("Seamark was upgraded from %s to %s: start it again to have its workers", task.version, __version__)
        sys.exit(1)
    work(task, birth, Board(task.config.api.workers, file))


if __name__ == "__main__":
    introduced(int(sys.argv[1]), replace)
