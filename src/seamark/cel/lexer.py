"""The text of an expression as tokens."""

from __future__ import annotations

import re

import msgspec

from seamark.cel.errors import Mistake

_string = (
    r"""(?:[rR]?(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^\\"\n\r]|\\.)*"|'(?:[^\\'\n\r]|\\.)*'))"""
)
_raw = r"""(?:[rR](?:\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}|"[^"\n\r]*"|'[^'\n\r]*'))"""
_pattern = re.compile(
    rf"""(?P<space>[ \t\n\r\f]+|//[^\n]*)
    |(?P<bytes>[bB](?:{_raw}|{_string}))
    |(?P<string>{_raw}|{_string})
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<ident>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<escaped>`[a-zA-Z0-9_.\-/ ]+`)
    |(?P<op>&&|\|\||==|!=|<=|>=|[<>?:+\-*/%!.,\[\]{{}}()=])""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = frozenset(("true", "false", "null", "in"))

END = "<EOF>"


class Token(msgspec.Struct, frozen=True):
    """``kind`` is the text itself for operators and for the words true, false, null and in."""

    kind: str
    text: str
    at: int


def tokens(text: str, mistakes: list[Mistake]) -> list[Token]:
    """All tokens and the end; characters that belong to none are mistakes."""
    found: list[Token] = []
    position = 0
    while position < len(text):
        match = _pattern.match(text, position)
        if match is None:
            mistakes.append(
                Mistake(position, f"Syntax error: token recognition error at: '{_unknown(text, position)}'")
            )
            position += len(_unknown(text, position))
            continue
        kind = match.lastgroup or ""
        if kind != "space":
            word = match[0]
            found.append(Token(word if kind == "op" or word in _WORDS else kind, word, position))
        position = match.end()
    found.append(Token(END, END, len(text)))
    return found


def _unknown(text: str, position: int) -> str:
    """The characters that a lexer gives up on: an operator's half takes the next character with it."""
    letter = text[position]
    if letter in "\"'":
        return text[position:].partition("\n")[0]
    return text[position : position + 2] if letter in "|&" else letter


# --- texts --------------------------------------------------------------------------------------------

_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "\\": 92, "'": 39, '"': 34, "`": 96, "?": 63}
_escape = re.compile(
    r"\\(?:([abfnrtv\\'\"`?])|[xX]([0-9a-fA-F]{2})|([0-3][0-7]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))"
)


def unquoted(text: str) -> str | bytes:
    """The value of a string or bytes token; ``ValueError`` if an escape means nothing."""
    prefix = re.match("[rRbB]*", text)[0].lower()  # type: ignore[index]  # it matches every text
    body = text[len(prefix) :]
    size = 3 if body[:3] in ('"""', "'''") else 1
    body = body[size:-size]
    binary = "b" in prefix
    if "r" in prefix or "\\" not in body:
        return body.encode() if binary else body
    out: list[bytes] | list[str] = []
    position = 0
    while position < len(body):
        if body[position] != "\\":
            following = body.find("\\", position)
            plain = body[position : following if following >= 0 else len(body)]
            out.append(plain.encode() if binary else plain)  # type: ignore[arg-type]
            position += len(plain)
            continue
        match = _escape.match(body, position)
        if match is None or (binary and (match[4] or match[5])):
            raise ValueError("unable to unescape string")
        code = (
            _SIMPLE[match[1]]
            if match[1]
            else int(match[3], 8)
            if match[3]
            else int(match[2] or match[4] or match[5], 16)
        )
        if binary:
            out.append(bytes([code]))  # type: ignore[arg-type]
        elif code > 0x10FFFF or 0xD800 <= code < 0xE000:
            raise ValueError("invalid unicode code point")
        else:
            out.append(chr(code))  # type: ignore[arg-type]
        position = match.end()
    return b"".join(out) if binary else "".join(out)  # type: ignore[arg-type]
