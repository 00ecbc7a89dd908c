"""The discovery controllers as a process: what it says of itself, and what it does when its lease comes and goes."""

import asyncio
import contextlib

from faulty_cluster import FaultyCluster
from memory_cluster import MemoryCluster
from scenery import NS, node, pod, put, service

from seamark.controllers.discovery.process import ControllerProcess
from seamark.controllers.settings import ElectionSettings
from seamark.errors import ServiceUnavailable
from seamark.kinds.resource import ENDPOINT_SLICES, EVENTS, LEASES, PODS
from turns import turns, until

# A leader that a busy machine holds up for long must not lose its lease.
PATIENT = {"lease_duration": 600, "renew_deadline": 500, "retry_period": 0.05}


@contextlib.asynccontextmanager
async def running(process):
    task = asyncio.create_task(process.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def elected(cluster, identity):
    settings = ElectionSettings(namespace=NS, identity=identity, **PATIENT)
    return ControllerProcess(cluster, election=settings)


def slices(cluster):
    return cluster.objects(ENDPOINT_SLICES)


async def test_without_an_election_it_is_ready_once_it_knows_everything():
    cluster = MemoryCluster()
    unreachable = [True]

    def fault(verb, resource, name):
        return ServiceUnavailable("nobody is there") if unreachable[0] and resource is PODS else None

    process = ControllerProcess(FaultyCluster(cluster, fault))
    async with running(process):
        await turns()
        assert not process.readiness.ready
        assert process.readiness.text == "the cluster is not known yet"
        assert "seamark_controllers_lag_seconds 0\n" not in process.metrics_text()
        unreachable[0] = False
        await process.settled.wait()
        await until(lambda: process.readiness.ready)
        assert process.readiness.text == "at work"
        assert "leader_election_master_status" not in process.metrics_text()
        await put(cluster, node(), service(), pod("web-1"))
        await until(lambda: len(slices(cluster)) == 1)
    assert not process.readiness.ready


async def test_one_leads_and_the_other_stands_by_and_follows():
    cluster = MemoryCluster()
    first, second = elected(cluster, "first"), elected(cluster, "second")
    assert not first.readiness.ready
    assert first.readiness.text == "it is not known yet who leads"
    async with running(second) as other:
        await until(lambda: second.readiness.text == "leading")
        async with running(first):
            await first.settled.wait()
            assert first.readiness.ready
            assert first.readiness.text == "standing by: second leads"
            assert (first.leading, second.leading) == (False, True)
            assert 'leader_election_master_status{name="seamark-discovery"} 0' in first.metrics_text()
            assert 'leader_election_master_status{name="seamark-discovery"} 1' in second.metrics_text()
            other.cancel()
            await until(lambda: first.readiness.text == "leading")
            await put(cluster, node(), service(), pod("web-1"))
            await until(lambda: len(slices(cluster)) == 1)
    told = {event["message"] for event in cluster.objects(EVENTS) if event["reason"] == "LeaderElection"}
    assert told == {"first became leader", "second became leader"}


async def test_who_loses_the_lease_stops_and_begins_anew_once_it_is_back():
    cluster = MemoryCluster()
    process = elected(cluster, "me")
    async with running(process):
        await until(lambda: process.readiness.text == "leading")
        spec = {"holderIdentity": "thief", "leaseDurationSeconds": 3600}
        await cluster.patch(LEASES, "seamark-discovery", {"spec": spec}, namespace=NS)
        await until(lambda: process.readiness.text == "standing by: thief leads")
        await put(cluster, node(), service(), pod("web-1"))
        await turns()
        assert slices(cluster) == []
        await cluster.patch(LEASES, "seamark-discovery", {"spec": {"leaseDurationSeconds": 1}}, namespace=NS)
        await until(lambda: len(slices(cluster)) == 1)
        assert process.leading
