"""More about texts: characters, positions, parts, letters and joined lists."""

from __future__ import annotations

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload

_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
_QUOTED = {
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
    "\\": "\\\\",
    '"': '\\"',
}


def _character(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise EvaluationError(f"index out of range: {index}")
    return text[index : index + 1]


def _position(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.find(part, start)


def _last_position(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return len(text) if not part else text.rfind(part)
    if not part:
        return start
    if not 0 <= start <= len(text):
        raise EvaluationError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise EvaluationError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise EvaluationError(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise EvaluationError(f"index out of range: {index}")
    return text[start:end]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        letters = list(text)
        return letters if limit < 0 or limit >= len(letters) else [*letters[: limit - 1], "".join(letters[limit - 1 :])]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _replace(text: str, part: str, instead: str, limit: int = -1) -> str:
    return text.replace(part, instead, limit)


def _join(texts: list[str], separator: str = "") -> str:
    return separator.join(texts)


def _quote(text: str) -> str:
    return '"' + "".join(_QUOTED.get(letter, letter) for letter in text) + '"'


FUNCTIONS = [
    overload("string.charAt(int) -> string", _character),
    overload("string.indexOf(string) -> int", _position),
    overload("string.indexOf(string, int) -> int", _position),
    overload("string.lastIndexOf(string) -> int", _last_position),
    overload("string.lastIndexOf(string, int) -> int", _last_position),
    overload("string.lowerAscii() -> string", lambda text: text.translate(_LOWER)),
    overload("string.upperAscii() -> string", lambda text: text.translate(_UPPER)),
    overload("string.replace(string, string) -> string", _replace),
    overload("string.replace(string, string, int) -> string", _replace),
    overload("string.split(string) -> list<string>", _split),
    overload("string.split(string, int) -> list<string>", _split),
    overload("string.substring(int) -> string", _substring),
    overload("string.substring(int, int) -> string", _substring),
    overload("string.trim() -> string", str.strip),
    overload("list<string>.join() -> string", _join),
    overload("list<string>.join(string) -> string", _join),
    overload("strings.quote(string) -> string", _quote, name="strings.quote"),
]
