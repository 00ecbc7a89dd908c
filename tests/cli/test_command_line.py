"""The command line as a whole: help, unknown words, failures, completion scripts, logs."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from seamark import cli
from seamark.cli import VERBS, main
from seamark.cli.background import in_front
from seamark.cli.failure import Failure
from seamark.cli.logging_setup import JsonFormatter, level_of, set_up
from seamark.config import LogSettings


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_with_examples(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: seamark {verb}")
    assert "examples:" in said
    assert f"seamark {verb}" in said.partition("examples:")[2] or verb == "completion"
    assert "exit codes" in said


def test_the_list_of_commands_names_all_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["-h"], ["--help"], ["help"]):
        assert main(arguments) == 0
        said = capsys.readouterr().out
        assert all(f"\n  {verb} " in said for verb in VERBS)
        assert "exit codes" in said


def test_help_needs_next_to_nothing() -> None:
    program = "import sys, seamark.cli; seamark.cli.main(['--help']); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"argparse", "asyncio", "msgspec", "logging", "aiohttp", "yaml"} & set(done.stderr.split())


def test_unknown_words_are_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stauts"]) == 2
    assert capsys.readouterr().err == "seamark: there is no command stauts, but status; see `seamark --help`\n"
    assert main(["--nope"]) == 2
    assert "no option --nope" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("seamark ")


def test_failures_are_a_line_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_arguments: list[str]) -> int:
        raise Failure("it is so", 2)

    def interrupt(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    assert cli.guarded(fail, []) == 2
    assert capsys.readouterr().err == "seamark: it is so\n"
    assert cli.guarded(interrupt, []) == 130


def test_up_in_the_background_is_the_same_command_in_front() -> None:
    assert in_front(["--detach", "--nodes", "3"]) == ["--nodes", "3"]
    assert in_front(["--merge-kubeconfig", "--detach", "--ephemeral"]) == ["--ephemeral"]
    assert in_front(["--merge-kubeconfig", "mine", "--nodes", "3"]) == ["--nodes", "3"]
    assert in_front(["--merge-kubeconfig=mine", "--detach=true", "-v"]) == ["-v"]


# --- logs ------------------------------------------------------------------------------------------


def test_verbosity_is_counted() -> None:
    assert [level_of(number) for number in range(4)] == ["warning", "info", "debug", "debug"]


def test_json_lines_have_everything() -> None:
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        record = logging.LogRecord("seamark.x", logging.ERROR, "f", 1, "it %s", ("failed",), sys.exc_info())
    record.created = 1_700_000_000.25
    line = JsonFormatter().format(record)
    assert "\n" not in line
    read = json.loads(line)
    assert "ValueError: broken" in read.pop("error")
    assert read == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "error",
        "logger": "seamark.x",
        "message": "it failed",
    }


def test_logs_go_to_a_file_that_may_be_moved(tmp_path: Path) -> None:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        set_up(LogSettings(level="info", format="json", file=str(tmp_path / "log")))
        logging.getLogger("a").info("first")
        (tmp_path / "log").rename(tmp_path / "log.1")
        logging.getLogger("a").info("second")
        logging.getLogger("a").debug("unheard")
    finally:
        for handler in root.handlers:
            handler.close()
        root.handlers[:], root.level = handlers, level
    assert json.loads((tmp_path / "log.1").read_text())["message"] == "first"
    assert json.loads((tmp_path / "log").read_text())["message"] == "second"
