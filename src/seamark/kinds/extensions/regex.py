"""Patterns as Go's regular expressions have them, compiled for Python."""

from __future__ import annotations

import re
from functools import lru_cache

# What Python's words for a mistake mean in Go's.
_MISTAKES = (
    ("unterminated character set", "missing closing ]"),
    ("missing ), unterminated subpattern", "missing closing )"),
    ("unbalanced parenthesis", "unexpected )"),
    ("nothing to repeat", "missing argument to repetition operator"),
    ("multiple repeat", "invalid nested repetition operator"),
    ("bad character range", "invalid character class range"),
    ("bad escape (end of pattern)", "trailing backslash at end of expression"),
)


class PatternError(ValueError):
    """A pattern that Go cannot compile; the text is Go's."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern, compiled; ``$`` and ``\\z`` mean the end of the text, as in Go."""
    text = _for_python(pattern)
    try:
        return re.compile(text)
    except re.error as error:
        raise PatternError(f"error parsing regexp: {_mistake(pattern, error)}") from None


_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_posix = re.compile(r"\[:(\^?)(\w+):\]")


def _for_python(pattern: str) -> str:
    """The same pattern in Python's dialect."""
    out: list[str] = []
    inside = False  # a character class
    position = 0
    while position < len(pattern):
        letter = pattern[position]
        if letter == "\\" and position + 1 < len(pattern):
            following = pattern[position + 1]
            out.append({"z": "\\Z", "C": "."}.get(following, letter + following))
            position += 2
            continue
        if inside:
            named = _posix.match(pattern, position)
            if named and not named[1] and named[2] in _CLASSES:
                out.append(_CLASSES[named[2]])
                position = named.end()
                continue
            inside = letter != "]"
            out.append("\\[" if letter == "[" else letter)
        elif letter == "[":
            inside = True
            out.append(letter)
            for first in ("^", "]"):  # a bracket that comes first is a plain one
                if pattern.startswith(first, position + 1):
                    out.append(first if first == "^" else "\\]")
                    position += 1
        else:
            out.append("\\Z" if letter == "$" else letter)
        position += 1
    return "".join(out)


def _mistake(pattern: str, error: re.error) -> str:
    at = error.pos or 0
    for python, go in _MISTAKES:
        if error.msg.startswith(python):
            where = pattern[at:] if go == "missing closing ]" else pattern
            return f"{go}: `{where}`"
    return f"{error.msg}: `{pattern}`"
