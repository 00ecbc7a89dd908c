"""How every verb's parser looks: a sentence, the options, examples, what the exit code means."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

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
    """Headings of the epilogue are bold like those argparse makes."""

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


def truth(text: str) -> bool:
    """``--wait=false``, as kubectl's switches are written; for ``type=`` beside ``nargs="?"`` and ``const=True``."""
    if text.lower() in ("true", "1", "t"):
        return True
    if text.lower() in ("false", "0", "f"):
        return False
    raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")


def add_switch(parser: argparse.ArgumentParser, flag: str, *, default: bool, help: str) -> None:
    """A switch that can be turned on (``--flag``) or set (``--flag=false``)."""
    parser.add_argument(flag, nargs="?", const=True, default=default, type=truth, metavar="BOOL", help=help)
