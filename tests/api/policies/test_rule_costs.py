"""Rules that pass the estimate of their cost are stopped by what they really cost, on both stores."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.api.custom_resources import BASE, DEFINITIONS, definition, version, widget
from tests.api.served import Served, served

# Within the limit of an estimate, which is ten times as much as one evaluation may cost.
LOOP = "self.items.all(x, self.items.all(y, self.items.all(z, x + y + z >= 0)))"


@pytest_asyncio.fixture(params=["memory", "etcd"])
async def api(request: pytest.FixtureRequest) -> AsyncIterator[Served]:
    url = "memory:"
    if request.param == "etcd":
        url = f"etcd://{','.join(request.getfixturevalue('etcd').addresses)}/{uuid.uuid4().hex}"
    async with served(url=url) as server:
        yield server


async def test_a_rule_is_stopped_by_what_it_costs(api: Served) -> None:
    items = {"type": "array", "maxItems": 100, "items": {"type": "integer"}}
    spec = {"type": "object", "properties": {"items": items}, "x-kubernetes-validations": [{"rule": LOOP}]}
    come = asyncio.Event()
    stop = api.api.kinds.on_change(lambda old, new: come.set())
    await api.post(DEFINITIONS, definition(version(spec=spec)))
    await come.wait()
    stop()
    await api.post(BASE, widget("small", items=[1, 2, 3]))
    refused = await api.ask("POST", BASE, widget("large", items=list(range(100))))
    assert (refused.status, refused.json["message"]) == (
        422,
        'Widget.example.com "large" is invalid: spec: Invalid value: "object": \'operation cancelled: actual cost '
        f"limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: {LOOP}",
    )
    assert [each["metadata"]["name"] for each in (await api.get(BASE))["items"]] == ["small"]
