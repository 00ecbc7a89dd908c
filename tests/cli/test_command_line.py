"""The command line as a whole: help, unknown words, failures, completion scripts, logs."""

from __future__ import annotations

import argparse
import importlib
import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest

from seamark import cli
from seamark.cli import VERBS, main
from seamark.cli.background import in_front
from seamark.cli.completion_model import Value, verbs
from seamark.cli.completion_shells import SHELLS
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


# --- completion ------------------------------------------------------------------------------------


def test_completion_knows_every_verb_and_option() -> None:
    by_name = {verb.name: verb for verb in verbs(VERBS)}
    assert list(by_name) == list(VERBS)
    for name, verb in by_name.items():
        parser = importlib.import_module(VERBS[name][0]).parser()
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        flags = {flag for action in shown for flag in action.option_strings}
        assert {flag for option in verb.options for flag in option.flags} == flags
    get = by_name["get"]
    assert [get.place(number).source for number in range(3)] == ["kinds", "names", "names"]
    values = {flag: option.value for option in get.options for flag in option.flags}
    assert values["-o"] == Value("words", ("wide", "json", "yaml", "name"))
    assert values["--kubeconfig"] == Value("files")
    assert values["-n"] == Value("namespaces")
    assert values["-w"] is None
    assert by_name["node"].place(0).words == ("stop", "start")


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_scripts_name_everything(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for verb in verbs(VERBS):
        assert verb.name in script
        for option in verb.options:
            for flag in option.flags:
                assert (flag.lstrip("-") if shell == "fish" else flag) in script


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
