"""Quotas in a cluster: charged by the API server, counted anew by the controller."""

import asyncio
from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_cluster import own_cluster

from seamark.controllers.policy import quotas
from seamark.errors import Forbidden
from seamark.kinds.policy import usage
from seamark.kinds.resource import CONFIGMAPS, PODS, RESOURCE_CLAIMS, RESOURCE_QUOTAS, SERVICES
from seamark.kinds.values.quantity import plus
from seamark.rules.objects.pod import Pod

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def quota(name="q", **hard):
    return {"metadata": {"name": name}, "spec": {"hard": {key.replace("_", "/"): value for key, value in hard.items()}}}


def named(name, body):
    return {"metadata": {"name": name}, **body}


async def status(own, name="q"):
    return (await own.cluster.get(RESOURCE_QUOTAS, name, namespace="default"))["status"]


async def counted(own):
    """Changes are counted a little later, several together."""
    await own.quiet()
    await own.clock.advance(1)
    await own.quiet()


async def test_a_new_quota_counts_what_is_there():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        for name in ("a", "b"):
            await own.cluster.create(CONFIGMAPS, named(name, {}), namespace="default")
        await own.cluster.create(PODS, named("p", POD), namespace="default")
        await own.cluster.create(RESOURCE_QUOTAS, quota(pods="5", configmaps="3"), namespace="default")
        await own.quiet()
        hard = {"pods": "5", "configmaps": "3"}
        assert await status(own) == {"hard": hard, "used": {"configmaps": "2", "pods": "1"}}


async def test_what_goes_or_ends_is_given_back():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(RESOURCE_QUOTAS, quota(pods="1", count_pods="2"), namespace="default")
        await own.quiet()
        await own.cluster.create(PODS, named("p", POD), namespace="default")
        with pytest.raises(Forbidden, match="exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1"):
            await own.cluster.create(PODS, named("q", POD), namespace="default")
        done = {"status": {"phase": "Succeeded"}}
        await own.cluster.patch(PODS, "p", done, namespace="default", subresource="status")
        await counted(own)
        assert (await status(own))["used"] == {"count/pods": "1", "pods": "0"}
        await own.cluster.create(PODS, named("q", POD), namespace="default")
        for name in ("p", "q"):
            await own.cluster.delete(PODS, name, namespace="default")
        await counted(own)
        assert (await status(own))["used"] == {"count/pods": "0", "pods": "0"}


async def test_a_quota_that_changes_is_taken_over():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(RESOURCE_QUOTAS, quota(pods="1"), namespace="default")
        await own.quiet()
        await own.cluster.create(PODS, named("p", POD), namespace="default")
        change = {"spec": {"hard": {"pods": "0", "configmaps": "1"}}}
        await own.cluster.patch(RESOURCE_QUOTAS, "q", change, namespace="default")
        await own.quiet()
        assert await status(own) == {
            "hard": {"pods": "0", "configmaps": "1"},
            "used": {"pods": "1", "configmaps": "0"},
        }


async def test_a_service_that_needs_less_gives_back():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(RESOURCE_QUOTAS, quota(**{"services.nodeports": "1"}), namespace="default")
        await own.quiet()
        spec = {"type": "NodePort", "ports": [{"port": 80}]}
        await own.cluster.create(SERVICES, named("s", {"spec": spec}), namespace="default")
        assert (await status(own))["used"] == {"services.nodeports": "1"}
        await own.cluster.patch(SERVICES, "s", {"spec": {"type": "ClusterIP"}}, namespace="default")
        await counted(own)
        assert (await status(own))["used"] == {"services.nodeports": "0"}


async def test_devices_are_counted_by_their_class():
    name = "gpu.deviceclass.resource.k8s.io/devices"

    def claim(count):
        request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": count}}
        return {"spec": {"devices": {"requests": [request]}}}

    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(RESOURCE_CLAIMS, named("a", claim(2)), namespace="default")
        hard = {"metadata": {"name": "q"}, "spec": {"hard": {name: "3"}}}
        await own.cluster.create(RESOURCE_QUOTAS, hard, namespace="default")
        await own.quiet()
        assert (await status(own))["used"] == {name: "2"}
        with pytest.raises(Forbidden, match=f"requested: {name}=2, used: {name}=2, limited: {name}=3"):
            await own.cluster.create(RESOURCE_CLAIMS, named("b", claim(2)), namespace="default")
        await own.cluster.delete(RESOURCE_CLAIMS, "a", namespace="default")
        await counted(own)
        assert (await status(own))["used"] == {name: "0"}


async def test_many_at_once_never_exceed_a_quota_while_it_is_counted():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(RESOURCE_QUOTAS, quota(configmaps="10"), namespace="default")
        await own.quiet()

        async def make(i):
            try:
                await own.cluster.create(CONFIGMAPS, named(f"c-{i}", {}), namespace="default")
            except Forbidden:
                return 0
            return 1

        made = sum(await asyncio.gather(*map(make, range(40))))
        assert made == 10
        assert len((await own.cluster.list(CONFIGMAPS, namespace="default")).items) == 10
        assert (await status(own))["used"] == {"configmaps": "10"}
        await own.quiet()
        assert (await status(own))["used"] == {"configmaps": "10"}


async def test_what_is_made_during_the_first_count_is_counted():
    """Nothing is charged before a quota has a status, so the first count may miss what is made meanwhile."""
    hard = {f"count/{name}": "20" for name in ("configmaps", "secrets", "services", "pods", "endpoints")}
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(
            RESOURCE_QUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": hard}}, namespace="default"
        )
        for i in range(10):
            await own.cluster.create(CONFIGMAPS, named(f"c-{i}", {}), namespace="default")
        await counted(own)
        assert (await status(own))["used"]["count/configmaps"] == "10"


async def test_it_is_counted_now_and_then():
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        await own.cluster.create(RESOURCE_QUOTAS, quota(configmaps="10"), namespace="default")
        await own.quiet()
        wrong = {"status": {"used": {"configmaps": "7"}}}
        await own.cluster.patch(RESOURCE_QUOTAS, "q", wrong, namespace="default", subresource="status")
        await own.quiet()
        await own.clock.advance(301)
        await own.quiet()
        assert (await status(own))["used"] == {"configmaps": "0"}


async def test_only_what_has_changed_is_looked_into_again(monkeypatch):
    seen = []

    def used_by(resource, obj, now):
        seen.append(resource)
        return usage.used_by(resource, obj, now)

    monkeypatch.setattr(quotas, "used_by", used_by)
    async with own_cluster() as own, own.controlled(ending=True, namespace_contents=False):
        asks = {"resources": {"requests": {"cpu": "100m"}}}
        for number in range(9):
            pod = {"spec": {"containers": [{"name": "c", "image": "i", **asks}], "terminationGracePeriodSeconds": 0}}
            await own.cluster.create(PODS, named(f"p-{number}", pod), namespace="default")
        await own.cluster.create(RESOURCE_QUOTAS, quota(pods="20", cpu="2"), namespace="default")
        await counted(own)
        assert (await status(own))["used"] == {"cpu": "900m", "pods": "9"}
        assert len(seen) == 9, "the second count knows all of them"
        await own.cluster.patch(PODS, "p-0", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        await own.cluster.delete(PODS, "p-8", namespace="default")
        await counted(own)
        assert (await status(own))["used"] == {"cpu": "800m", "pods": "8"}
        assert len(seen) <= 11, "the one that has changed, and maybe the one that went"


def test_a_pod_that_gets_a_node_is_no_reason_to_count():
    before = msgspec.convert({"metadata": {"name": "p"}, **POD}, Pod)
    placed = msgspec.convert({"metadata": {"name": "p"}, "spec": {**POD["spec"], "nodeName": "n"}}, Pod)
    larger = msgspec.structs.replace(placed, spec=msgspec.structs.replace(placed.spec, active_deadline_seconds=5))
    assert not quotas._uses_less(PODS, before, placed)
    assert quotas._uses_less(PODS, placed, larger)


@given(st.lists(st.sampled_from(["0", "1", "100m", "1Gi", "512Mi", "1.5", "2k", "9223372036854775807"]), max_size=20))
def test_a_total_is_the_sum_of_all(quantities):
    one_by_one = "0"
    uses = Counter((("cpu", quantity),) for quantity in quantities)
    for use in uses.elements():
        one_by_one = plus(one_by_one, use[0][1])
    assert usage.total(uses, ["cpu", "pods"]) == {"cpu": one_by_one, "pods": "0"}
