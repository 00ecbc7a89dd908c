"""How long history is kept."""

from __future__ import annotations

import pytest

from seamark.store.history import Window, keep
from seamark.store.protocol import Unavailable
from virtual_time import HastyClock


def test_nothing_is_forgotten_before_the_window_is_full() -> None:
    window = Window(seconds=300)
    assert [window.oldest(now=now, revision=now + 10) for now in (0, 100, 200, 299)] == [0, 0, 0, 0]


def test_what_is_older_than_the_window_is_forgotten() -> None:
    window = Window(seconds=300)
    oldest = [window.oldest(now=now, revision=now + 10) for now in range(0, 700, 50)]
    assert oldest == [0, 0, 0, 0, 0, 0, 10, 60, 110, 160, 210, 260, 310, 360]


def test_after_a_long_sleep_the_last_look_before_the_window_counts() -> None:
    window = Window(seconds=300)
    window.oldest(now=0, revision=5)
    window.oldest(now=10, revision=6)
    assert window.oldest(now=1000, revision=7) == 6


class Counted:
    """A store of which only the revision and the compactions matter."""

    def __init__(self) -> None:
        self.at = 0
        self.compacted: list[int] = []

    async def revision(self) -> int:
        self.at += 10
        return self.at

    async def compact(self, revision: int) -> None:
        if revision == 20:
            self.compacted.append(-revision)
            raise Unavailable("the disk is full")
        self.compacted.append(revision)


async def test_the_loop_compacts_each_time_and_tries_again_after_a_failure() -> None:
    class Minute(HastyClock):
        async def sleep(self, seconds: float) -> None:
            await super().sleep(seconds)
            if self.now > 60:
                raise KeyboardInterrupt

    store = Counted()
    with pytest.raises(KeyboardInterrupt):
        await keep(store, Window(seconds=30), clock=Minute())  # type: ignore[arg-type] # a part of it
    assert store.compacted == [10, -20, *range(30, 120, 10)]
