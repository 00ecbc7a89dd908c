"""``seamark status`` where processes serve together, and one of them is stuck."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from seamark_process import Seamark

from seamark.access import transport
from seamark.cli import main
from seamark.presence import find


def test_a_process_that_is_stopped_is_named_by_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its connection may be given to the one that is stopped, which looked as if nothing answered."""
    monkeypatch.setattr(transport, "CONNECT_TIMEOUT", 2.0)  # so that the test does not take as long
    seamark = Seamark(tmp_path / "data", "--workers", "2")
    presence = find(tmp_path / "data")
    assert presence is not None
    (worker,) = presence.workers
    try:
        os.kill(worker, signal.SIGSTOP)
        code = main(["status", "--data-dir", str(tmp_path / "data")])
    finally:
        os.kill(worker, signal.SIGCONT)
    said = capsys.readouterr().out
    assert (code, said.splitlines()[-1]) == (1, "running, but failing: worker-1"), said
    assert seamark.stop() == 0
