"""Long answers: what is cut up is whole again, and connections take turns to write."""

from __future__ import annotations

import asyncio
import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.http.pieces import PIECE, TURN, Turns, packed, pieces_of


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


class Answer:
    """A long answer that takes its time for each piece."""

    def __init__(self, name: str, pieces: int, turns: Written) -> None:
        self.name, self.left, self.turns = name, pieces, turns

    def send_piece(self) -> None:
        self.turns.now += TURN / 2
        self.turns.written.append(self.name)
        self.left -= 1
        if self.left:
            self.turns.senders.add(self.send_piece)


class Written:
    def __init__(self) -> None:
        self.now = 0.0
        self.written: list[str] = []
        self.senders = Turns(now=lambda: self.now)

    async def next(self) -> str:
        """What is written in the next turn of the event loop."""
        self.written.clear()
        await asyncio.sleep(0)
        return "".join(self.written)


async def test_connections_take_turns_and_the_event_loop_is_not_kept() -> None:
    turns = Written()
    for name, pieces in (("a", 3), ("b", 1), ("c", 2)):
        turns.senders.add(Answer(name, pieces, turns).send_piece)
    assert [await turns.next() for _ in range(5)] == ["ab", "ca", "ca", "", ""]


async def test_one_alone_writes_one_piece_in_a_turn() -> None:
    turns = Written()
    turns.senders.add(Answer("a", 2, turns).send_piece)
    assert [await turns.next() for _ in range(3)] == ["a", "a", ""]


async def test_an_answer_that_fails_keeps_no_other_from_its_turn() -> None:
    turns = Written()
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    turns.senders.add(Broken().send_piece)
    turns.senders.add(Answer("b", 1, turns).send_piece)
    assert [await turns.next() for _ in range(2)] == ["", "b"]


class Broken:
    def send_piece(self) -> None:
        raise ConnectionError


@pytest.mark.parametrize("body", [b"", []])
def test_nothing_has_no_pieces(body: bytes | list[bytes]) -> None:
    assert b"".join(pieces_of(body)) == b""
