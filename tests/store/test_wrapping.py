"""What wrappers of a store derive from: it has every call of the protocol."""

from __future__ import annotations

import inspect

import pytest

from seamark.metrics import Registry
from seamark.store import metered
from seamark.store.metered import MeteredStore
from seamark.store.opening import open_store
from seamark.store.protocol import Store, Write
from seamark.store.wrapping import Wrapper
from virtual_time import VirtualClock

CALLS = {name for name, _ in inspect.getmembers(Store, inspect.isfunction) if not name.startswith("_")}


def test_a_wrapper_has_every_call_with_the_same_arguments() -> None:
    assert {"commit", "latest"} <= CALLS
    for name in CALLS:
        assert inspect.signature(getattr(Wrapper, name)) == inspect.signature(getattr(Store, name)), name
        assert name in vars(Wrapper)


async def test_wrappers_around_a_store_change_nothing() -> None:
    store = MeteredStore(Wrapper(open_store("memory:?history=none")), Registry())
    await store.open()
    revision = await store.commit([Write("/a", b"1")])
    assert (store.shared, store.latest(), await store.revision()) == (False, revision, revision)
    assert [row.value for row in (await store.read("/a", "")).rows] == [b"1"]
    assert (await anext(store.watch("/", 0))).revision == revision
    await store.check()
    await store.compact(revision)
    await store.close()


async def test_slow_writes_are_told_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    store = MeteredStore(open_store("memory:?history=none"), Registry(), clock=clock)
    await store.open()

    async def told() -> int:
        await store.commit([Write("/a", b"{}")])
        return sum("the store is slow" in record.getMessage() for record in caplog.records)

    assert await told() == 0
    monkeypatch.setattr(metered, "SLOW_SECONDS", 0.0)
    assert [await told(), await told()] == [1, 1]
    clock.now += metered.SLOW_PAUSE
    assert await told() == 2
    await store.close()
