"""The forms of a port to forward."""

from __future__ import annotations

import pytest

from seamark.forwarding.ports import PortPair, parse_ports


@pytest.mark.parametrize(
    ("word", "pair"),
    [
        ("8080:80", PortPair(8080, 80)),
        ("8080", PortPair(None, 8080)),
        (":80", PortPair(0, 80)),
        ("0:80", PortPair(0, 80)),
        ("8080:http", PortPair(8080, "http")),
        ("http", PortPair(None, "http")),
    ],
)
def test_the_forms_of_kubectl(word: str, pair: PortPair) -> None:
    assert parse_ports([word]) == [pair]


@pytest.mark.parametrize("word", ["", ":", "8080:", "80:80:80", "65536", "x:80", "80:0", "0", "-1", "80:70000", "+80"])
def test_anything_else_is_refused_with_the_word(word: str) -> None:
    with pytest.raises(ValueError, match=f"^{word!r}".replace("+", r"\+")):
        parse_ports([word])
