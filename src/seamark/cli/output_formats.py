"""The formats that ``-o`` can name, as kubectl writes them: ``yaml``, ``jsonpath={.items}``, ``custom-columns=…``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# Those with an ``=`` need something behind it.
OBJECTS = ("json", "yaml", "name")
TEMPLATES = ("jsonpath=", "jsonpath-as-json=", "jsonpath-file=", "custom-columns=", "custom-columns-file=")


class Output(NamedTuple):
    """A format, and the template or the columns that belong to it."""

    format: str = ""
    argument: str = ""

    @property
    def as_table(self) -> bool:
        """Whether it is the server's own table."""
        return self.format in ("", "wide")


class OutputFormats:
    """For ``type=``: one of some formats.  ``words`` are what completion offers."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def __call__(self, text: str) -> Output:
        name, _, argument = text.partition("=")
        if f"{name}=" not in self.words:
            if text not in self.words:
                raise argparse.ArgumentTypeError(
                    f'unable to match a printer suitable for the output format "{text}", '
                    f"allowed formats are: {','.join(sorted(word.rstrip('=') for word in self.words))}"
                )
            return Output(text)
        what = "custom columns" if name.startswith("custom-columns") else "template"
        if not argument:
            raise argparse.ArgumentTypeError(f"{name} format specified but no {what} given")
        if not name.endswith("-file"):
            return Output(name, argument)
        try:
            return Output(name.removesuffix("-file"), Path(argument).read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise argparse.ArgumentTypeError(f"error reading {what} file {argument}: {error}") from error
