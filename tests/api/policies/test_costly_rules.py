"""Rules that take long: others are answered meanwhile, and no other request writes the object."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from custom_resources import BASE, defined, version, widget
from served import Served, served

from seamark.kinds.extensions import rules

# Each item is compared with each pair of items: 24 items cost more than the event loop has time for.
RULE = "self.items.all(a, self.items.all(b, self.items.all(c, a + b + c > 0)))"
SPEC = {
    "type": "object",
    "properties": {"items": {"type": "array", "maxItems": 100, "items": {"type": "integer"}}},
    "x-kubernetes-validations": [{"rule": RULE}],
}


class Gate:
    """Stops rules that are evaluated in a thread until it is opened."""

    def __init__(self) -> None:
        self.reached, self._opened = asyncio.Event(), threading.Event()
        self._loop, self._main = asyncio.get_running_loop(), threading.current_thread()
        self._apply = rules._apply

    def __call__(self, *given: Any) -> None:
        if threading.current_thread() is not self._main:
            self._loop.call_soon_threadsafe(self.reached.set)
            self._opened.wait()
        self._apply(*given)

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    async with served(max_in_flight=1) as api:
        await defined(api, version(spec=SPEC))
        yield api


@pytest.fixture
async def gate(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(rules, "_apply", gate)
    yield gate
    gate.open()


async def begun(gate: Gate, write: asyncio.Task[Any]) -> None:
    """Until the rules of this write are evaluated in a thread."""
    reached = asyncio.ensure_future(gate.reached.wait())
    await asyncio.wait((reached, write), return_when=asyncio.FIRST_COMPLETED)
    assert reached.done(), "the write was finished on the event loop"


async def test_others_read_and_write_while_a_costly_rule_is_evaluated(api: Served, gate: Gate) -> None:
    costly = asyncio.ensure_future(api.post(BASE, widget("a", items=list(range(1, 25)))))
    await begun(gate, costly)
    await api.post(BASE, widget("b", items=[1]))
    assert [item["metadata"]["name"] for item in (await api.get(BASE))["items"]] == ["b"]
    assert not costly.done()
    gate.open()
    assert (await costly)["spec"]["items"][-1] == 24


async def test_the_object_is_not_written_by_others_meanwhile(api: Served, gate: Gate) -> None:
    await api.post(BASE, widget("a", items=[1]))
    costly = asyncio.ensure_future(api.merge(f"{BASE}/a", {"spec": {"items": list(range(1, 25))}}))
    await begun(gate, costly)
    label = asyncio.ensure_future(api.merge(f"{BASE}/a", {"metadata": {"labels": {"after": "it"}}}))
    await api.post(BASE, widget("b", items=[1]))
    assert not label.done()
    gate.open()
    assert "labels" not in (await costly)["metadata"]
    assert (await label)["metadata"]["labels"] == {"after": "it"}


async def test_a_costly_rule_that_is_broken_is_told_as_ever(api: Served) -> None:
    answer = await api.ask("POST", BASE, widget("a", items=[*range(1, 30), -100]))
    assert answer.status == 422
    assert f"failed rule: {RULE}" in answer.json["message"]
    answer = await api.ask("POST", BASE, widget("a", items=list(range(1, 101))))
    assert "no further validation rules will be run due to call cost exceeds limit" in answer.json["message"]
