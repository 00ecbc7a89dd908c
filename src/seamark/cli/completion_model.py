"""What can follow what on the command line, read from the verbs' own parsers: completion cannot be out of date."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

# What a value can be: nothing one could guess, a path, words known beforehand, or something to ask the cluster for.
Source = Literal["", "files", "directories", "words", "kinds", "names", "nodes", "namespaces", "contexts"]

# By the name of the value in the help text …
_BY_METAVAR: Mapping[str, Source] = {"FILE": "files", "FILE|DIR|-": "files", "DIR": "directories"}
# … or by what it is for.
_BY_NAME: Mapping[tuple[str, str], Source] = {
    ("namespace", "NAME"): "namespaces",
    ("context", "NAME"): "contexts",
    ("what", "KIND"): "kinds",
    ("name", "NODE"): "nodes",
}
# ``svc/`` and ``pod/`` stand for the names behind them.
TARGETS = ("svc/", "pod/", "dns")


class Value(msgspec.Struct, frozen=True):
    """What can be given for an option or in a place."""

    source: Source = ""
    words: tuple[str, ...] = ()


class Option(msgspec.Struct, frozen=True):
    """An option; ``value`` is None for a switch, and ``optional`` if it can do without."""

    flags: tuple[str, ...]
    about: str
    value: Value | None = None
    optional: bool = False


class Verb(msgspec.Struct, frozen=True):
    """A verb: its options, what can stand in its first place, in all that follow, and whether the last repeats."""

    name: str
    about: str
    options: tuple[Option, ...]
    places: tuple[Value, ...]
    repeats: bool = False

    @property
    def valued(self) -> list[Option]:
        """Options whose value is the next word."""
        return [option for option in self.options if option.value is not None and not option.optional]

    def place(self, number: int) -> Value:
        """What can stand in a place; the last one may be repeated."""
        return self.places[min(number, len(self.places) - 1)] if self.places else Value()


def verbs(table: Mapping[str, tuple[str, str]]) -> list[Verb]:
    """All verbs of the command line."""
    return [verb_of(name, about, importlib.import_module(module).parser()) for name, (module, about) in table.items()]


def verb_of(name: str, about: str, parser: argparse.ArgumentParser) -> Verb:
    # argparse has no public way to ask a parser what it takes.
    actions = [action for action in parser._actions if action.help != argparse.SUPPRESS]
    options = tuple(_option(action) for action in actions if action.option_strings)
    positional = [action for action in actions if not action.option_strings]
    places = tuple(value for action in positional for value in _places(action))
    repeats = bool(positional) and positional[-1].nargs in ("+", "*")
    return Verb(name, about, options, places, repeats)


def _option(action: argparse.Action) -> Option:
    about = " ".join((action.help or "").split())
    value = None if action.nargs == 0 else _value(action)
    return Option(tuple(action.option_strings), about, value, optional=action.nargs == "?")


def _places(action: argparse.Action) -> Iterator[Value]:
    value = _value(action)
    yield value
    if value.source == "kinds" and action.nargs in ("+", "*"):
        yield Value("names")


def _value(action: argparse.Action) -> Value:
    words = action.choices if action.choices is not None else getattr(action.type, "words", None)
    if words is not None:
        return Value("words", tuple(map(str, words)))
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if metavar == "TARGET":
        return Value("words", TARGETS)
    return Value(_BY_METAVAR.get(metavar) or _BY_NAME.get((action.dest, metavar), ""))
