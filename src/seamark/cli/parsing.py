"""The parsers of all verbs: a sentence, the options, examples, the meaning of exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from seamark.cli.terminal import colourful, columns, folded, indented, styled, width

EXIT_CODES: Mapping[int, str] = {
    0: "done",
    1: "it failed; the reason is on stderr",
    2: "the command line or the configuration is wrong",
}


_GAP = "   "  # between the columns of a list
_PIPE = 78  # columns of help in a pipe


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Keeps line breaks and words whole; headings are bold on a terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=30, width=columns(sys.stdout) or _PIPE)
        self._colour = colourful(sys.stdout)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return folded(" ".join(text.split()), width).split("\n")

    def _get_help_string(self, action: argparse.Action) -> str | None:
        """What it is for and, where that does not say so itself, its default."""
        unsaid = "default" not in (action.help or "default")
        told = (
            unsaid
            and isinstance(action.default, str | int | float)
            and action.default not in ("", False, argparse.SUPPRESS)
        )
        return f"{action.help} (default %(default)s)" if told else action.help

    def start_section(self, heading: str | None) -> None:
        super().start_section(styled(heading, "bold", colour=self._colour) if heading else heading)


class _Parser(argparse.ArgumentParser):
    """Makes the headings of the epilogue bold, too, and prints an error as one line."""

    wording: Callable[[int | None], tuple[str, str]]
    """The description and the epilogue, in so many columns; made only for those who ask for help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see `{self.prog} --help`\n")

    def add_argument(self, *names: Any, **more: Any) -> argparse.Action:
        """As ever; a word to choose is called by its choices where it is missing, and not by our name for it."""
        if more.get("choices") and not str(names[0]).startswith("-"):
            more.setdefault("metavar", f"{{{','.join(more['choices'])}}}")
        return super().add_argument(*names, **more)

    def format_help(self) -> str:
        self.description, self.epilog = self.wording(columns(sys.stdout))
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
    meanings = {str(code): text for code, text in {**EXIT_CODES, **(codes or {})}.items() if text}

    def wording(room: int | None) -> tuple[str, str]:
        sections = [
            f"examples:\n{indented(examples, room)}",
            *([f"environment:\n{_listed(environment, room)}"] if environment else []),
            f"exit codes:\n{_listed(meanings, room)}",
        ]
        return "\n\n".join(_fitting(each, room) for each in about.split("\n\n")), "\n\n".join(sections)

    made = _Parser(prog=f"seamark {verb}", formatter_class=_Formatter, allow_abbrev=False, **more)
    made.wording = wording
    return made


def _fitting(paragraph: str, room: int | None) -> str:
    """The paragraph as it is written; if the terminal is narrower, broken anew, unless it is a list."""
    lines = paragraph.split("\n")
    if room is None or all(width(line) <= room for line in lines):
        return paragraph
    if not any(_GAP in line for line in lines):
        return folded(" ".join(lines), room)
    tails = [line.partition(_GAP)[2].lstrip() for line in lines]
    hangs = [len(line) - len(tail) if tail else 0 for line, tail in zip(lines, tails, strict=True)]
    return "\n".join(folded(line, room, hang=hang) for line, hang in zip(lines, hangs, strict=True))


def _listed(entries: Mapping[str, str], room: int | None) -> str:
    longest = max(map(len, entries)) + 2
    return "\n".join(folded(f"  {name:<{longest}}{text}", room, hang=longest + 2) for name, text in entries.items())


# The spellings of true and false that Go accepts, because kubectl's users write them.
_SPELLINGS = {
    True: ("true", "True", "TRUE", "t", "T", "1"),
    False: ("false", "False", "FALSE", "f", "F", "0"),
}


def add_switch(
    parser: argparse.ArgumentParser,
    *flags: str,
    help: str,
    default: bool | None = False,
    dest: str | None = None,
    negated: bool = False,
) -> None:
    """A switch that is turned on by ``--flag`` or set by ``--flag=false``; ``negated`` adds ``--no-flag``.

    A separate word behind it would be ambiguous (``delete --wait pod``), and argparse would take it.  So each spelling
    of ``--flag=value`` is an option of its own, which the help does not show.
    """
    more: dict[str, Any] = {"dest": dest} if dest else {}
    action: Any = argparse.BooleanOptionalAction if negated else "store_true"
    switch = parser.add_argument(*flags, action=action, default=default, help=help, **more)
    for value, words in _SPELLINGS.items():
        parser.add_argument(
            *(f"{flag}={word}" for flag in flags for word in words),
            dest=switch.dest,
            action="store_const",
            const=value,
            default=argparse.SUPPRESS,
            help=argparse.SUPPRESS,
        )


def duration(text: str) -> float:
    """Seconds, from a number of seconds or a duration with units (``1m30s``); for ``type=``."""
    from seamark.kinds.values import times

    try:
        return float(text) if text.replace(".", "", 1).isdecimal() else times.parse_duration(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration, such as 30, 30s or 1m30s") from None
