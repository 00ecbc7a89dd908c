"""How command lines are read: switches as kubectl's users write them, and one line about what is wrong."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress

import pytest

from seamark.cli import VERBS, main
from seamark.cli.objects import delete, get
from seamark.cli.parsing import add_switch, duration, verb_parser


def parser() -> argparse.ArgumentParser:
    made = verb_parser("try", "Try.", examples="seamark try")
    made.add_argument("what", nargs="*")
    add_switch(made, "-A", "--all", help="all of it")
    add_switch(made, "--wait", default=True, help="wait")
    add_switch(made, "--unset", default=None, help="unset")
    add_switch(made, "--colour", default=None, negated=True, help="colour")
    return made


@pytest.mark.parametrize(
    ("words", "all_", "wait"),
    [
        ([], False, True),
        (["-A", "--wait"], True, True),
        (["--all=true", "--wait=false"], True, False),
        (["-A=False", "--wait=0"], False, False),
        (["--wait=false", "--wait"], False, True),
        (["--wait=TRUE", "-A=t"], True, True),
    ],
)
def test_switches_are_turned_on_or_set(words: list[str], all_: bool, wait: bool) -> None:
    for arguments in ([*words, "a", "b"], ["a", *words, "b"]):
        read = parser().parse_intermixed_args(arguments)
        assert (read.all, read.wait, read.unset, read.what) == (all_, wait, None, ["a", "b"])


def test_a_switch_may_have_an_opposite() -> None:
    for word, value in (("--colour", True), ("--no-colour", False), ("--colour=false", False)):
        assert parser().parse_args([word]).colour is value
    assert parser().parse_args([]).colour is None


def test_a_switch_takes_no_word_behind_it() -> None:
    assert delete.parser().parse_intermixed_args(["--wait", "pod", "web"]).what == ["pod", "web"]
    assert get.parser().parse_intermixed_args(["-A", "pods"]).what == ["pods"]


def test_other_spellings_of_truth_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--wait=maybe"])
    assert "--wait" in capsys.readouterr().err


def test_help_names_a_switch_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    said = capsys.readouterr().out
    assert "-A, --all " in said
    assert "=true" not in said


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_wrong_is_one_line(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([verb, "--no-such-option"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"seamark {verb}: ")
    assert said.endswith(f"; see `seamark {verb} --help`\n")
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30", 30), ("0.5", 0.5), ("5s", 5), ("1m30s", 90), ("2h", 7200), ("250ms", 0.25), ("2d", 172800), ("0s", 0)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "5 s", "-1s", "5s3", "inf", "1.2.3"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no duration"):
        duration(text)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["delete"], "what is to be deleted?"),
        (["delete", "--all"], "what is to be deleted?"),
        (["delete", "-f", "a.yaml", "svc"], "what is to be deleted?"),
        (["delete", "svc", "--all", "-l", "a=b"], "--all and -l contradict each other"),
    ],
)
def test_what_makes_no_sense_together_is_refused_before_anybody_is_asked(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    line = capsys.readouterr().err
    assert line.startswith("seamark: ")
    assert said in line
    assert line.count("\n") == 1


def test_help_is_as_wide_as_the_terminal_and_keeps_words_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    made = verb_parser(
        "look",
        "Looks at things " + "again and " * 10 + "again.",
        examples="seamark look --at-everything          # whatever it is, and wherever it may be found",
        environment={"SEAMARK_LOOK": "what to look at if nothing else says it, such as a-long-hyphenated-name"},
    )
    add_switch(made, "--at", help="at something with a-rather-long-name-with-hyphens, once")
    text = made.format_help()
    assert all(len(line) <= 60 for line in text.splitlines())
    assert "\n  seamark look --at-everything\n" in text
    for word in ("a-rather-long-name-with-hyphens,", "a-long-hyphenated-name"):
        assert word in text.split()


@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_fits_the_usual_terminal(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with suppress(SystemExit):
        main([*([verb] if verb else []), "--help"])
    text = capsys.readouterr().out
    examples = re.split("\n\n(?:environment|exit codes)", text.partition("examples:\n")[2])[0].splitlines()
    assert all(len(line) <= 80 or " " not in line.strip() for line in text.splitlines() if line not in examples)
    assert not any(len(line) > 80 and "  # " in line for line in examples), "a comment would keep it from being copied"


def test_sentences_are_broken_anew_where_the_terminal_is_narrow_but_not_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    about = (
        "A sentence of more columns than there are\nhere.\n\none     the first of the words to choose from\nother   b"
    )
    told = verb_parser("try", about, examples="seamark try").format_help().partition("\n\n")[2].partition("options")[0]
    assert told == (
        "A sentence of more columns than there\nare here.\n\n"
        "one     the first of the words to choose\n        from\nother   b\n\n"
    )
