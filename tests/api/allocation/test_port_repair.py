"""Node ports that Services use are reserved, and reservations that no Service uses are freed in the end."""

import asyncio

import msgspec
import pytest
import pytest_asyncio

from seamark.api.allocation.repair import ROUNDS_BEFORE_FREED, Findings, PortRepair, examine
from seamark.api.server import ApiServer
from seamark.api.settings import ServiceNetwork
from seamark.api.state.cache import PORTS_PREFIX
from seamark.api.state.entries import key_of, stored
from seamark.errors import Invalid
from seamark.kinds.resource import NAMESPACES, SERVICES
from seamark.metrics import Registry
from seamark.rules.objects.service import Service
from seamark.store.opening import open_store
from seamark.store.protocol import Write
from virtual_time import HastyClock

BOUNDS = (30000, 30099)


class Told:
    """What was recorded, instead of a recorder that writes Events."""

    def __init__(self):
        self.all = []

    def record(self, about, type, *, reason, message):
        self.all.append((about.name, type, reason, message))


class Server:
    def __init__(self, store):
        self.store = store
        network = ServiceNetwork(node_ports=BOUNDS)
        self.api = ApiServer(store, network=network, tokens={}, metrics=Registry())
        self.cluster = self.api.cluster("test")
        self.told = Told()
        self.repair = PortRepair(self.api.cache, store, BOUNDS, self.told)

    @property
    def ports(self):
        return set(self.api.cache.ports)

    async def create(self, name, port=0, **spec):
        spec = {"type": "NodePort", "ports": [{"port": 80, **({"nodePort": port} if port else {})}], **spec}
        return await self.cluster.create(SERVICES, {"metadata": {"name": name}, "spec": spec}, namespace="default")

    async def commit(self, *writes):
        """Behind the API's back."""
        await self.api.cache.reach(await self.store.commit(writes))


@pytest_asyncio.fixture
async def server():
    store = open_store("memory:")
    await store.open()
    made = Server(store)
    await made.api.load()
    following = asyncio.create_task(made.api.follow())
    await made.cluster.create(NAMESPACES, {"metadata": {"name": "default"}})
    yield made
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await store.close()


def user(name, *ports, health=0):
    spec = {"ports": [{"nodePort": port} for port in ports], "healthCheckNodePort": health}
    return msgspec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": spec}, Service)


def test_what_is_wrong_is_found():
    a, b = user("a", 30001, 30001, health=30002), user("b", 30001, 30500, 0)
    assert examine([a], {30001: 5, 30002: 5}, BOUNDS) == Findings()
    found = examine([a, b], {30001: 5, 30009: 6}, BOUNDS)
    assert found == Findings(
        missing=((30002, a),), doubled=((30001, b),), outside=((30500, b),), unused=frozenset({30009})
    )
    assert examine([user("none")], {}, BOUNDS) == Findings()


async def test_where_all_is_well_nothing_is_written(server):
    await server.create("web", 30001)
    await server.create("local", type="LoadBalancer", externalTrafficPolicy="Local")
    before, revision = server.ports, server.api.cache.revision
    for _ in range(ROUNDS_BEFORE_FREED + 1):
        await server.repair.look()
    assert (server.ports, server.api.cache.revision, server.told.all) == (before, revision, [])


async def test_a_lost_reservation_is_made_again(server):
    await server.create("web", 30001)
    await server.commit(Write(f"{PORTS_PREFIX}30001", None))
    await server.repair.look()
    await server.api.cache.reach(await server.store.revision())
    assert server.ports == {30001}
    said = ("web", "Warning", "PortNotAllocated", "Port 30001 is not allocated; repairing")
    assert server.told.all == [said]
    with pytest.raises(Invalid, match="already allocated"):
        await server.create("other", 30001)


async def test_a_reservation_nobody_uses_is_freed_at_the_third_look(server):
    await server.commit(Write(f"{PORTS_PREFIX}30007", b"{}"))
    for _ in range(ROUNDS_BEFORE_FREED - 1):
        await server.repair.look()
        assert server.ports == {30007}
    await server.repair.look()
    await server.api.cache.reach(await server.store.revision())
    assert server.ports == set()
    await server.create("web", 30007)


async def test_a_reservation_that_was_made_anew_is_not_the_one_that_was_unused(server):
    await server.commit(Write(f"{PORTS_PREFIX}30007", b"{}"))
    await server.repair.look()
    await server.repair.look()
    await server.commit(Write(f"{PORTS_PREFIX}30007", None))
    await server.commit(Write(f"{PORTS_PREFIX}30007", b"{}"))
    await server.repair.look()
    assert server.ports == {30007}


async def test_what_only_a_person_can_put_right_is_told(server):
    made = await server.create("web", 30001)
    for name, port in (("twin", 30001), ("far", 31000)):
        meta = {"name": name, "namespace": "default", "uid": name}
        spec = {**made["spec"], "ports": [{**made["spec"]["ports"][0], "nodePort": port}]}
        value = stored({"metadata": meta, "spec": spec, "status": {}})
        await server.commit(Write(key_of(SERVICES, "default", name), value))
    await server.repair.look()
    assert sorted(told[:3] for told in server.told.all) == [
        ("far", "Warning", "PortOutOfRange"),
        ("web", "Warning", "PortAlreadyAllocated"),
    ]


async def test_it_looks_again_and_again(server):
    class Clock(HastyClock):
        async def sleep(self, seconds):
            await super().sleep(seconds)
            await server.commit(Write(f"{PORTS_PREFIX}30001", None))
            if len(self.slept) == 3:
                running.cancel()

    await server.create("web", 30001)
    clock = Clock()
    repair = PortRepair(server.api.cache, server.store, BOUNDS, server.told, clock=clock)
    running = asyncio.create_task(repair.run())
    await asyncio.wait([running])
    assert clock.slept == [180.0] * 3
    assert [told[2] for told in server.told.all] == ["PortNotAllocated"] * 2
