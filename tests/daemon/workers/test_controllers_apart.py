"""With workers, the first one runs the controllers.  Here all processes are in this one; ``tests/journeys`` forks."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from worker_site import Site, served

from seamark.config import Config, settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.daemon.controlling import MOVABLE, moved
from seamark.daemon.workers import pool
from seamark.daemon.workers.worker import TELL
from seamark.kinds.resource import DEPLOYMENTS, ENDPOINT_SLICES, SERVICES
from seamark.rules.objects.endpointslice import EndpointSlice

COMPONENTS = ("controllers", "surroundings", "discovery", "nodes")
CONTROLLERS = {
    "cleaning",
    "controllers",
    "controllers-informers",
    "discovery",
    "identity",
    "node-ports",
    "scheduler",
}
SELECTOR = {"app": "web"}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return settled(
        {"data_dir": str(tmp_path), "ephemeral": True, "api": {"port": 0, "workers": 2}, "nodes": {"count": 1}}
    )


@pytest.fixture
async def site(config: Config) -> AsyncIterator[Site]:
    async with served(config, COMPONENTS) as made:
        yield made


def web(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": SELECTOR}, "spec": {"containers": [{"name": "c", "image": "example/web:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": SELECTOR}, "template": template}
    return {"metadata": {"name": "web"}, "spec": spec}


async def deploy(daemon: Daemon, replicas: int) -> None:
    cluster = daemon.api.cluster("apiserver")
    service = {"metadata": {"name": "web"}, "spec": {"selector": SELECTOR, "ports": [{"port": 80}]}}
    await cluster.create(SERVICES, service, namespace="default")
    await cluster.create(DEPLOYMENTS, web(replicas), namespace="default")


async def until_ready(daemon: Daemon, count: int) -> None:
    """Return once the slices have so many ready endpoints."""
    slices = daemon.informers.of(ENDPOINT_SLICES, as_=EndpointSlice)
    changed = asyncio.Event()
    slices.on_change(lambda key, old, new: changed.set())
    while (
        sum(each.ready for one in slices.objects() for each in one.endpoints or () if one.service_name == "web") < count
    ):
        changed.clear()
        await changed.wait()


async def test_a_deployment_becomes_ready_by_controllers_of_a_worker_and_nodes_of_the_main_process(site: Site) -> None:
    await deploy(site.daemon, 5)
    await until_ready(site.daemon, 5)
    assert not CONTROLLERS & site.daemon.supervisor.parts.keys()
    assert "nodes" in site.daemon.supervisor.parts


async def test_the_parts_of_a_worker_are_told_of_like_those_of_the_main_process(site: Site) -> None:
    client = await site.client()
    code, text = await site.page(client, "/readyz?verbose")
    assert code == 200
    assert CONTROLLERS | {"nodes", "worker-1"} <= set(re.findall(r"\[\+\](\S+) ok", text))
    _, text = await site.page(client, "/metrics")
    where = dict(re.findall(r'seamark_part_up\{part="(\S+)",worker="(\d)"\}', text))
    assert {where[part] for part in CONTROLLERS} == {"1"}
    assert where["nodes"] == "0"


async def test_a_problem_of_a_part_in_a_worker_is_a_problem_of_the_whole(site: Site) -> None:
    part = site.forks.workers[0].supervisor.parts["discovery"]
    part._check = lambda: "out of sorts"
    for client in (await site.client(), await site.client()):
        code, text = await site.page(client, "/readyz")
        assert (code, "[-]discovery failed: out of sorts" in text) == (500, True)
        _, text = await site.page(client, "/api/v1/componentstatuses/discovery")
        assert '"message":"out of sorts"' in text


async def test_a_worker_that_does_not_answer_is_told_of_and_holds_nothing_up(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "PATIENCE", 0.01)
    answered, stuck = site.forks.workers[0].answer, asyncio.Event()

    async def answer(body: bytes) -> bytes:
        if body == TELL:
            await stuck.wait()
        return await answered(body)

    monkeypatch.setattr(site.forks.workers[0], "answer", answer)
    for client in (await site.client(), await site.client()):
        code, text = await site.page(client, "/readyz")
        assert (code, "[-]worker-1 failed: pid" in text) == (500, True)
        assert (await site.page(client, "/metrics"))[0] == 200
    stuck.set()


async def test_a_rollout_goes_on_with_the_worker_that_replaces_another(site: Site) -> None:
    await deploy(site.daemon, 3)
    (ended,) = site.forks.running
    ended.cancel()
    await asyncio.wait([ended])
    site.forks.running.remove(ended)
    site.gate.open.set()
    await until_ready(site.daemon, 3)


async def test_a_process_that_cannot_be_had_is_tried_for_again(site: Site) -> None:
    site.forks.full = True
    (ended,) = site.forks.running
    ended.cancel()
    await asyncio.wait([ended])
    site.forks.running.remove(ended)
    await deploy(site.daemon, 3)
    site.gate.open.set()
    part = site.daemon.supervisor.parts["worker-1"]
    while "temporarily unavailable" not in (part.problem or ""):
        await asyncio.sleep(0)
    code, text = await site.page(await site.client(), "/readyz?verbose")
    assert (code, "[-]worker-1 failed: " in text) == (500, True)
    site.forks.full = False
    await until_ready(site.daemon, 3)


def test_which_components_move(config: Config) -> None:
    all_of_them = frozenset(EVERYTHING)
    assert moved(config, all_of_them) == MOVABLE
    assert moved(config, frozenset({"controllers"})) == {"controllers"}
    assert not moved(replace(config, api=replace(config.api, workers=1)), all_of_them)
    assert not moved(replace(config, store=f"etcd://127.0.0.1:1/{uuid.uuid4()}"), all_of_them)
