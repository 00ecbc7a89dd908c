"""Work of many connections: it takes turns."""

from __future__ import annotations

import asyncio

from seamark.runtime.turns import TURN, Turns


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
