"""Completion: what can stand where the cursor is."""

from __future__ import annotations

import argparse
import importlib
import shutil
import subprocess

import pytest

from seamark.cli import VERBS, main
from seamark.cli.completion_model import Value, Verb, verb_of, verbs
from seamark.cli.completion_shells import SHELLS
from seamark.cli.completion_words import Wanted, wanted

ABOUT = {verb: about for verb, (_, about) in VERBS.items()}


def load(verb: str) -> Verb:
    return verb_of(verb, ABOUT[verb], importlib.import_module(VERBS[verb][0]).parser())


def at(*typed: str) -> Wanted:
    return wanted(typed, ABOUT, load)


def offered(*typed: str) -> list[str]:
    found = at(*typed)
    return [f"{found.lead}{word}" for word, _ in found.words if word.startswith(found.typed)]


def test_every_verb_and_option_is_known() -> None:
    by_name = {verb.name: verb for verb in verbs(VERBS)}
    assert list(by_name) == list(VERBS)
    for name, verb in by_name.items():
        parser = importlib.import_module(VERBS[name][0]).parser()
        shown = [action for action in parser._actions if action.help != argparse.SUPPRESS]
        flags = {flag for action in shown for flag in action.option_strings}
        assert {flag for option in verb.options for flag in option.flags} == flags
        assert flags == set(offered(name, "-"))
    get = by_name["get"]
    assert [get.place(number).source for number in range(3)] == ["kinds", "names", "names"]
    values = {flag: option.value for option in get.options for flag in option.flags}
    assert values["-w"] is None
    assert values["--kubeconfig"] == Value("files")


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (["st"], ["status"]),
        (["--v"], ["--version"]),
        (["hel"], ["help"]),
        (["help", "sta"], ["status"]),
        (["help", "status", ""], []),
        (["nope", ""], []),
        (["up", "--log-format", ""], ["text", "json"]),
        (["up", "--log-format=j"], ["--log-format=json"]),
        (["get", "-o", "y"], ["yaml"]),
        (["get", "--output=na"], ["--output=name"]),
        (["get", "--no-h"], ["--no-headers"]),
        (["node", "sto"], ["stop"]),
        (["node", "stop", "node-1", ""], []),
        (["completion", "z"], ["zsh"]),
        (["completion", "zsh", ""], []),
        (["why", ""], ["svc/", "pod/", "dns"]),
        (["delete", "--casc"], ["--cascade"]),
        (["delete", "--cascade", "or"], ["orphan"]),
    ],
)
def test_words(typed: list[str], words: list[str]) -> None:
    assert offered(*typed) == words


@pytest.mark.parametrize(
    ("typed", "source", "lead", "rest", "kind"),
    [
        (["get", ""], "kinds", "", "", ""),
        (["get", "svc,en"], "kinds", "svc,", "en", ""),
        (["get", "svc", "w"], "names", "", "w", "svc"),
        (["get", "svc", "a", "w"], "names", "", "w", "svc"),
        (["get", "svc/w"], "names", "svc/", "w", "svc"),
        (["get", "svc/web", ""], "kinds", "", "", ""),
        (["get", "-A", "-o", "wide", "svc", ""], "names", "", "", "svc"),
        (["get", "-n", ""], "namespaces", "", "", ""),
        (["get", "--namespace=sh"], "namespaces", "--namespace=", "sh", ""),
        (["get", "--context", ""], "contexts", "", "", ""),
        (["get", "-f", "x"], "files", "", "x", ""),
        (["up", "--data-dir=x"], "directories", "--data-dir=", "x", ""),
        (["node", "stop", "no"], "nodes", "", "no", ""),
        (["why", "svc/w"], "names", "svc/", "w", "svc"),
        (["resolve", "a/b"], "", "", "a/b", ""),
        (["logs", ""], "", "", "", ""),
    ],
)
def test_what_is_to_be_found_out(typed: list[str], source: str, lead: str, rest: str, kind: str) -> None:
    found = at(*typed)
    assert (found.source, found.lead, found.typed, found.kind) == (source, lead, rest, kind)


@pytest.mark.parametrize("way", [["-n", "shop"], ["-nshop"], ["--namespace", "shop"], ["--namespace=shop"]])
def test_whom_to_ask_is_what_was_typed(way: list[str]) -> None:
    found = at("get", *way, "--kubeconfig", "k", "-w", "svc", "")
    assert (found.source, found.kind) == ("names", "svc")
    assert found.given == {"--namespace": "shop", "--kubeconfig": "k"}


def test_words_are_printed_with_what_they_are_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "words", "stat"]) == 0
    assert capsys.readouterr().out == f"words\nstatus\t{ABOUT['status']}\n"
    assert main(["completion", "words", "apply", "-f", ""]) == 0
    assert capsys.readouterr().out == "files\n"
    assert main(["completion", "words"]) == 0
    assert capsys.readouterr().out.count("\n") == 1 + len(VERBS) + 3
    assert main(["completion", "words", "get", "--kubeconfig", "/does/not/exist", ""]) == 1
    assert "/does/not/exist" in capsys.readouterr().err


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_are_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script == SHELLS[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell} on this machine")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)
