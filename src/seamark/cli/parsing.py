"""How every verb's parser looks: a sentence, the options, examples, what the exit code means."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

from seamark.cli.terminal import colourful, styled

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "it failed; the reason is on stderr",
    2: "the command line or the configuration is wrong",
}


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Texts as they are written, headings in bold on a terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30)
        self._colour = colourful(sys.stdout)

    def start_section(self, heading: str | None) -> None:
        super().start_section(styled(heading, "bold", colour=self._colour) if heading else heading)


class _Parser(argparse.ArgumentParser):
    """Headings of the epilogue are bold like those argparse makes; what is wrong is said in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")

    def format_help(self) -> str:
        text = super().format_help()
        if not colourful(sys.stdout):
            return text
        lines = text.split("\n")
        headings = ("examples:", "exit codes:", "environment:")
        return "\n".join(styled(line, "bold", colour=True) if line in headings else line for line in lines)


def verb_parser(
    verb: str,
    about: str,
    *,
    examples: str,
    codes: Mapping[int, str] | None = None,
    environment: Mapping[str, str] | None = None,
    **more: Any,
) -> argparse.ArgumentParser:
    """A parser for ``seamark VERB``; ``examples`` are lines, ``codes`` say what differs from ``EXIT_CODES``."""
    sections = [f"examples:\n{_indented(examples)}"]
    if environment:
        sections.append(f"environment:\n{_listed(environment)}")
    meanings = {**EXIT_CODES, **(codes or {})}
    sections.append(f"exit codes:\n{_listed({str(code): text for code, text in meanings.items() if text})}")
    return _Parser(
        prog=f"seamark {verb}",
        description=about,
        epilog="\n\n".join(sections),
        formatter_class=_Formatter,
        allow_abbrev=False,
        **more,
    )


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.strip("\n").split("\n"))


def _listed(entries: Mapping[str, str]) -> str:
    room = max(map(len, entries)) + 2
    return "\n".join(f"  {name:<{room}}{text}" for name, text in entries.items())


# How a truth value may be written behind a switch: as Go reads one, because kubectl's users write it so.
_SPELLINGS = {
    True: ("true", "True", "TRUE", "t", "T", "1"),
    False: ("false", "False", "FALSE", "f", "F", "0"),
}
_MEANINGS = {word: value for value, words in _SPELLINGS.items() for word in words}


def truth(text: str) -> bool:
    """A truth value, for ``type=``."""
    try:
        return _MEANINGS[text]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false") from None


def add_switch(parser: argparse.ArgumentParser, *flags: str, help: str, default: bool | None = False) -> None:
    """A switch that can be turned on (``--flag``) or set (``--flag=false``).

    A value behind it would be ambiguous (``delete --wait pod``), and argparse would take it: so what is set is an
    option of its own, one of each spelling, that no help mentions.
    """
    switch = parser.add_argument(*flags, action="store_true", default=default, help=help)
    for value, words in _SPELLINGS.items():
        parser.add_argument(
            *(f"{flag}={word}" for flag in flags for word in words),
            dest=switch.dest,
            action="store_const",
            const=value,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:h|ms|m|s))+|\d+(?:\.\d*)?")
_PARTS = re.compile(r"(\d+(?:\.\d*)?)(h|ms|m|s)?")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "": 1.0}


def duration(text: str) -> float:
    """Seconds: as a number, or as Go writes them (``1m30s``); for ``type=``."""
    if not _DURATION.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no duration, such as 30, 30s or 1m30s")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(text))
