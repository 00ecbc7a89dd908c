"""Leader election: one process leads at a time, another takes over, and the record is client-go's."""

import asyncio
import contextlib
import logging

import pytest

from seamark import errors
from seamark.access.leader import LeaderElection, Timing
from seamark.kinds.resource import LEASES
from turns import turns as settle
from virtual_time import VirtualClock


class LeaseBox:
    """A cluster that stores Leases only; it checks versions, and can be unreachable."""

    def __init__(self):
        self.leases = {}
        self.version = 0
        self.unreachable = set()  # identities of the processes that cannot reach it
        self.writes = 0

    def for_(self, identity):
        return Client(self, identity)


class Client:
    def __init__(self, box, identity):
        self.box = box
        self.identity = identity

    def _check(self, resource):
        assert resource is LEASES
        if self.identity in self.box.unreachable:
            raise errors.ServiceUnavailable("cannot reach the server")

    async def get(self, resource, name, *, namespace):
        self._check(resource)
        await asyncio.sleep(0)
        if (namespace, name) not in self.box.leases:
            raise errors.NotFound("not found")
        return self.box.leases[namespace, name]

    async def create(self, resource, lease, *, namespace):
        self._check(resource)
        await asyncio.sleep(0)
        key = (namespace, lease["metadata"]["name"])
        if key in self.box.leases:
            raise errors.AlreadyExists("already exists")
        return self._store(key, lease)

    async def update(self, resource, lease, *, namespace):
        self._check(resource)
        await asyncio.sleep(0)
        key = (namespace, lease["metadata"]["name"])
        if self.box.leases[key]["metadata"]["resourceVersion"] != lease["metadata"]["resourceVersion"]:
            raise errors.Conflict("changed")
        return self._store(key, lease)

    def _store(self, key, lease):
        self.box.version += 1
        self.box.writes += 1
        stored = {**lease, "metadata": {**lease["metadata"], "resourceVersion": str(self.box.version)}}
        self.box.leases[key] = stored
        return stored


class Skewed:
    """The clock of a machine whose date is wrong by so many seconds."""

    def __init__(self, clock, skew):
        self._clock = clock
        self._skew = skew

    def __getattr__(self, name):
        return getattr(self._clock, name)

    def time(self):
        return 1_700_000_000 + self._clock.now + self._skew


class Process:
    """A candidate; ``working`` says whether it runs the work now."""

    def __init__(self, box, time, identity, skew=0.0, **more):
        self.working = False
        self.starts = 0
        self.finish = asyncio.Event()
        self.leaders = []
        self.election = LeaderElection(
            box.for_(identity),
            namespace="kube-system",
            name="controllers",
            identity=identity,
            clock=Skewed(time, skew),
            random=lambda: 0.5,
            on_new_leader=self.leaders.append,
            **more,
        )

    async def work(self):
        self.working = True
        self.starts += 1
        try:
            await self.finish.wait()
        finally:
            self.working = False

    def start(self):
        self.task = asyncio.create_task(self.election.run(self.work))
        return self

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


@pytest.fixture
def time():
    return VirtualClock(0.0)


@contextlib.asynccontextmanager
async def competing(*processes):
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            await process.stop()


def lease_of(box):
    return box.leases["kube-system", "controllers"]["spec"]


async def test_the_first_one_leads_and_renews(time):
    box = LeaseBox()
    process = Process(box, time, "a")
    async with competing(process):
        await settle()
        assert process.working
        assert lease_of(box) == {
            "holderIdentity": "a",
            "leaseDurationSeconds": 15,
            "acquireTime": "2023-11-14T22:13:20.000000Z",
            "renewTime": "2023-11-14T22:13:20.000000Z",
            "leaseTransitions": 0,
        }
        await time.advance(60)
        assert process.starts == 1
        assert lease_of(box)["renewTime"] == "2023-11-14T22:14:20.000000Z"
        assert lease_of(box)["acquireTime"] == "2023-11-14T22:13:20.000000Z"
        assert box.writes == 31
        assert process.leaders == ["a"]
    # When it stops, it releases the lease.
    assert lease_of(box)["holderIdentity"] == ""
    assert lease_of(box)["leaseDurationSeconds"] == 1


async def test_never_two_at_once_and_a_release_is_taken_up(time):
    box = LeaseBox()
    a, b = Process(box, time, "a"), Process(box, time, "b")
    a.start()
    await settle()
    b.start()
    await time.advance(120)
    assert (a.working, b.working) == (True, False)
    assert b.leaders == ["a"]
    await a.stop()
    await time.advance(5)
    assert b.working
    assert b.leaders == ["a", "b"]
    assert lease_of(box)["holderIdentity"] == "b"
    assert lease_of(box)["leaseTransitions"] == 1
    await b.stop()


async def test_a_leader_out_of_reach_stops_before_another_starts(time):
    box = LeaseBox()
    a, b = Process(box, time, "a"), Process(box, time, "b")
    async with competing(a, b):
        await settle()
        await time.advance(20)
        leader, other = (a, b) if a.working else (b, a)
        box.unreachable.add(leader.election.identity)
        stopped = started = None
        begun = time.now
        while started is None:
            await time.advance(0.25)
            assert not (leader.working and other.working)
            if stopped is None and not leader.working:
                stopped = time.now - begun
            if other.working:
                started = time.now - begun
        assert stopped <= 10.25
        assert 13 <= started <= 15 + 2 * 2.2
        # Once it can reach the cluster again, it finds the lease taken and waits.
        box.unreachable.clear()
        await time.advance(60)
        assert (leader.working, other.working) == (False, True)
        assert leader.election.leader == other.election.identity
        assert lease_of(box)["leaseTransitions"] == 1


async def test_a_short_outage_is_survived(time, caplog):
    box = LeaseBox()
    process = Process(box, time, "a")
    async with competing(process):
        await settle()
        box.unreachable.add("a")
        with caplog.at_level(logging.WARNING):
            await time.advance(7)
        assert "cannot take or renew lease kube-system/controllers: cannot reach the server" in caplog.text
        box.unreachable.clear()
        await time.advance(60)
        assert process.working
        assert process.starts == 1


async def test_clocks_of_different_machines_are_never_compared(time):
    """A holder whose clock is an hour behind keeps the lease, and one an hour ahead does not keep it longer."""
    for skew in (-3600, 3600):
        box = LeaseBox()
        holder, other = Process(box, time, "holder", skew=skew), Process(box, time, "other")
        holder.start()
        await settle()
        other.start()
        await time.advance(60)
        assert (holder.working, other.working) == (True, False)
        box.unreachable.add("holder")
        await time.advance(25)
        assert (holder.working, other.working) == (False, True)
        await other.stop()
        await holder.stop()


async def test_a_lease_stolen_is_a_lease_lost_at_once(time):
    box = LeaseBox()
    process = Process(box, time, "a")
    async with competing(process):
        await settle()
        thief = {**box.leases["kube-system", "controllers"]}
        thief["spec"] = {**thief["spec"], "holderIdentity": "thief"}
        await box.for_("thief").update(LEASES, thief, namespace="kube-system")
        await time.advance(2)
        assert not process.working
        # The thief never renews; in time the lease is ours again, and the work is done anew.
        await time.advance(20)
        assert process.working
        assert process.starts == 2
        assert process.leaders == ["a", "thief", "a"]


async def test_leases_keep_what_others_wrote_on_them(time):
    box = LeaseBox()
    box.leases["kube-system", "controllers"] = {
        "metadata": {"name": "controllers", "resourceVersion": "9", "labels": {"team": "x"}},
        "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 15, "leaseTransitions": 4, "strategy": "y"},
    }
    process = Process(box, time, "a")
    async with competing(process):
        await time.advance(14)
        assert not process.working
        await time.advance(5)
        assert process.working
        assert lease_of(box)["strategy"] == "y"
        assert lease_of(box)["leaseTransitions"] == 5
        assert box.leases["kube-system", "controllers"]["metadata"]["labels"] == {"team": "x"}


async def test_work_that_ends_ends_the_election(time):
    box = LeaseBox()
    process = Process(box, time, "a").start()
    await settle()
    process.finish.set()
    await settle()
    assert process.task.done()
    assert lease_of(box)["holderIdentity"] == ""
    await process.task


async def test_work_that_fails_gives_the_lease_back(time):
    box = LeaseBox()
    election = Process(box, time, "a").election

    async def fail():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await election.run(fail)
    assert lease_of(box)["holderIdentity"] == ""


async def test_a_request_that_hangs_does_not_keep_a_lost_lease(time):
    """With real seconds, because the event loop's own clock ends a request that hangs."""
    box = LeaseBox()
    timing = Timing(duration=1, renew_deadline=0.2, retry_period=0.05)
    client = box.for_("a")
    lost = asyncio.Event()

    async def hang(*args, **more):
        await asyncio.Event().wait()

    async def work():
        client.get = client.update = hang
        try:
            await asyncio.Event().wait()
        finally:
            lost.set()

    election = LeaderElection(client, namespace="n", name="x", identity="a", timing=timing)
    task = asyncio.create_task(election.run(work))
    await lost.wait()
    assert not election.leading
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_renewal_cut_off_by_the_end_does_not_keep_the_lease(time):
    """The server writes a renewal whose answer never arrives, so the leader's copy of the lease is out of date."""
    box = LeaseBox()
    process = Process(box, time, "a")
    client = process.election._cluster
    update = client.update

    async def without_answer(*args, **more):
        await update(*args, **more)
        client.update = update
        await asyncio.Event().wait()

    process.start()
    await settle()
    client.update = without_answer
    await time.advance(3)
    assert box.writes == 2
    await process.stop()
    assert lease_of(box)["holderIdentity"] == ""


def test_timing_must_leave_room():
    with pytest.raises(ValueError, match="leader election needs"):
        Timing(duration=10, renew_deadline=10)
    with pytest.raises(ValueError, match="leader election needs"):
        Timing(renew_deadline=2)
    with pytest.raises(ValueError, match="needs an identity"):
        LeaderElection(LeaseBox().for_(""), namespace="n", name="x", identity="")
