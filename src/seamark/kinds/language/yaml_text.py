"""Writes YAML as Go does: ambiguous strings in double quotes, strings of several lines as blocks."""

from __future__ import annotations

import re
from typing import Any

import yaml

WIDTH = 80  # Go breaks a line at the next space after this column
LAST_PLAIN = "\uffff"  # Go's library escapes all characters after this one

# Strings that Go reads as a number, date or boolean, but PyYAML does not.
_MORE_THAN_TEXT = re.compile(
    r"""  [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?   # also 1e3, which PyYAML reads as text
        | [-+]?0o[0-7_]+
        | [0-9]{4}-[0-9]{1,2}-[0-9]{1,2}
        | [yYnN]
    """,
    re.VERBOSE,
)
_JUST_TEXT = ("tag:yaml.org,2002:merge", "tag:yaml.org,2002:value")  # << and =, which are plain strings for Go

_OTHER_LINE_BREAKS = "\x85\u2028\u2029"  # YAML readers turn these into a newline or a space

_ESCAPES = {
    "\0": "\\0",
    "\x07": "\\a",
    "\x08": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\x0b": "\\v",
    "\x0c": "\\f",
    "\r": "\\r",
    "\x1b": "\\e",
    '"': '\\"',
    "\\": "\\\\",
    "\x85": "\\N",
    "\xa0": "\\_",
    "\u2028": "\\L",
    "\u2029": "\\P",
}


class _Dumper(yaml.SafeDumper):
    """PyYAML's dumper with Go's rules for quoting and line breaks."""

    def write_double_quoted(self, text: str, split: bool = True) -> None:
        self.write_indicator('"', True)
        for position, character in enumerate(text):
            inside = 0 < position < len(text) - 1
            if character == " " and split and inside and self.column > self.best_width and text[position - 1] != " ":
                self.write_indent()
                # YAML ignores spaces at the beginning of a line, unless a backslash precedes them.
                self._put("\\" if text[position + 1] == " " else "")
            else:
                self._put(_escaped(character))
        self.write_indicator('"', False)

    def _put(self, text: str) -> None:
        self.column += len(text)
        self.stream.write(text)


_Dumper.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _JUST_TEXT]
    for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
}


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character > LAST_PLAIN:
        return f"\\U{ord(character):08X}"
    if character.isprintable():
        return character
    return f"\\x{ord(character):02X}" if character < "\u0100" else f"\\u{ord(character):04X}"


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    broken = any(separator in value for separator in _OTHER_LINE_BREAKS)
    if "\n" in value and not broken:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|")
    plain = dumper.resolve(yaml.ScalarNode, value, (True, False))  # type: ignore[no-untyped-call]  # no stub for it
    is_text = plain == "tag:yaml.org,2002:str" and not _MORE_THAN_TEXT.fullmatch(value)
    style = None if is_text and not broken and all(character <= LAST_PLAIN for character in value) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dump(value: Any) -> bytes:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True, width=WIDTH).encode()
