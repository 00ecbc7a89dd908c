"""Reads YAML bodies as Kubernetes does: as another notation for JSON.

There are no dates and no base-60 numbers, keys are always strings, and only the first document is read.

The value is built straight from the parser's events (libyaml's, where PyYAML has it), so that everything is counted
before it is made: aliases and merge keys count as much as the values they stand for.  The parser is given the text in
pieces: a million lines can be one event, and other threads, such as the event loop's, can run only between two pieces.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import yaml

# The most values in a document, with those that aliases and merge keys repeat.  No object of Kubernetes has as many.
MOST_VALUES = 100_000
# Deeper values would be too deep for functions that call themselves, and libyaml's time grows with depth times length.
DEEPEST = 500
# libyaml compares each %TAG with all before it.
MOST_DIRECTIVES = 64
MOST_REPEATED = 100

_EVENTS: Any = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
_PREFIX = "error converting YAML to JSON: "
_TAG = "tag:yaml.org,2002:"
# A directive or comment before the document, and the spaces and line breaks of every kind before it.
_BEFORE_DOCUMENT = re.compile(rb"[\s\xc2\x85\xe2\x80\xa8\xa9\xef\xbb\xbf]*+[#%][^\r\n]*+")


class YamlFault(ValueError):
    """The text is not YAML, or has values that JSON cannot express."""


# --- scalars ---------------------------------------------------------------------------------------


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    bare = digits.lstrip("+-")
    base = {"0b": 2, "0x": 16}.get(bare[:2], 8 if bare[:1] == "0" else 10)
    return int(digits, base)


def _float(text: str) -> float:
    number = float(text.replace("_", "").lower().replace(".inf", "inf").replace(".nan", "nan"))
    if number - number != 0:
        raise YamlFault(f"{_PREFIX}json: unsupported value: {number}")
    return number


def _boolean(text: str) -> bool:
    return _BOOLEANS[text.lower()]


_BOOLEANS = {"y": True, "yes": True, "true": True, "on": True, "n": False, "no": False, "false": False, "off": False}


_CONVERTERS: dict[str, Callable[[str], Any]] = {
    "bool": _boolean,
    "int": _integer,
    "float": _float,
    "null": lambda text: None,
    "str": str,
}
_DECIMAL = r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"

# The types of unquoted text by the first character it may have.  They are tried in this order.
_PLAIN: dict[str, list[tuple[Callable[[str], Any], re.Pattern[str]]]] = {}
for _type, _pattern, _first in (
    ("bool", "y|Y|yes|Yes|YES|n|N|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)", "-+0123456789"),
    ("float", rf"{_DECIMAL}|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+.0123456789"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    for _character in _first:
        _PLAIN.setdefault(_character, []).append((_CONVERTERS[_type], re.compile(_pattern)))


def _scalar(event: yaml.ScalarEvent) -> Any:
    text: str = event.value
    if not text.isascii():
        _check_text(text)
    tag = event.tag
    if tag is None or tag == "!":
        if event.implicit[0]:
            for convert, pattern in _PLAIN.get(text[:1], ()):
                if pattern.fullmatch(text):
                    return convert(text)
        return text
    type = tag.removeprefix(_TAG)
    converter = _CONVERTERS.get(type)
    if converter is None:
        raise _fault(event, f"cannot read a value with the tag {tag}")
    try:
        return converter(text)
    except (ValueError, LookupError) as error:
        raise _fault(event, f"cannot decode !!str `{text[:50]}` as a !!{type}") from error


def _check_text(text: str) -> None:
    """Reject half a surrogate pair, which an escape can produce but UTF-8 cannot encode."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise YamlFault(f"{_PREFIX}yaml: {error.reason}") from error


def _key(key: Any) -> str:
    """A key as a string; numbers and booleans as JSON prints them."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int | float):
        return str(key)
    raise YamlFault(f"{_PREFIX}unsupported map key of type: {type(key).__name__}")


# --- documents -------------------------------------------------------------------------------------


class _Open:
    """A mapping or list whose end has not been read."""

    __slots__ = ("anchor", "before", "key", "line", "merges", "value")

    def __init__(self, value: dict[str, Any] | list[Any], anchor: str | None, before: int) -> None:
        self.value = value
        self.anchor = anchor
        self.before = before  # how many values were counted before this one
        self.key: str | None = None  # of a mapping: the key whose value comes next
        self.merges = False  # that key is <<
        self.line = 0


class _Pieces:
    """A text as a file; the parser calls :meth:`read` for each of its pieces, and Python lets others run then."""

    name = "<unicode string>"

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def read(self, size: int) -> str:
        # A character may take four bytes, and the parser has room for so many only.
        begin, self._at = self._at, self._at + size // 4
        return self._text[begin : self._at]


def _directives(text: bytes) -> int:
    """How many %TAG there are before the document, and in its comments; a few more than are allowed are enough."""
    found = at = 0
    while found <= MOST_DIRECTIVES and (line := _BEFORE_DOCUMENT.match(text, at)) is not None:
        found += text.count(b"%TAG", at, line.end())
        at = line.end()
    return found


class Reading:
    """One text that is being read."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._events: Any = None
        self._open: list[_Open] = []
        # The value of each anchor, and how many values it counts for: none while its end has not been read.
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._value: Any = None
        self._done = False
        self.count = 0
        self.repeated: list[str] = []

    def result(self) -> tuple[Any, list[str]]:
        """The value of the first document, and warnings about repeated keys."""
        try:
            self._begin()
            while not self._done:
                self._take(self._events.get_event())
        except YamlFault:
            raise
        except (yaml.YAMLError, ValueError) as error:
            raise YamlFault(f"{_PREFIX}yaml: {_sentence(error)}") from error
        finally:
            if self._events is not None:
                self._events.dispose()
        return self._value, self.repeated

    def _begin(self) -> None:
        if self._text.count(b"%TAG") > MOST_DIRECTIVES and _directives(self._text) > MOST_DIRECTIVES:
            raise YamlFault(f"{_PREFIX}yaml: more than {MOST_DIRECTIVES} directives")
        self._events = _EVENTS(_Pieces(self._text.decode()))

    def _take(self, event: Any) -> None:
        match event:
            case yaml.ScalarEvent():
                self._counted(1, "the document has too many values")
                self._put(_scalar(event), event)
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self._counted(1, "the document has too many values")
                if len(self._open) == DEEPEST:
                    raise _fault(event, "exceeded max depth")
                is_mapping = isinstance(event, yaml.MappingStartEvent)
                if event.tag not in (None, "!", _TAG + ("map" if is_mapping else "seq")):
                    raise _fault(event, f"cannot read a value with the tag {event.tag}")
                if event.anchor is not None:
                    self._anchors[event.anchor] = None, 0
                self._open.append(_Open({} if is_mapping else [], event.anchor, self.count - 1))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                ended = self._open.pop()
                if ended.anchor is not None:
                    self._anchors[ended.anchor] = ended.value, self.count - ended.before
                self._place(ended.value, event)
            case yaml.AliasEvent():
                if event.anchor not in self._anchors:
                    raise _fault(event, f"unknown anchor '{event.anchor}' referenced")
                value, size = self._anchors[event.anchor]
                if not size:
                    raise _fault(event, f"anchor '{event.anchor}' value contains itself")
                self._counted(size, "document contains excessive aliasing")
                self._place(value, event)
            case yaml.DocumentEndEvent() | yaml.StreamEndEvent():
                self._done = True

    def _counted(self, values: int, refusal: str) -> None:
        self.count += values
        if self.count > MOST_VALUES:
            raise YamlFault(f"{_PREFIX}yaml: {refusal}")

    def _put(self, value: Any, event: yaml.ScalarEvent) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = value, 1
        top = self._open[-1] if self._open else None
        is_key = top is not None and top.key is None and isinstance(top.value, dict)
        if top is not None and is_key and value == "<<" and event.implicit[0]:
            top.merges = True
        self._place(value, event)

    def _place(self, value: Any, event: Any) -> None:
        """Put a complete value where it belongs: it is an element, a key, the value of a key, or the document."""
        if not self._open:
            self._value = value
            return
        top = self._open[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is None:
            top.key, top.line = _key(value), event.start_mark.line + 1
        else:
            key, top.key = top.key, None
            if top.merges:
                top.merges = False
                self._merge(top, value, event)
            else:
                if key in top.value:
                    self._repeats(key, top.line)
                top.value[key] = value

    def _merge(self, top: _Open, value: Any, event: Any) -> None:
        """``<<``: the keys of other mappings, unless this one has them; the first of several mappings wins."""
        sources = value if isinstance(value, list) else [value]
        if not all(isinstance(source, dict) for source in sources):
            raise _fault(event, "map merge requires map or sequence of maps as the value")
        assert isinstance(top.value, dict), "only mappings have keys"
        for source in sources:
            for key, part in source.items():
                if key in top.value:
                    self._repeats(key, top.line)
                else:
                    top.value[key] = part

    def _repeats(self, key: str, line: int) -> None:
        if len(self.repeated) < MOST_REPEATED:
            self.repeated.append(f'line {line}: key "{key}" already set in map')


def read(body: bytes) -> tuple[Any, list[str]]:
    """The value of the first document, and warnings about repeated keys."""
    return Reading(body).result()


def _fault(event: Any, problem: str) -> YamlFault:
    return YamlFault(f"{_PREFIX}yaml: line {event.start_mark.line + 1}: {problem}")


def _sentence(error: Exception) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())
