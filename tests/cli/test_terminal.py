"""Colours, widths and progress."""

from __future__ import annotations

import io
import os
import termios
import time

import pytest

from seamark.cli import terminal
from seamark.cli.terminal import Progress, colourful, columns, folded, styled, width


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it() -> None:
    assert colourful(Terminal(), {})
    assert colourful(Terminal(), {"NO_COLOR": ""})
    assert not colourful(Terminal(), {"NO_COLOR": "1"})
    assert not colourful(Terminal(), {"TERM": "dumb"})
    assert not colourful(io.StringIO(), {})
    assert styled("a", "red", colour=True) == "\x1b[31ma\x1b[0m"
    assert styled("a", "red", colour=False) == styled("a", "", colour=True) == "a"


@pytest.mark.parametrize(("text", "columns"), [("web", 3), ("", 0), ("é", 1), ("e\u0301", 1), ("日本", 4), ("ｗ", 2)])
def test_widths_are_those_of_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


def test_progress_is_silent_at_first_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TERM", raising=False)
    monkeypatch.setattr(terminal, "PATIENCE", 1e6)
    quick = Terminal()
    with Progress("working", quick):
        pass
    assert quick.getvalue() == ""
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    slow = Terminal()
    with Progress("working", slow):
        while "working" not in slow.getvalue():
            time.sleep(0.01)
    assert slow.getvalue().endswith("\r\x1b[2K")


def test_progress_in_a_pipe_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PATIENCE", 0.0)
    pipe = io.StringIO()
    with Progress("working", pipe):
        time.sleep(0.15)
    assert pipe.getvalue() == ""


def test_output_is_as_wide_as_told_or_as_the_terminal_is() -> None:
    assert columns(io.StringIO(), {}) is None
    assert columns(io.StringIO(), {"COLUMNS": "132"}) == 132
    assert columns(io.StringIO(), {"COLUMNS": "wide"}) is None
    assert columns(Terminal(), {}) is None  # it does not say
    leader, follower = os.openpty()
    with os.fdopen(leader), os.fdopen(follower, "w") as terminal_like:
        termios.tcsetwinsize(follower, (24, 97))
        assert columns(terminal_like, {}) == 97
        assert columns(terminal_like, {"COLUMNS": "60"}) == 60


def test_lines_are_folded_between_words() -> None:
    assert folded("  up             everything in one process", None) == "  up             everything in one process"
    assert folded("  up  everything in one-and-only process", 24, hang=4).splitlines() == [
        "  up  everything in",
        "    one-and-only process",
    ]


def test_a_word_too_long_for_the_room_stays_whole_and_where_it_is():
    path = "/home/somebody/.local/state/seamark/kubeconfig"
    assert folded(f"{'':13}{path} (also)", 40, hang=13) == f"{'':13}{path}\n{'':13}(also)"
