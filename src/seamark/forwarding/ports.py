"""The ports to forward, in kubectl's forms: ``8080:80``, ``8080``, ``:80`` (any free local port), ``8080:http``."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

Remote = int | str  # a number, or the name of a port


class PortPair(msgspec.Struct, frozen=True):
    """A local port and the one it leads to; ``local`` 0 is any free one, None the number of the remote one."""

    local: int | None
    remote: Remote


def parse_ports(words: Iterable[str]) -> list[PortPair]:
    """The ports that a command line names; raises ``ValueError`` with a sentence."""
    return [_parse(word) for word in words]


def _parse(word: str) -> PortPair:
    local, colon, remote = word.partition(":")
    if not colon:
        return PortPair(None, _remote(word, word))
    if ":" in remote:
        raise ValueError(f"{word!r} is no port to forward: write LOCAL:REMOTE, PORT or :REMOTE")
    return PortPair(_number(local, word, least=0) if local else 0, _remote(remote, word))


def _remote(text: str, word: str) -> Remote:
    if text and not text.isdecimal() and text[0] not in "+-":
        return text
    return _number(text, word, least=1)


def _number(text: str, word: str, *, least: int) -> int:
    if not text.isdecimal() or not least <= int(text) <= 65535:
        raise ValueError(f"{word!r}: {text!r} is no port: it must be a number from {least} to 65535")
    return int(text)
