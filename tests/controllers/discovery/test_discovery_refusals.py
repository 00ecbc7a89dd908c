"""What the API server refuses of what the controllers would write: all stays as it was, and it is told why."""

import contextlib

import pytest
import pytest_asyncio
from own_cluster import own_cluster
from scenery import NS, flip, node, pod, put, report, service

from seamark.access.informers import Informers
from seamark.controllers.discovery.discovery import add_discovery
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, PODS
from seamark.runtime.manager import Manager


@pytest_asyncio.fixture
async def own():
    async with own_cluster() as cluster:
        await put(cluster.cluster, node())
        yield cluster


@contextlib.asynccontextmanager
async def discovering(own):
    manager = Manager(Informers(own.api.cluster("informers")))
    add_discovery(manager, own.api.cluster)
    async with own.managed(manager):
        yield


async def run(own, made):
    await put(own.cluster, made)
    await report(own.cluster, made)


def unscheduled(name):
    made = pod(name)
    del made["spec"]["nodeName"]
    return made


def listed(endpoints):
    """Names of the Pods in an Endpoints, the ready ones."""
    subsets = endpoints.get("subsets") or ()
    return sorted(a["targetRef"]["name"] for s in subsets for a in s.get("addresses") or ())


async def in_endpoints(own):
    return listed(await own.cluster.get(ENDPOINTS, "web", namespace=NS))


async def in_slices(own):
    found = (await own.cluster.list(ENDPOINT_SLICES, namespace=NS, labels="kubernetes.io/service-name=web")).items
    return sorted(e["targetRef"]["name"] for each in found for e in each["endpoints"] or ())


async def test_a_pod_with_an_address_and_no_node_keeps_endpoints_as_they_were(own):
    await run(own, pod("p1"))
    await put(own.cluster, service())
    async with discovering(own):
        await own.until(lambda: own.find(ENDPOINTS, "web", NS), lambda found: found and listed(found) == ["p1"])
        await run(own, unscheduled("p2"))
        await run(own, pod("p3"))
        await own.until(lambda: in_slices(own), lambda names: names == ["p1", "p3"])
        assert "FailedToUpdateEndpoint" in await own.until(
            lambda: own.reasons("web"), lambda found: "FailedToUpdateEndpoint" in found
        )
        assert await in_endpoints(own) == ["p1"]
        await own.cluster.delete(PODS, "p2", namespace=NS)
        await own.until(lambda: in_endpoints(own), lambda names: names == ["p1", "p3"])


@pytest.mark.parametrize("address", ["127.0.0.1", "169.254.7.7"])
async def test_a_pod_whose_address_means_something_else_elsewhere_keeps_all_as_it_was(own, address):
    await run(own, pod("p1"))
    await put(own.cluster, service())
    async with discovering(own):
        await own.until(lambda: in_slices(own), lambda names: names == ["p1"])
        await own.until(lambda: own.find(ENDPOINTS, "web", NS), lambda found: found and listed(found) == ["p1"])
        await run(own, pod("p2", podIPs=[{"ip": address}], podIP=address))
        wanted = {"FailedToUpdateEndpoint", "FailedToUpdateEndpointSlices"}
        await own.until(lambda: own.reasons("web"), lambda found: wanted <= set(found))
        await flip(own.cluster, "p1", True)
        await own.quiet()
        assert (await in_endpoints(own), await in_slices(own)) == (["p1"], ["p1"])
