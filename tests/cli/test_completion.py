"""Completion: the words that can stand at the cursor, asked for as the shell scripts do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from seamark.cli import VERBS, main


def complete(line: str, **environment: str) -> list[str]:
    """What the program writes to file descriptor 8 if a shell asks it to complete a line."""
    read, write = os.pipe()
    asked = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    # The script of a shell has this as `8>&1`; a pipe of ours may have any number.
    command = ["bash", "-c", f'"$@" 8>&{write}', "bash", sys.executable, "-m", "seamark"]
    subprocess.run(command, pass_fds=[write], env={**os.environ, **asked, **environment}, check=False)
    os.close(write)
    with os.fdopen(read) as words:
        return [word.rstrip() for word in words.read().splitlines()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("seamark st", ["status"]),
        ("seamark up --log-format ", ["text", "json"]),
        ("seamark up --log-format=j", ["--log-format=json"]),
        ("seamark get -o y", ["yaml"]),
        ("seamark get --all-n", ["--all-namespaces"]),
        ("seamark node sto", ["stop"]),
        ("seamark completion z", ["zsh"]),
        ("seamark why ", ["svc/", "pod/", "dns"]),
        ("seamark why svc/web --from ", ["pod/", "node/", "outside"]),
        ("seamark port-forward ", ["svc/", "pod/", "deployment/"]),
        ("seamark delete --dry", ["--dry-run"]),
        ("seamark dns --pods v", ["verified"]),
        ("seamark config con", ["controllers"]),
        ("seamark up --nodes ", []),
        ("seamark get --kubeconfig /does/not/exist svc ", []),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert complete(line) == words


def test_every_verb_is_offered() -> None:
    assert set(VERBS) <= set(complete("seamark "))


def test_files_and_directories(tmp_path: Path) -> None:
    (tmp_path / "web.yaml").touch()
    (tmp_path / "where").mkdir()
    assert complete(f"seamark apply -f {tmp_path}/we") == [f"{tmp_path}/web.yaml"]
    assert complete(f"seamark up --data-dir {tmp_path}/w") == [f"{tmp_path}/where/"]


def test_contexts_come_from_the_kubeconfig(tmp_path: Path) -> None:
    context = "{name: mine, context: {cluster: c, user: u}}"
    (tmp_path / "config").write_text(f"apiVersion: v1\nkind: Config\ncontexts: [{context}]\n")
    for line in ("seamark get --context ", "seamark dns --context "):
        assert complete(line, KUBECONFIG=str(tmp_path / "config")) == ["mine"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "seamark" in script
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)
