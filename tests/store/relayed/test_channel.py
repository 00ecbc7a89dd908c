"""A channel between two ends, here in one process: answers, series, refusals, and what happens when one end goes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator

import pytest

from seamark.channel import AHEAD, Channel, Lost, Refused, Series


class Echo:
    """Answers with what it was asked; a number is refused, a series counts up to it."""

    def __init__(self) -> None:
        self.sent = 0
        self.hold = asyncio.Event()
        self.stopped = asyncio.Event()

    async def answer(self, body: bytes) -> bytes:
        match body:
            case b"refuse":
                raise Refused(b"no")
            case b"fail":
                raise KeyError("a bug")
            case b"hold":
                await self.hold.wait()
        return body

    async def series(self, body: bytes) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(int(body)):
                self.sent = number + 1
                yield b"%d" % number
            if body == b"0":
                raise Refused(b"nothing")
        finally:
            self.stopped.set()


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Channel, Channel, Echo]]:
    ours, theirs = socket.socketpair()
    echo = Echo()
    asking, answering = await Channel.over(ours, {}), await Channel.over(theirs, {"echo": echo})
    yield asking, answering, echo
    await asking.close()
    await answering.close()


Ends = tuple[Channel, Channel, Echo]


async def collect(series: Series) -> list[bytes]:
    return [body async for body in series]


async def test_answers_come_to_their_questions_in_any_order(ends: Ends) -> None:
    asking, _, echo = ends
    held = asyncio.create_task(asking.ask("echo", b"hold"))
    assert await asking.ask("echo", b"quick") == b"quick"
    assert not held.done()
    echo.hold.set()
    assert await held == b"hold"


async def test_an_answer_may_be_larger_than_a_socket_holds(ends: Ends) -> None:
    large = bytes(5_000_000)
    assert await ends[0].ask("echo", large) == large


async def test_a_refusal_and_a_bug_are_told_apart(ends: Ends, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(Refused) as refused:
        await ends[0].ask("echo", b"refuse")
    assert refused.value.body == b"no"
    with pytest.raises(RuntimeError, match="a bug"):
        await ends[0].ask("echo", b"fail")
    assert "was not answered" in caplog.text
    with pytest.raises(Refused):
        await collect(ends[0].follow("echo", b"0"))


async def test_a_series_is_complete_and_in_order(ends: Ends) -> None:
    assert await collect(ends[0].follow("echo", b"500")) == [b"%d" % number for number in range(500)]


async def test_a_series_that_is_not_read_waits(ends: Ends) -> None:
    asking, _, echo = ends
    series = asking.follow("echo", b"500")
    assert await anext(series) == b"0"
    await asking.ask("echo", b"after")
    assert echo.sent <= AHEAD + 1
    assert len(await collect(series)) == 499


async def test_a_series_that_is_dropped_or_ended_stops_at_the_other_end(ends: Ends) -> None:
    asking, _, echo = ends
    series = asking.follow("echo", b"500")
    await anext(series)
    del series
    await echo.stopped.wait()
    echo.stopped.clear()
    series = asking.follow("echo", b"500")
    await anext(series)
    series.end()
    await echo.stopped.wait()
    assert len(await collect(series)) < 500


async def test_when_one_end_goes_the_other_is_told(ends: Ends) -> None:
    asking, answering, _ = ends
    held = asyncio.create_task(asking.ask("echo", b"hold"))
    series = asking.follow("echo", b"500")
    await anext(series)
    await answering.close()
    with pytest.raises(Lost):
        await held
    with pytest.raises(Lost):
        await collect(series)
    with pytest.raises(Lost):
        await asking.ask("echo", b"late")
