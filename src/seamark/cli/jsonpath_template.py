"""kubectl's JSONPath templates: from the text to what it says.  Pure.

A template is text with actions in braces.  An action is a chain of steps, each from values to values: ``.field``,
``['field']``, ``..``, ``*``, ``[index]``, ``[first:end:step]``, ``[this,that]``, ``[?(@.field == "x")]``, a quoted
text, a number or a truth value.  ``{range PATH}`` … ``{end}`` repeats what is between them for each value.  A dot or
another special character within a field's name has a backslash before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec


class JsonPathError(Exception):
    """The template cannot be read, or not be applied to an object; one line."""


class Literal(msgspec.Struct, frozen=True):
    """A text, number or truth value that stands in the template."""

    value: str | int | float | bool


class Field(msgspec.Struct, frozen=True):
    name: str


class Wildcard(msgspec.Struct, frozen=True):
    """Every value in a list or an object."""


class Descent(msgspec.Struct, frozen=True):
    """A value and everything in it that has something in it."""


class Slice(msgspec.Struct, frozen=True):
    """Some of a list; ``alone`` if it was written as one index."""

    first: int | None
    end: int | None
    step: int | None
    alone: bool = False


class Union(msgspec.Struct, frozen=True):
    """What several selections give, one after the other."""

    choices: tuple[Steps, ...]


class Filter(msgspec.Struct, frozen=True):
    """The elements of a list of which a comparison holds; without an operator, those that have what is named."""

    left: Steps
    operator: str = ""
    right: Steps = ()


class Unknown(msgspec.Struct, frozen=True):
    """A word that means nothing; it is only an error when it is come upon."""

    word: str


Step = Literal | Field | Wildcard | Descent | Slice | Union | Filter | Unknown
Steps = tuple[Step, ...]


class Action(msgspec.Struct, frozen=True):
    steps: Steps


class Range(msgspec.Struct, frozen=True):
    steps: Steps
    body: tuple[Part, ...]


Part = str | Action | Range
Template = tuple[Part, ...]

_NAME = r"(?:\\.|[^\s.,\[\]$@{}\\])"
_QUOTED = r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
_TOKEN = re.compile(
    rf"""
      (?P<skipped> [\ $@]+ )
    | (?P<close>   \}} )
    | (?P<filter>  \[\?\( (?P<condition> (?: {_QUOTED} | [^"')\n] )* ) \)\] )
    | (?P<array>   \[ (?P<inside> [^\]\n]* ) \] )
    | (?P<descent> \.\. (?P<below> {_NAME}* ) )
    | (?P<field>   \. (?P<name> {_NAME}* ) )
    | (?P<quoted>  {_QUOTED} )
    | (?P<number>  [+-]?\d[\d.]* )
    | (?P<word>    \w{_NAME}* )
    """,
    re.VERBOSE,
)
_COMPARISON = re.compile(r"([^!<>=]+)([!<>=]+)(.+)", re.DOTALL)
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?\d*)(:-?\d*)?(:-?\d*)?")
_ESCAPE = re.compile(r"\\(?:([abfnrtv\\'\"])|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{3})|(.|$))")
_ESCAPED = dict(zip("abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\"", strict=True))
OPERATORS = ("==", "!=", "<", "<=", ">", ">=")


def parse(text: str) -> Template:
    """The template a text is; ``JsonPathError`` if it is none."""
    outermost: list[Part] = []
    open_ranges: list[tuple[Steps, list[Part]]] = []
    parts = outermost
    for literal, steps in _pieces(text):
        if literal:
            parts.append(literal)
        elif steps[:1] == (Unknown("range"),):
            parts = []
            open_ranges.append((steps[1:], parts))
        elif steps[:1] == (Unknown("end"),) and open_ranges:
            parts = _closed(open_ranges, outermost)
        else:
            parts.append(Action(steps))
    while open_ranges:
        # kubectl goes on behind the last end it came upon: without one, at the beginning of the range once more.
        body = open_ranges[-1][1]
        _closed(open_ranges, outermost).extend(body)
    return tuple(outermost)


def _closed(open_ranges: list[tuple[Steps, list[Part]]], outermost: list[Part]) -> list[Part]:
    """End the innermost range; what goes on around it."""
    steps, body = open_ranges.pop()
    around = open_ranges[-1][1] if open_ranges else outermost
    around.append(Range(steps, tuple(body)))
    return around


def _pieces(text: str) -> Iterator[tuple[str, Steps]]:
    """Literal texts and actions, in turn."""
    position = 0
    while position < len(text):
        brace = text.find("{", position)
        if brace < 0:
            yield text[position:], ()
            return
        if brace > position:
            yield text[position:brace], ()
        steps, position = _action(text, brace + 1)
        yield "", steps


def _action(text: str, position: int) -> tuple[Steps, int]:
    """The steps up to the closing brace, and where it goes on behind it."""
    steps: list[Step] = []
    while True:
        found = _TOKEN.match(text, position)
        if found is None:
            raise JsonPathError(_unreadable(text, position))
        if found["close"]:
            return tuple(steps), found.end()
        steps += _steps(found, steps)
        position = found.end()


def _unreadable(text: str, position: int) -> str:
    rest = text[position:]
    if not rest or rest[0] in "\r\n":
        return "unclosed action"
    for opening, what in (("[?(", "unterminated filter"), ("[", "unterminated array")):
        if rest.startswith(opening):
            return what
    if rest[0] in "\"'":
        return "unterminated quoted string"
    return f"unrecognized character in action: U+{ord(rest[0]):04X} '{rest[0]}'"


def _steps(found: re.Match[str], before: list[Step]) -> list[Step]:
    match found.lastgroup:
        case "filter":
            return [_filter(found["condition"])]
        case "array":
            return _array(found["inside"])
        case "descent":
            if before[-1:] == [Descent()]:
                raise JsonPathError("invalid multiple recursive descent")
            return [Descent(), *([_field(found["below"])] if found["below"] else [])]
        case "field":
            return [_field(found["name"])]
        case "quoted":
            return [Literal(_unquoted(found["quoted"]))]
        case "number":
            return [Literal(_number(found["number"]))]
        case "word":
            word = found["word"]
            return [Literal(word == "true") if word in ("true", "false") else Unknown(word)]
        case _:
            return []


def _field(name: str) -> Step:
    return Wildcard() if name == "*" else Field(name.replace("\\", ""))


def _only(text: str) -> Steps:
    """The steps of an action that has no braces around it."""
    steps, _ = _action(f"{text}}}", 0)
    return steps


def _array(inside: str) -> list[Step]:
    if inside == "*":
        return [Slice(None, None, None)]
    if "," in inside:
        return [Union(tuple(_only(f"[{each.strip(' ')}]") for each in inside.split(",")))]
    key = _KEY.fullmatch(inside)
    if key:
        return list(_only(f".{key[1]}"))
    parts = _SLICE.fullmatch(inside)
    if parts is None:
        raise JsonPathError(f"invalid array index {inside}")
    first, end, step = (
        int(part) if (part := (each or "").lstrip(":")) not in ("", "-") else None for each in parts.groups()
    )
    if parts[2] is None and first is not None:
        return [Slice(first, first + 1, step, alone=True)]
    return [Slice(first, end, step)]


def _filter(condition: str) -> Step:
    comparison = _COMPARISON.fullmatch(condition)
    if comparison is None:
        return Filter(_only(condition))
    left, operator, right = comparison.groups()
    return Filter(_only(left), operator, _only(right))


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise JsonPathError(f"cannot parse number {text}") from None


def _unquoted(quoted: str) -> str:
    def meant(escape: re.Match[str]) -> str:
        simple, two, four, eight, octal, _ = escape.groups()
        if simple:
            return _ESCAPED[simple]
        digits = two or four or eight
        if not digits and not octal:
            raise JsonPathError(f"unquote string {quoted} error invalid syntax")
        number = int(digits, 16) if digits else int(octal, 8)
        if number > 0x10FFFF:
            raise JsonPathError(f"unquote string {quoted} error invalid syntax")
        return chr(number)

    return _ESCAPE.sub(meant, quoted[1:-1])
