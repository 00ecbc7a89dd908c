"""ServiceCIDRs are protected, ready, and leave only when nothing needs them."""

import msgspec

from seamark.controllers.housekeeping.service_cidrs import Duty, blocker, duty
from seamark.kinds.resource import SERVICE_CIDRS, SERVICES
from seamark.kinds.service.servicecidr import FINALIZER
from seamark.kinds.values import times
from seamark.rules.objects.network import IPAddress, ServiceCIDR

NOW = 1_800_000_000.0
READY = {"type": "Ready", "status": "True", "reason": "", "message": "Kubernetes Service CIDR is ready"}


def cidr(name, *ranges, going=None, finalizers=(FINALIZER,), conditions=()):
    meta = {"name": name, "finalizers": list(finalizers)}
    if going is not None:
        meta["deletionTimestamp"] = times.text(NOW - going)
    document = {"metadata": meta, "spec": {"cidrs": list(ranges)}, "status": {"conditions": list(conditions)}}
    return msgspec.convert(document, ServiceCIDR)


def address(name, *, managed=True):
    labels = {"ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io"} if managed else {}
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, IPAddress)


def test_duties():
    ready, other = cidr("a", "10.0.0.0/24", conditions=[READY]), "10.0.0.0/24"
    assert duty(ready, blocked=False, now=NOW) == Duty()
    new = duty(cidr("a", other, finalizers=()), blocked=False, now=NOW)
    assert (new.protect, new.condition) == (True, ("True", "", "Kubernetes Service CIDR is ready"))
    held = duty(cidr("a", other, going=1, conditions=[READY]), blocked=True, now=NOW)
    assert held.condition is not None
    assert held.condition[:2] == ("False", "Terminating")
    assert duty(cidr("a", other, going=4), blocked=False, now=NOW) == Duty(wait=6.0)
    assert duty(cidr("a", other, going=10), blocked=False, now=NOW) == Duty(let_go=True)
    assert duty(cidr("a", other, going=10, finalizers=()), blocked=False, now=NOW) == Duty()


def test_what_holds_one_up():
    going = cidr("going", "10.0.0.0/24", "fd00::/64", going=0)
    wider = cidr("wider", "10.0.0.0/16", "fd00::/48")
    half = cidr("half", "10.0.0.0/25")
    assert blocker(going, [going], [address("10.0.1.1"), address("fd00::1")]) == "fd00::1"
    assert blocker(going, [going], [address("10.0.1.1"), address("10.0.0.1", managed=False)]) == ""
    assert blocker(going, [going, wider], [address("10.0.0.1")]) == ""
    assert blocker(going, [going, half], [address("10.0.0.1")]) == ""
    assert blocker(going, [going, half], [address("10.0.0.1"), address("10.0.0.200")]) == "10.0.0.200"


# --- at work ---------------------------------------------------------------------------------------


async def conditions(own, name):
    found = await own.find(SERVICE_CIDRS, name)
    return found.get("status", {}).get("conditions", []) if found is not None else []


async def create(own, name, *ranges):
    await own.cluster.create(SERVICE_CIDRS, {"metadata": {"name": name}, "spec": {"cidrs": list(ranges)}})
    await own.until(lambda: conditions(own, name))


async def use(own, name, ip):
    spec = {"clusterIP": ip, "ports": [{"port": 80}]}
    await own.cluster.create(SERVICES, {"metadata": {"name": name}, "spec": spec}, namespace="default")


async def gone(own, name):
    await own.until(lambda: own.find(SERVICE_CIDRS, name), lambda found: found is None)


async def test_every_range_is_protected_and_ready(own):
    async with own.controlled():
        await create(own, "more", "10.200.0.0/24")
        for name in ("kubernetes", "more"):
            (condition,) = await own.until(lambda n=name: conditions(own, n))
            assert condition.pop("lastTransitionTime")
            assert condition == READY
            assert (await own.find(SERVICE_CIDRS, name))["metadata"]["finalizers"] == [FINALIZER]


async def test_an_unused_range_goes_after_a_while(own):
    async with own.controlled():
        await create(own, "more", "10.200.0.0/24")
        await own.cluster.delete(SERVICE_CIDRS, "more")
        await own.quiet()
        await own.clock.advance(9)
        assert await own.find(SERVICE_CIDRS, "more") is not None
        await own.clock.advance(2)
        await gone(own, "more")


async def test_a_used_range_waits_for_its_addresses_and_says_so(own):
    async with own.controlled():
        await create(own, "more", "10.200.0.0/24")
        await use(own, "one", "10.200.0.1")
        await use(own, "two", "10.200.0.2")
        await own.cluster.delete(SERVICE_CIDRS, "more")
        (condition,) = await own.until(
            lambda: conditions(own, "more"), lambda found: found and found[0]["status"] == "False"
        )
        assert (condition["reason"], condition["message"][:35]) == (
            "Terminating",
            "There are still IPAddresses referen",
        )
        await own.clock.advance(60)
        for name in ("one", "two"):
            assert await own.find(SERVICE_CIDRS, "more") is not None
            await own.cluster.delete(SERVICES, name, namespace="default")
            await own.quiet()
        await gone(own, "more")


async def test_a_used_range_goes_once_another_covers_its_addresses(own):
    async with own.controlled():
        await create(own, "more", "10.200.0.0/24")
        await use(own, "one", "10.200.0.1")
        await own.cluster.delete(SERVICE_CIDRS, "more")
        await own.until(lambda: conditions(own, "more"), lambda found: found and found[0]["status"] == "False")
        await own.clock.advance(60)
        await create(own, "wider", "10.200.0.0/16")
        await gone(own, "more")


async def test_a_second_life_writes_nothing(own):
    async with own.controlled(namespace_contents=False):
        await own.until(lambda: conditions(own, "kubernetes"))
        await own.quiet()
    revision = own.api.cache.revision
    async with own.controlled(namespace_contents=False):
        await own.quiet()
    assert own.api.cache.revision == revision
