"""What takes long is done in a thread, one thing at a time, and not without a limit."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref

import pytest

from seamark import haste
from seamark.haste import Costly, Patience, at_length, at_once, spend


def test_only_little_may_be_spent_at_once_and_not_all_at_length() -> None:
    spend(10**12)  # outside of a budget, nothing is counted
    at_once(lambda: spend(haste.STEPS_AT_ONCE // 2))
    with pytest.raises(Costly):
        at_once(lambda: spend(haste.STEPS_AT_ONCE))
    at_length(lambda: spend(haste.STEPS_AT_ONCE))
    with pytest.raises(Costly):
        at_length(lambda: spend(haste.STEPS_AT_LENGTH))


async def test_what_was_begun_is_finished_before_the_next_although_nobody_waits_for_it() -> None:
    patience, under_way, most = Patience(), 0, 0
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        begun.set()
        go_on.wait()
        under_way -= 1

    first, never, last = [asyncio.ensure_future(patience.hear(work)) for _ in range(3)]
    while not begun.is_set():
        await asyncio.sleep(0)
    first.cancel()
    never.cancel()
    await asyncio.wait([first, never])
    go_on.set()
    await last
    assert (most, under_way) == (1, 0)


class Large:
    """Something that must not be kept."""


async def test_an_error_does_not_keep_what_was_worked_on() -> None:
    large = Large()
    gone = weakref.ref(large)

    def fail(given: Large) -> None:
        raise ValueError(str(type(given)))

    gc.disable()
    try:
        with pytest.raises(ValueError, match="Large"):
            await Patience().hear(fail, large)
        del large
        assert gone() is None
    finally:
        gc.enable()
