"""Long answers: what is cut up is whole again."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.http.wire.pieces import PIECE, packed, pieces_of


@given(st.lists(st.integers(0, 3 * PIECE), max_size=6))
def test_pieces_are_the_body_and_none_is_long(sizes: list[int]) -> None:
    body = [bytes([number]) * size for number, size in enumerate(sizes)]
    for shape in (body, b"".join(body)):
        pieces = list(pieces_of(shape))
        assert b"".join(pieces) == b"".join(body)
        assert all(len(piece) < 2 * PIECE for piece in pieces)


def test_packed_pieces_are_chunks_of_one_compressed_body() -> None:
    raw, data = b"".join(packed(iter([b"ab" * PIECE, b"c"]))), b""
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        data, raw = data + raw[: int(size, 16)], raw[int(size, 16) + 2 :]
    assert gzip.decompress(data) == b"ab" * PIECE + b"c"


@pytest.mark.parametrize("body", [b"", []])
def test_nothing_has_no_pieces(body: bytes | list[bytes]) -> None:
    assert b"".join(pieces_of(body)) == b""
