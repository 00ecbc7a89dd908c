"""A worker's process as a program of its own, which replaces a worker that ended."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from seamark.cli.running import worker
from seamark.config import settled
from seamark.daemon.workers import Birth, Board


@pytest.fixture
def logging_is_restored() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    root.handlers[:] = handlers


@pytest.mark.usefixtures("logging_is_restored")
def test_it_does_not_work_for_a_server_of_another_version(tmp_path: Path) -> None:
    config = settled({"data_dir": str(tmp_path), "log": {"file": str(tmp_path / "log")}})
    told = msgspec.json.encode(worker.Task(config, frozenset(), version="0.0.1"))
    with pytest.raises(SystemExit):
        worker.replace(told, -1, Birth(1, ("127.0.0.1", 6443)))
    assert "upgraded from 0.0.1" in (tmp_path / "log").read_text()


@pytest.mark.usefixtures("logging_is_restored")
def test_it_works_by_the_settings_and_on_the_board_of_the_main_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    config = settled({"data_dir": str(tmp_path), "api": {"workers": 3}, "log": {"file": str(log)}})
    task = worker.Task(config, frozenset({"controllers"}))
    memory = os.memfd_create("board")
    board = Board(config.api.workers, memory)
    board.advance(7)
    birth = Birth(2, ("127.0.0.1", 6443))

    def work(given: worker.Task, born: Birth, shared: Board) -> None:
        assert (given, born, shared.revision) == (task, birth, 7)
        shared.numbers[born.number] = 5
        logging.getLogger("seamark").warning("at work")

    monkeypatch.setattr(worker, "work", work)
    worker.replace(msgspec.json.encode(task), memory, birth)
    os.close(memory)
    assert board.numbers[2] == 5
    assert "at work" in log.read_text()
