"""Events go an hour after they last changed, a few at a time."""

import contextlib

import msgspec

from seamark.access.informers import Informers
from seamark.controllers.housekeeping.event_expiry import (
    PAUSE_SECONDS,
    STEP,
    AgingEvent,
    EventExpiry,
    last_change,
)
from seamark.errors import ServiceUnavailable
from seamark.kinds.resource import EVENTS
from seamark.kinds.values import times
from seamark.runtime.manager import Manager
from turns import drained, turns


@contextlib.asynccontextmanager
async def expiring(own, cluster=None, keep=3600.0):
    """Yields how to let time pass."""
    manager = Manager(Informers(own.cluster), clock=own.clock)
    manager.add(EventExpiry(manager, cluster or own.cluster, keep=keep))
    async with own.managed(manager):
        yield lambda seconds: own.clock.advance(seconds, own.quiet)


async def happen(own, name, *, count=1):
    at = times.text(own.clock.time())
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
    async with expiring(own) as pass_time:
        await happen(own, "early")
        await own.quiet()
        await pass_time(1800)
        await happen(own, "late")
        await own.quiet()
        await pass_time(1750)
        assert await names(own) == ["early", "late"]
        await pass_time(200)
        assert await names(own) == ["late"]
        await pass_time(1800)
        assert await names(own) == []


async def test_what_happens_again_stays_longer(own):
    async with expiring(own) as pass_time:
        await happen(own, "again")
        await happen(own, "once")
        await own.quiet()
        await pass_time(3000)
        await own.cluster.patch(EVENTS, "again", {"count": 2}, namespace="default")
        await own.quiet()
        await pass_time(1000)
        assert await names(own) == ["again"]
        await pass_time(3000)
        assert await names(own) == []


async def test_events_from_before_a_restart_go_by_their_own_times(own):
    await happen(own, "old")
    own.clock.now += 3000
    await happen(own, "new")
    async with expiring(own) as pass_time:
        await pass_time(700)
        assert await names(own) == ["new"]


async def test_many_go_in_small_steps(own):
    for number in range(3 * STEP):
        await happen(own, f"e{number}")
    own.clock.now += 3600
    async with expiring(own):
        await own.until(lambda: names(own), lambda left: len(left) == 2 * STEP)
        await turns()
        assert len(await names(own)) == 2 * STEP
        await own.clock.advance(PAUSE_SECONDS)
        await own.until(lambda: names(own), lambda left: len(left) == STEP)


class Slow:
    """A cluster where every deletion takes half a second."""

    def __init__(self, own):
        self.own = own

    async def delete(self, *args, **more):
        await self.own.clock.sleep(0.5)
        await self.own.cluster.delete(*args, **more)


async def test_deletions_keep_up_where_each_takes_long(own):
    for number in range(5 * STEP):
        await happen(own, f"e{number}")
    own.clock.now += 3600
    async with expiring(own, Slow(own)):
        for _ in range(6):
            await own.clock.advance(0.5 + PAUSE_SECONDS)
            await drained(own.store)
            await turns()
        assert await names(own) == []


async def test_one_made_anew_under_the_same_name_starts_anew(own):
    async with expiring(own) as pass_time:
        await happen(own, "name")
        await own.quiet()
        await pass_time(3000)
        await own.cluster.delete(EVENTS, "name", namespace="default")
        await happen(own, "name")
        await own.quiet()
        await pass_time(1000)
        assert await names(own) == ["name"]
        await pass_time(3000)
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
    own.clock.now += 3600
    refusing = Refusing(own.cluster)
    async with expiring(own, refusing) as pass_time:
        await own.quiet()
        assert refusing.refusals == 0
        assert await names(own) == ["name"]
        await pass_time(2.0)
        assert await names(own) == []
