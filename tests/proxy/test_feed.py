"""The feed: what changes in a cluster reaches an engine, whatever happens on the way."""

import asyncio
from contextlib import asynccontextmanager

from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.kinds.resource import ENDPOINT_SLICES, NODES, SERVICES
from seamark.proxy.feed import RouteFeed
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from turns import until


class RecordingEngine:
    """Keeps what it is told; raises for the first ``failures`` updates."""

    rules = 0

    def __init__(self, failures=0):
        self.routes = {}
        self.updates = []
        self.failures = failures
        self.running = False

    async def start(self):
        self.running = True

    async def apply(self, update):
        if self.failures:
            self.failures -= 1
            raise OSError("not now")
        self.updates.append(update)
        self.routes = {} if update.everything else self.routes
        self.routes |= update.routes
        self.routes = {key: each for key, each in self.routes.items() if each is not None}

    async def close(self):
        self.running = False

    def backends(self, key="default/web"):
        found = self.routes.get(key)
        return [each.address for route in found.routes for each in route.cluster.backends] if found else None


@asynccontextmanager
async def following(own, engine, node=""):
    informers = Informers(own.api.cluster("proxy"))
    feed = RouteFeed(informers, engine, Surroundings(ThisNode(node)), clock=own.clock)
    started = asyncio.Event()
    tasks = [asyncio.create_task(informers.run()), asyncio.create_task(feed.run(started.set))]
    try:
        yield feed, started
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.wait([task])


def web():
    return {"kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}


def members(*addresses):
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
        "endpoints": [{"addresses": [each]} for each in addresses],
    }


async def test_everything_first_then_what_changes():
    engine = RecordingEngine()
    async with own_cluster() as own:
        await own.cluster.create(SERVICES, web(), namespace="default")
        async with following(own, engine) as (_, started):
            await started.wait()
            assert engine.updates[0].everything
            assert engine.backends() == []
            await own.cluster.create(ENDPOINT_SLICES, members("10.0.0.1"), namespace="default")
            await until(lambda: engine.backends() == ["10.0.0.1"])
            assert list(engine.updates[-1].routes) == ["default/web"]
            assert not engine.updates[-1].everything
            await own.cluster.delete(SERVICES, "web", namespace="default")
            await until(lambda: engine.backends() is None)
        assert not engine.running


async def test_what_an_engine_could_not_carry_out_is_given_to_it_again():
    engine = RecordingEngine(failures=2)
    async with own_cluster() as own:
        await own.cluster.create(SERVICES, web(), namespace="default")
        async with following(own, engine) as (feed, started):
            await until(lambda: feed.problem)
            assert feed.problem == "OSError: not now"
            await own.cluster.create(ENDPOINT_SLICES, members("10.0.0.1"), namespace="default")
            await own.clock.advance(60)
            await started.wait()
            await until(lambda: engine.backends() == ["10.0.0.1"])
            assert engine.updates[0].everything
            assert feed.problem is None


async def test_a_failed_handler_leads_to_everything_anew():
    engine = RecordingEngine()
    async with own_cluster() as own, following(own, engine) as (feed, started):
        await started.wait()
        feed.table._claims.put = None  # so that taking in the Service raises; starting anew makes other claims
        await own.cluster.create(SERVICES, web(), namespace="default")
        await until(lambda: own.clock.next_due() is not None)
        await own.clock.advance(1)
        await until(lambda: engine.backends() == [])
        assert engine.updates[-1].everything


async def test_this_node_is_followed_by_name():
    engine = RecordingEngine()
    node = {"kind": "Node", "metadata": {"name": "node-a", "labels": {"topology.kubernetes.io/zone": "here"}}}
    async with own_cluster() as own, following(own, engine, node="node-a") as (_, started):
        await started.wait()
        await own.cluster.create(SERVICES, web(), namespace="default")
        await own.cluster.create(NODES, node)
        await until(lambda: engine.updates[-1].surroundings.node.zone == "here")
        assert "default/web" in engine.routes


async def test_places_that_are_too_many_are_told_once(caplog):
    engine = RecordingEngine()
    ports = [{"name": f"p{i}", "port": i + 1} for i in range(100)]
    many = {**web(), "spec": {"ports": ports, "externalIPs": [f"198.51.100.{i}" for i in range(101)]}}
    async with own_cluster() as own, following(own, engine) as (_, started):
        await started.wait()
        await own.cluster.create(SERVICES, many, namespace="default")
        await until(lambda: "default/web" in engine.routes)
        slice = {**members("10.0.0.1"), "ports": [{"name": "p1", "port": 8080}]}
        await own.cluster.create(ENDPOINT_SLICES, slice, namespace="default")
        await until(lambda: engine.backends() == ["10.0.0.1"])
    told = [record.getMessage() for record in caplog.records if record.name == "seamark.proxy.feed"]
    assert told == ["default/web has too many addresses, ports and endpoints: 100 places are not served"]
