"""Reads the plain YAML that kubeconfig files consist of: nested mappings and lists of words.

A YAML library takes longer to import than a whole command that asks one question.  What is not plain (quotes within
quotes, multi-line texts, flow collections, anchors, comments after values) is left to the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

_KEY = re.compile(r"([A-Za-z_][\w./@-]*):(?: +(.*)|$)")
_WORD = re.compile(r"(?:-+(?=[A-Za-z]))?[A-Za-z0-9_./+=][^#:\t]*(?::(?![# \t]|$)[^#:\t]*)*$")
_QUOTED = re.compile(r"\"[^\"\\]*\"$|'[^']*'$")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **{form(word): True for word in ("true", "yes", "on") for form in (str, str.title, str.upper)},
    **{form(word): False for word in ("false", "no", "off") for form in (str, str.title, str.upper)},
    "{}": {},
    "[]": [],
}


class NotPlain(Exception):
    """The text needs a YAML library."""


def plain(text: str) -> Any:
    """The document, with numbers and dates as strings; raises ``NotPlain`` if the text may mean anything else."""
    lines = _Lines(text)
    found = lines.block(lines.indent) if lines.indent >= 0 else None
    if lines.indent >= 0:
        raise NotPlain
    return found


class _Lines:
    """The lines of a text, one at a time; ``indent`` is that of the current one, -1 at the end."""

    def __init__(self, text: str) -> None:
        self._rest = self._split(text)
        self._next()

    @staticmethod
    def _split(text: str) -> Iterator[tuple[int, str]]:
        for line in text.split("\n"):
            bare = line.strip(" ")
            if bare and not bare.startswith("#"):
                if not bare.isprintable() or bare.startswith(("---", "...", "%")):
                    raise NotPlain
                yield len(line) - len(line.lstrip(" ")), bare

    def _next(self) -> None:
        self.indent, self.text = next(self._rest, (-1, ""))

    @property
    def _listed(self) -> bool:
        return self.text == "-" or self.text.startswith("- ")

    def block(self, indent: int) -> Any:
        """The collection that begins at the current line."""
        return self._list(indent) if self._listed else self._mapping(indent)

    def _list(self, indent: int) -> list[Any]:
        found = []
        while self.indent == indent and self._listed:
            item = self.text[1:].lstrip(" ")
            if item and not _KEY.match(item):
                found.append(_scalar(item))
                self._next()
                continue
            if not item:
                raise NotPlain
            # The item is a mapping, whose first line begins behind the dash.
            self.indent, self.text = indent + len(self.text) - len(item), item
            found.append(self._mapping(self.indent))
        return found

    def _mapping(self, indent: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self.indent == indent and not self._listed:
            match = _KEY.match(self.text)
            if match is None or match[1] in found or match[1] in _WORDS:
                raise NotPlain
            self._next()
            if match[2]:
                found[match[1]] = _scalar(match[2])
            elif self.indent > indent or (self.indent == indent and self._listed):
                found[match[1]] = self.block(self.indent)
            else:
                found[match[1]] = None
        if self.indent > indent:
            raise NotPlain
        return found


def _scalar(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _QUOTED.match(text):
        return text[1:-1]
    if _WORD.match(text):
        return text
    raise NotPlain
