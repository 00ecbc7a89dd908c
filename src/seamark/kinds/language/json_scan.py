"""Reads JSON byte by byte, for two things that a fast parser does not report: Go's error messages and repeated keys.

It is slow, so it is only used for texts that are broken or seem to repeat a key, and it stops after so many values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

DEEPEST = 10_000  # Go's limit
# The rest of a longer text is not looked at: it would only make a message better, but delay all other requests.
MOST_VALUES = 50_000

# No kind has fields deeper or longer than this; building the text of such paths could waste a lot of memory.
_DEEPEST_PATH = 64
_LONGEST_PATH = 4096

_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
# The well-formed part of a string, without its closing quote.
_STRING = re.compile(rb'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*')
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_END = "unexpected end of JSON input"


class SyntaxFault(ValueError):
    """The text is not JSON; the message is Go's."""


# One entry per open container: the keys seen so far (None in a list), its path, and the index of the next element.
Stack = list[tuple[set[str] | None, str | None, int]]


def check(text: bytes) -> None:
    """Raises :class:`SyntaxFault` if this is not one JSON value, as far as it is looked at."""
    for _ in keys(text):
        pass


def keys(text: bytes) -> Iterator[tuple[str, bool]]:
    """The path of every key (``spec.ports[0].name``), and whether it repeats a key of its object, in text order.

    Keys deeper or longer than those of any kind are skipped, and those behind the first :data:`MOST_VALUES` values.
    """
    stack: Stack = []
    position = _skip(text, 0)
    here: str | None = ""
    for _ in range(MOST_VALUES):
        opener = text[position : position + 1]
        if opener in (b"{", b"["):
            if len(stack) == DEEPEST:
                raise SyntaxFault("exceeded max depth")
            position = _skip(text, position + 1)
            stack.append((set() if opener == b"{" else None, here, 0))
            ended = text[position : position + 1] == (b"}" if opener == b"{" else b"]")
        else:
            position = _scalar(text, position)
            ended = True
        if ended:
            if opener in (b"{", b"["):
                stack.pop()
                position += 1
            position = _close(text, position, stack)
            if not stack:
                return
        seen, parent, index = stack[-1]
        if seen is None:
            here = None if parent is None else f"{parent}[{index}]"
            stack[-1] = (None, parent, index + 1)
        else:
            key, position = _key(text, position)
            here = f"{parent}.{key}" if parent else None if parent is None else key
            if here is not None:
                yield here, key in seen
            seen.add(key)
        if here is not None and (len(here) > _LONGEST_PATH or len(stack) > _DEEPEST_PATH):
            here = None


def _close(text: bytes, position: int, stack: Stack) -> int:
    """Close every container that ends here; returns the position of the next member, or of the end."""
    while stack:
        position = _skip(text, position)
        in_list = stack[-1][0] is None
        end = b"]" if in_list else b"}"
        mark = text[position : position + 1]
        if mark == b",":
            return _skip(text, position + 1)
        if mark != end:
            raise _fault(text, position, "after array element" if in_list else "after object key:value pair")
        stack.pop()
        position += 1
    position = _skip(text, position)
    if position < len(text):
        raise _fault(text, position, "after top-level value")
    return position


def _skip(text: bytes, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def _fault(text: bytes, position: int, where: str) -> SyntaxFault:
    if position >= len(text):
        return SyntaxFault(_END)
    return SyntaxFault(f"invalid character {quoted(text[position])} {where}")


def quoted(byte: int) -> str:
    """A byte in quotes, as in Go's messages."""
    special = {
        ord("'"): r"'\''",
        ord('"'): "'\"'",
        10: r"'\n'",
        13: r"'\r'",
        9: r"'\t'",
        ord("\\"): r"'\\'",
        0: r"'\x00'",
    }
    if byte in special:
        return special[byte]
    if 32 <= byte < 127 or byte >= 0xA0:
        return f"'{chr(byte)}'"
    return f"'\\x{byte:02x}'" if byte < 128 else f"'\\u{byte:04x}'"


def _key(text: bytes, position: int) -> tuple[str, int]:
    """The key at this position, and the position of its value."""
    if text[position : position + 1] != b'"':
        raise _fault(text, position, "looking for beginning of object key string")
    end = _string(text, position)
    raw = text[position + 1 : end - 1].decode(errors="replace")
    colon = _skip(text, end)
    if text[colon : colon + 1] != b":":
        raise _fault(text, colon, "after object key")
    return _unescape(raw), _skip(text, colon + 1)


def _unescape(raw: str) -> str:
    if "\\" not in raw:
        return raw
    short = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
    return re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.))", lambda m: chr(int(m[1], 16)) if m[1] else short.get(m[2], m[2]), raw)


def _string(text: bytes, position: int) -> int:
    match = _STRING.match(text, position)
    at = match.end() if match else position + 1
    if text[at : at + 1] == b'"':
        return at + 1
    if text[at : at + 2] == b"\\u":
        at += 2
        while at < len(text) and chr(text[at]) in "0123456789abcdefABCDEF":
            at += 1
        raise _fault(text, at, r"in \u hexadecimal character escape")
    if text[at : at + 1] == b"\\":
        raise _fault(text, at + 1, "in string escape code")
    raise _fault(text, at, "in string literal")


def _scalar(text: bytes, position: int) -> int:
    """The position after the string, number or literal at this position."""
    if position >= len(text):
        raise SyntaxFault(_END)
    first = text[position]
    if first == ord('"'):
        return _string(text, position)
    if first in _LITERALS:
        word = _LITERALS[first]
        for offset in range(1, len(word)):
            if text[position + offset : position + offset + 1] != word[offset : offset + 1]:
                wanted = f"in literal {word.decode()} (expecting '{chr(word[offset])}')"
                raise _fault(text, position + offset, wanted)
        return position + len(word)
    if first == ord("-") or ord("0") <= first <= ord("9"):
        return _number(text, position)
    raise _fault(text, position, "looking for beginning of value")


def _number(text: bytes, position: int) -> int:
    match = _NUMBER.match(text, position)
    if not match:
        raise _fault(text, position + 1, "in numeric literal")
    end = match.end()
    if text[end : end + 1] == b"." and b"." not in match[0] and b"e" not in match[0].lower():
        raise _fault(text, end + 1, "after decimal point in numeric literal")
    if text[end : end + 1] in (b"e", b"E") and b"e" not in match[0].lower():
        signed = end + 2 if text[end + 1 : end + 2] in (b"+", b"-") else end + 1
        raise _fault(text, signed, "in exponent of numeric literal")
    return end
