"""Whatever goes wrong on the way, the end is right, and nothing is written that should not be."""

import asyncio
import random

import pytest
from faulty_cluster import FaultyCluster
from memory_cluster import MemoryCluster
from running import running, settled
from scenery import NS, assert_right, flip, hand_made, node, pod, put, service

from seamark import errors
from seamark.controllers.discovery.discovery import DiscoverySettings
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, EVENTS, PODS, SERVICES


@pytest.fixture
async def cluster():
    made = MemoryCluster()
    await put(made, node("node-a", "zone-a"), node("node-b", "zone-b"))
    return made


def once(verb, resource, error):
    """The first such request ends so."""
    left = [error]

    def fault(asked, about, name):
        return left.pop() if left and asked == verb and about is resource else None

    return fault


def listed(cluster):
    return sorted(
        ip for s in cluster.objects(ENDPOINT_SLICES) for e in s.get("endpoints") or () for ip in e["addresses"]
    )


def reasons(cluster):
    return {each["reason"] for each in cluster.objects(EVENTS)}


@pytest.mark.parametrize("resource", [ENDPOINTS, ENDPOINT_SLICES])
@pytest.mark.parametrize(
    "error",
    [
        errors.InternalError("etcdserver: leader changed"),
        errors.ServiceUnavailable("the connection was refused"),
        errors.TooManyRequests("slow down", retry_after=3),
        errors.Timeout("no answer in time"),
    ],
)
async def test_a_create_that_fails_is_tried_again(cluster, resource, error):
    through = FaultyCluster(cluster, once("create", resource, error))
    await put(cluster, service(), pod("p1"), service("ext", selector={}), hand_made())
    async with running(cluster, through=through) as controllers:
        await controllers.settle(quiet=10)
        await assert_right(cluster)
        assert len(cluster.objects(ENDPOINT_SLICES)) == 2


@pytest.mark.parametrize("verb", ["create", "update", "delete"])
@pytest.mark.parametrize("resource", [ENDPOINTS, ENDPOINT_SLICES])
async def test_an_answer_lost_after_the_write_makes_nothing_twice(cluster, verb, resource):
    through = FaultyCluster(cluster)
    await put(cluster, service(), *[pod(f"p{i}") for i in range(4)])
    settings = DiscoverySettings(max_endpoints_per_slice=2)
    lost = ("after", errors.ServiceUnavailable("lost the connection"))
    if verb == "create":
        through.fault = once(verb, resource, lost)
    async with running(cluster, through=through, settings=settings) as controllers:
        await controllers.settle(quiet=10)
        if verb != "create":
            through.fault = once(verb, resource, lost)
        if verb == "delete" and resource is ENDPOINTS:
            await cluster.delete(SERVICES, "web", namespace=NS)
            await controllers.settle(quiet=10)
            assert cluster.objects(ENDPOINTS) == []
            return
        for name in ("p0", "p1"):
            await cluster.delete(PODS, name, namespace=NS, grace_seconds=0)
        await controllers.settle(quiet=10)
        await assert_right(cluster)
        creates = [kind for asked, kind, _ in cluster.written() if asked == "create"]
        assert sorted(creates) == ["EndpointSlice", "EndpointSlice", "Endpoints"]
        assert len(listed(cluster)) == len(set(listed(cluster))) == 2


async def test_a_lost_answer_and_an_informer_that_lags_still_make_nothing_twice(cluster):
    through = FaultyCluster(cluster)
    await put(cluster, service(), pod("p1"))
    through.fault = once("create", ENDPOINT_SLICES, ("after", errors.ServiceUnavailable("lost the connection")))
    async with running(cluster, through=through) as controllers:
        through.lag(ENDPOINT_SLICES, ENDPOINTS)
        await controllers.clock.advance(30)
        assert len(cluster.objects(ENDPOINT_SLICES)) == 1
        through.catch_up()
        await controllers.settle()
        await assert_right(cluster)
        assert len(cluster.objects(ENDPOINT_SLICES)) == 1


async def test_somebody_is_faster(cluster):
    """Between plan and write the object changes, again and again: a conflict each time, and no lost update."""
    through = FaultyCluster(cluster)
    await put(cluster, service(), pod("p1"))
    meddling = {"left": 0}

    async def meddle(verb, resource, name):
        if verb == "update" and resource in (ENDPOINTS, ENDPOINT_SLICES) and meddling["left"]:
            meddling["left"] -= 1
            meddling[resource] = str(meddling["left"])
            note = {"metadata": {"annotations": {"note": meddling[resource]}}}
            await cluster.patch(resource, name, note, namespace=NS)

    async with settled(cluster, through=through) as controllers:
        through.before = meddle
        for times in (1, 3, 9):
            meddling["left"] = times
            await flip(cluster, "p1", times == 3)
            await controllers.settle(quiet=60)
            assert meddling["left"] == 0
            await assert_right(cluster)
        for kind in (ENDPOINTS, ENDPOINT_SLICES):
            assert cluster.objects(kind)[0]["metadata"]["annotations"]["note"] == meddling[kind]


@pytest.mark.parametrize("compact", [False, True])
async def test_watches_that_break_miss_nothing(cluster, compact):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(10)])
    async with settled(cluster) as controllers:
        await flip(cluster, "p1", False)
        await cluster.delete(PODS, "p2", namespace=NS, grace_seconds=0)
        cluster.cut_watches(compact=compact)
        await put(cluster, pod("p11"), service("late", selector={"app": "web"}))
        await flip(cluster, "p3", False)
        await controllers.settle(quiet=10)
        await assert_right(cluster)


async def test_an_api_server_that_is_away_for_a_while(cluster):
    through = FaultyCluster(cluster)
    await put(cluster, service(), *[pod(f"p{i}") for i in range(5)])
    async with settled(cluster, through=through) as controllers:
        through.fault = lambda verb, resource, name: errors.ServiceUnavailable("connection refused")
        cluster.cut_watches(compact=True)
        await flip(cluster, "p1", False)
        await controllers.clock.advance(120)
        through.fault = lambda verb, resource, name: None
        await controllers.settle(quiet=60)
        await assert_right(cluster)


async def test_refusals_are_told_and_do_not_stop_others(cluster):
    await put(cluster, service("bad", selector={"app": "web"}), service(), pod("p1"))

    def fault(verb, resource, name):
        refused = errors.Invalid("endpoints is invalid")
        return refused if verb in ("create", "update") and resource in (ENDPOINTS, ENDPOINT_SLICES) and bad else None

    bad = True
    through = FaultyCluster(cluster, fault)
    async with running(cluster, through=through) as controllers:
        await controllers.clock.advance(20)
        assert {"FailedToCreateEndpoint", "FailedToUpdateEndpointSlices"} <= reasons(cluster)
        bad = False
        await controllers.settle(quiet=600)
        await assert_right(cluster)


async def test_killed_between_two_writes(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(9)])
    settings = DiscoverySettings(max_endpoints_per_slice=2)
    through = FaultyCluster(cluster)
    written = 0
    dead = asyncio.Event()

    async def die(verb, resource, name):
        nonlocal written
        if resource is ENDPOINT_SLICES:
            written += 1
            if written == 3:
                dead.set()
                await asyncio.Event().wait()

    through.before = die
    async with running(cluster, through=through, settings=settings) as controllers:
        await controllers.clock.advance(1)
        assert dead.is_set()
        controllers.manager._grace = 0.0  # killed, not asked to finish
    assert 0 < len(cluster.objects(ENDPOINT_SLICES)) < 5
    async with settled(cluster, settings=settings) as controllers:
        await assert_right(cluster)
        assert len(cluster.objects(ENDPOINT_SLICES)) == 5


async def test_two_at_once_agree_in_the_end(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(30)], service("ext", selector={}), hand_made())
    settings = DiscoverySettings(max_endpoints_per_slice=10)
    async with running(cluster, settings=settings) as one, running(cluster, settings=settings) as two:
        for step in range(6):
            await flip(cluster, f"p{step}", step % 2 == 0)
            if step == 3:
                await put(cluster, *[pod(f"p{i}") for i in range(30, 45)])
            for _ in range(20):
                await one.clock.advance(0.5)
                await two.clock.advance(0.5)
        for _ in range(60):
            await one.clock.advance(1)
            await two.clock.advance(1)
        await assert_right(cluster)
        before = len(cluster.written())
        for _ in range(60):
            await one.clock.advance(1)
            await two.clock.advance(1)
        assert len(cluster.written()) == before  # and they leave each other in peace


FAULTS = (
    errors.InternalError("oops"),
    errors.ServiceUnavailable("connection refused"),
    errors.TooManyRequests("slow down", retry_after=1),
    ("after", errors.ServiceUnavailable("lost the connection")),
    ("after", errors.Timeout("no answer in time")),
)


@pytest.mark.parametrize("seed", range(25))
async def test_chaos(cluster, seed):
    """Random changes through a connection that fails one request in five, watches that break, others who meddle."""
    chance = random.Random(seed)
    troubled = True

    def fault(verb, resource, name):
        if not troubled or resource in (EVENTS,) or chance.random() > 0.2:
            return None
        error = chance.choice(FAULTS)
        return error if verb != "watch" or not isinstance(error, tuple) else None

    through = FaultyCluster(cluster, fault)
    settings = DiscoverySettings(max_endpoints_per_slice=5)
    async with running(cluster, through=through, settings=settings) as controllers:
        for _ in range(60):
            await disturb(cluster, chance)
            if chance.random() < 0.1:
                cluster.cut_watches(compact=chance.random() < 0.5)
            await controllers.clock.advance(chance.choice([0, 0, 0.01, 0.5, 3]))
        troubled = False
        await controllers.clock.advance(4000)  # the longest wait of a key that kept failing, several times
        await assert_right(cluster)


async def disturb(cluster, chance):
    pods = [each["metadata"]["name"] for each in cluster.objects(PODS)]
    services = [each["metadata"]["name"] for each in cluster.objects(SERVICES)]
    slices = [each["metadata"]["name"] for each in cluster.objects(ENDPOINT_SLICES)]
    what = chance.random()
    if what < 0.35 or not pods:
        name = f"p{chance.randrange(1000)}"
        if name not in pods:
            await put(cluster, pod(name, app=chance.choice(["web", "db"]), node=chance.choice(["node-a", "node-b"])))
    elif what < 0.55:
        await flip(cluster, chance.choice(pods), chance.random() < 0.6)
    elif what < 0.65:
        await cluster.delete(PODS, chance.choice(pods), namespace=NS, grace_seconds=chance.choice([0, 30]))
    elif what < 0.72:
        label = {"metadata": {"labels": {"app": chance.choice(["web", "db"])}}}
        await cluster.patch(PODS, chance.choice(pods), label, namespace=NS)
    elif what < 0.82:
        name = chance.choice(["web", "db", "both"])
        if name in services:
            await cluster.delete(SERVICES, name, namespace=NS)
        else:
            app = chance.choice(["web", "db"])
            await put(cluster, service(name, selector={"app": app}))
    elif what < 0.9 and services:
        number = chance.choice([8080, 9090])
        spec = {"spec": {"ports": [{"port": 80, "targetPort": number}]}}
        await cluster.patch(SERVICES, chance.choice(services), spec, namespace=NS)
    elif slices:
        name = chance.choice(slices)
        if chance.random() < 0.5:
            await cluster.delete(ENDPOINT_SLICES, name, namespace=NS)
        else:
            await cluster.patch(ENDPOINT_SLICES, name, {"endpoints": []}, namespace=NS)
