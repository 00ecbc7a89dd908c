"""The command line as a whole: help, unknown words, failures, logs."""

from __future__ import annotations

import argparse
import json
import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seamark import cli
from seamark.cli import VERBS, main
from seamark.cli.asking.why import options_line
from seamark.cli.failure import Failure, ServerFailure
from seamark.cli.logging_setup import JsonFormatter, LineFormatter, set_up
from seamark.cli.running.up import announce, in_front, own_command
from seamark.config import LogSettings
from seamark.presence import Presence


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
    assert not {"argparse", "argcomplete", "asyncio", "msgspec", "logging", "aiohttp", "yaml"} & set(
        done.stderr.split()
    )


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_the_locale_cannot_show_is_escaped(encoding: str) -> None:
    words, environment = [sys.executable, "-m", "seamark", "--help"], {**os.environ, "PYTHONIOENCODING": encoding}
    done = subprocess.run(words, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"COMMAND \\u2026" in done.stdout


def test_help_may_be_cut_off_by_its_reader() -> None:
    reading, writing = os.pipe()
    os.close(reading)  # as `| head -1` does, sooner or later
    done = subprocess.run([sys.executable, "-m", "seamark", "--help"], stdout=writing, stderr=subprocess.PIPE)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_while_a_verb_is_loaded_is_no_traceback(tmp_path: Path) -> None:
    """It waits for what is imported: a half-made class crashes msgspec."""
    (tmp_path / "slow_verb.py").write_text(
        "import os, signal\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "print('whole')\n"
        "def main(arguments): print('and run')\n"
    )
    program = "import seamark.cli as cli; cli.VERBS['slow'] = ('slow_verb', ''); raise SystemExit(cli.main(['slow']))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a test's worker ignores it
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "whole\n", "")


def test_unknown_words_are_pointed_at(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stauts"]) == 2
    assert capsys.readouterr().err == "seamark: there is no command stauts, but status; see `seamark --help`\n"
    assert main(["bogus"]) == 2
    assert capsys.readouterr().err == "seamark: there is no command bogus; see `seamark --help`\n"
    assert main(["stop"]) == 2
    assert capsys.readouterr().err == "seamark: there is no command stop, but down; see `seamark --help`\n"
    assert main(["--nope"]) == 2
    assert "no option --nope" in capsys.readouterr().err
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("seamark ")


def test_commands_to_try_can_be_typed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_command(".venv/bin/seamark") == ".venv/bin/seamark"
    assert own_command("/x/seamark/__main__.py") == f"{sys.executable} -m seamark"
    (tmp_path / "seamark").write_text("#!/bin/sh\n")
    (tmp_path / "seamark").chmod(0o755)
    assert own_command(".venv/bin/seamark") == "seamark"


def test_what_to_try_depends_on_what_there_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    presence = Presence(1, api="https://a", kubeconfig="/k/c", dns=("[::1]:53",), cluster_domain="c.local")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SEAMARK_DATA_DIR", "/k")
    monkeypatch.setattr("sys.argv", [".venv/bin/seamark"])
    announce(presence, None)
    said = capsys.readouterr().out.splitlines()
    assert "  .venv/bin/seamark get svc,endpoints" in said
    assert "  .venv/bin/seamark demo" in said
    assert said[-2:] == ["stop it with Ctrl-C", "ready"]
    assert "  .venv/bin/seamark resolve kubernetes.default.svc.c.local. --server [::1]:53" in said
    for name in ("kubectl", "dig"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    announce(presence, "mine", detached=True)
    said = capsys.readouterr().out.splitlines()
    assert "  kubectl get svc,endpoints --context mine" in said
    assert "  dig @::1 -p 53 kubernetes.default.svc.c.local" in said
    assert "  .venv/bin/seamark why -A --context mine" in said
    assert said[-2:] == ["stop it with `.venv/bin/seamark down`", "ready"]


def test_what_to_try_means_the_seamark_that_was_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SEAMARK_DATA_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["seamark"])
    announce(Presence(1, api="https://a", kubeconfig="/my data/kubeconfig"), None, detached=True)
    said = capsys.readouterr().out.splitlines()
    assert "  export KUBECONFIG='/my data/kubeconfig'" in said
    assert "  seamark demo --data-dir '/my data'" in said
    assert said[-2:] == ["stop it with `seamark down --data-dir '/my data'`", "ready"]


def test_the_log_of_the_background_says_nothing_about_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "seamark.log"
    with log.open("w") as output:
        monkeypatch.setattr("sys.stdout", output)
        announce(Presence(1, api="https://a", kubeconfig="/k/c", log=str(log)), None)
    assert log.read_text().splitlines() == [
        "API server   https://a",
        "kubeconfig   /k/c",
        f"log          {log}",
        "ready",
    ]


def test_the_next_command_of_why_can_be_typed() -> None:
    options = argparse.Namespace(context="my own", kubeconfig="/my data/kubeconfig")
    assert options_line(options) == "seamark why '--context=my own' '--kubeconfig=/my data/kubeconfig'"


def test_a_missing_word_is_named_by_its_choices(capsys: pytest.CaptureFixture[str]) -> None:
    for verb, choices in (("node", "{list,stop,start}"), ("rotate", "{signing-key,admin-token,ca}")):
        with pytest.raises(SystemExit):
            main([verb])
        assert f"required: {choices};" in capsys.readouterr().err


def test_no_help_shows_our_own_names_of_settings(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in cli.VERBS:
        with pytest.raises(SystemExit):
            main([verb, "--help"])
        assert not re.search(r"--\S+ [A-Z]+\.[A-Z_]+", capsys.readouterr().out), verb


def test_failures_are_a_line_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_arguments: list[str]) -> int:
        raise Failure("it is so", 2)

    def interrupt(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    assert cli.guarded(fail, []) == 2
    assert capsys.readouterr().err == "seamark: it is so\n"
    assert cli.guarded(interrupt, []) == 130


@pytest.mark.parametrize("kind", [Failure, ServerFailure])
def test_what_files_and_servers_say_does_not_reach_the_terminal_as_commands(kind: type[Failure]) -> None:
    assert kind("a\x1b]0;x\x07\r\x9b31m\tb\n c").line.endswith("a\\x1b]0;x\\x07\\x0d\\x9b31m\tb\n c")


def test_up_in_the_background_is_the_same_command_in_front() -> None:
    assert in_front(["--detach", "--nodes", "3"]) == ["--nodes", "3"]
    assert in_front(["--merge-kubeconfig", "--detach", "--ephemeral"]) == ["--ephemeral"]
    assert in_front(["--merge-kubeconfig", "mine", "--nodes", "3"]) == ["--nodes", "3"]
    assert in_front(["--merge-kubeconfig=mine", "--detach=true", "-v"]) == ["-v"]


# --- logs ------------------------------------------------------------------------------------------


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


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_a_disk_that_cannot_take_what_is_printed_is_told_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "seamark", "--version"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "seamark: cannot write to standard output: No space left on device\n"


def test_a_closed_standard_output_is_no_failure(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "seamark", "status", "--data-dir", str(tmp_path)]
    done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *words], stderr=subprocess.PIPE, text=True, check=False)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("quoted", ["a\n12:00:00 ERROR seamark forged", "a\r\x1b[2Jb", "a\u2028b\x85c", "a\udc80"])
def test_what_users_choose_forges_no_line_in_the_log(quoted: str) -> None:
    formatter = LineFormatter("%(levelname)s %(message)s")
    record = logging.LogRecord("seamark", logging.WARNING, "", 0, "GET %s: failed", (quoted,), None)
    said = formatter.format(record)
    assert said.isprintable()
    assert said.startswith("WARNING GET a\\")
    try:
        raise ValueError(quoted.replace("\n", " "))
    except ValueError:
        record.exc_info = sys.exc_info()
    assert all(line.isprintable() for line in formatter.format(record).split("\n"))


def test_what_is_printable_stays_in_the_log_as_it_is() -> None:
    record = logging.LogRecord("seamark", logging.WARNING, "", 0, "näher: %s", ("日本 'x' \\n",), None)
    assert LineFormatter("%(message)s").format(record) == "näher: 日本 'x' \\n"
