"""Events go an hour after they last changed, a few at a time."""

import asyncio

import msgspec
import pytest_asyncio
from own_cluster import own_cluster

from seamark.access.informers import Informers
from seamark.controllers.housekeeping.event_expiry import (
    LONGEST_SLEEP,
    PAUSE_SECONDS,
    STEP,
    AgingEvent,
    EventExpiry,
    last_change,
)
from seamark.errors import ServiceUnavailable
from seamark.kinds.resource import EVENTS
from seamark.kinds.values import times
from turns import drained


@pytest_asyncio.fixture
async def own():
    async with own_cluster() as cluster:
        yield cluster


class Expiring:
    def __init__(self, own, cluster=None, keep=3600.0):
        informers = Informers(own.cluster)
        self.own = own
        self.expiry = EventExpiry(
            cluster or own.cluster, informers, keep=keep, now=own.clock.now, sleep=own.clock.sleep
        )
        self.tasks = [asyncio.create_task(informers.run()), asyncio.create_task(self.expiry.run())]

    async def __aenter__(self):
        await self.own.quiet()
        return self

    async def __aexit__(self, *error):
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def pass_time(self, seconds):
        """In small steps, so that the store's answers come in between."""
        for _ in range(20):
            await self.own.clock.advance(seconds / 20)
            await drained(self.own.store)
        await self.own.quiet()


async def happen(own, name, *, count=1):
    at = times.text(own.clock.now())
    event = {
        "metadata": {"name": name},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Testing",
        "message": "it happened",
        "type": "Normal",
        "count": count,
        "firstTimestamp": at,
        "lastTimestamp": at,
    }
    await own.cluster.create(EVENTS, event, namespace="default")


async def names(own):
    return sorted(event["metadata"]["name"] for event in (await own.cluster.list(EVENTS)).items)


def test_when_an_event_last_changed():
    def at(**fields):
        return last_change(
            msgspec.convert({"metadata": {"name": "e", **fields.pop("metadata", {})}, **fields}, AgingEvent)
        )

    assert at(metadata={"creationTimestamp": "1970-01-01T00:00:10Z"}) == 10
    assert at(metadata={"creationTimestamp": "1970-01-01T00:00:10Z"}, lastTimestamp="1970-01-01T00:00:20Z") == 20
    assert at(eventTime="1970-01-01T00:00:30.500000Z") == 30.5
    assert at(series={"lastObservedTime": "1970-01-01T00:00:40.000000Z"}, lastTimestamp=None) == 40
    assert at() == 0


async def test_an_event_goes_after_an_hour_and_not_before(own):
    async with Expiring(own) as expiring:
        await happen(own, "early")
        await own.quiet()
        await expiring.pass_time(1800)
        await happen(own, "late")
        await own.quiet()
        await expiring.pass_time(1750)
        assert await names(own) == ["early", "late"]
        await expiring.pass_time(200)
        assert await names(own) == ["late"]
        await expiring.pass_time(1800)
        assert await names(own) == []


async def test_what_happens_again_stays_longer(own):
    async with Expiring(own) as expiring:
        await happen(own, "again")
        await happen(own, "once")
        await own.quiet()
        await expiring.pass_time(3000)
        await own.cluster.patch(EVENTS, "again", {"count": 2}, namespace="default")
        await own.quiet()
        await expiring.pass_time(1000)
        assert await names(own) == ["again"]
        await expiring.pass_time(3000)
        assert await names(own) == []


async def test_events_from_before_a_restart_go_by_their_own_times(own):
    await happen(own, "old")
    own.clock.time += 3000
    await happen(own, "new")
    async with Expiring(own) as expiring:
        await expiring.pass_time(700)
        assert await names(own) == ["new"]


async def test_many_go_in_small_steps(own):
    for number in range(3 * STEP):
        await happen(own, f"e{number}")
    own.clock.time += 3600
    async with Expiring(own):
        await own.until(lambda: names(own), lambda left: len(left) == 2 * STEP)
        await own.quiet()
        assert len(await names(own)) == 2 * STEP
        await own.clock.advance(PAUSE_SECONDS)
        await own.until(lambda: names(own), lambda left: len(left) == STEP)


async def test_one_made_anew_under_the_same_name_starts_anew(own):
    async with Expiring(own) as expiring:
        await happen(own, "name")
        await own.quiet()
        await expiring.pass_time(3000)
        await own.cluster.delete(EVENTS, "name", namespace="default")
        await happen(own, "name")
        await own.quiet()
        await expiring.pass_time(1000)
        assert await names(own) == ["name"]
        await expiring.pass_time(3000)
        assert await names(own) == []


class Refusing:
    """A cluster that cannot delete for a while."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.refusals = 1

    async def delete(self, *args, **more):
        if self.refusals:
            self.refusals -= 1
            raise ServiceUnavailable("not now")
        await self.cluster.delete(*args, **more)


async def test_after_a_failure_it_goes_on(own):
    await happen(own, "name")
    own.clock.time += 3600
    refusing = Refusing(own.cluster)
    async with Expiring(own, refusing) as expiring:
        assert refusing.refusals == 0
        assert await names(own) == ["name"]
        await expiring.pass_time(LONGEST_SLEEP)
        assert await names(own) == []
