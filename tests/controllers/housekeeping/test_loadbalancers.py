"""Services of type LoadBalancer get addresses, keep them, and release them."""

import msgspec

from seamark.controllers.housekeeping.loadbalancer_pool import Pool
from seamark.controllers.housekeeping.loadbalancers import FINALIZER, AddressPlan, plan, wanted
from seamark.kinds.resource import SERVICES
from seamark.rules.objects.service import Service

POOL = ("192.0.2.10-192.0.2.11", "2001:db8::10-2001:db8::11")


def view(name="web", ips=(), **spec):
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], **spec},
            "status": {"loadBalancer": {"ingress": [{"ip": ip} for ip in ips]}},
        },
        Service,
    )


def pool(**owners):
    made = Pool(POOL)
    for name, address in owners.items():
        made.claim(address, f"default/{name}", "2026-01-01T00:00:00Z")
    return made


def test_who_is_served():
    assert wanted(view())
    assert not wanted(view(type="NodePort"))
    assert not wanted(view(loadBalancerClass="example.com/theirs"))
    going = msgspec.structs.replace(view().metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    assert not wanted(msgspec.structs.replace(view(), metadata=going))


def test_plans():
    both = {"ipFamilies": ["IPv6", "IPv4"]}
    assert plan(view(), pool()) == AddressPlan(("192.0.2.10",))
    assert plan(view(), pool(other="192.0.2.10")) == AddressPlan(("192.0.2.11",))
    assert plan(view(ips=["192.0.2.11"]), pool(web="192.0.2.11")) == AddressPlan(("192.0.2.11",))
    assert plan(view(ips=["192.0.2.11"]), pool(a="192.0.2.11")) == AddressPlan(("192.0.2.10",))
    assert plan(view(ips=["198.51.100.1"]), pool(web="198.51.100.1")) == AddressPlan(("192.0.2.10",))
    assert plan(view(**both), pool()) == AddressPlan(("2001:db8::10", "192.0.2.10"))
    assert plan(view(**both, ips=["192.0.2.11"]), pool(web="192.0.2.11")) == AddressPlan(("2001:db8::10", "192.0.2.11"))
    assert plan(view(ipFamilies=["IPv4", "IPv6"]), Pool(["192.0.2.9/32"])) == AddressPlan(("192.0.2.9",))
    assert plan(view(ipFamilies=["IPv6"]), Pool(["192.0.2.9/32"])).problem == "the pool has no IPv6 addresses"
    assert plan(view(), pool(a="192.0.2.10", b="192.0.2.11")) == AddressPlan(
        problem="the pool has no free IPv4 address"
    )


def test_plans_for_those_who_ask_for_an_address():
    assert plan(view(loadBalancerIP="192.0.2.11"), pool()) == AddressPlan(("192.0.2.11",))
    assert plan(view(loadBalancerIP="2001:db8:0::11", ipFamilies=["IPv6"]), pool()) == AddressPlan(("2001:db8::11",))
    taken = plan(view(loadBalancerIP="192.0.2.11", ips=["192.0.2.10"]), pool(a="192.0.2.11", web="192.0.2.10"))
    assert taken.addresses == ("192.0.2.10",)
    assert taken.problem == "the requested address 192.0.2.11 belongs to Service default/a"
    outside = plan(view(loadBalancerIP="198.51.100.1"), pool())
    assert outside == AddressPlan(problem="the requested address 198.51.100.1 is not in the pool")


# --- the running controller ------------------------------------------------------------------------


async def create(own, name, **spec):
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], **spec}
    await own.cluster.create(SERVICES, {"metadata": {"name": name}, "spec": spec}, namespace="default")


async def ingress(own, name):
    found = await own.find(SERVICES, name, "default")
    return found["status"]["loadBalancer"].get("ingress", []) if found is not None else []


async def address(own, name, wanted=None):
    """Wait until a Service has addresses, or exactly these; returns them."""
    true = bool if wanted is None else lambda ips: ips == wanted

    async def ask():
        return [each["ip"] for each in await ingress(own, name)]

    return await own.until(ask, true)


async def test_a_service_gets_an_address_of_each_of_its_families(own):
    async with own.controlled(load_balancer_pool=POOL):
        await create(own, "one")
        await create(own, "two", ipFamilyPolicy="RequireDualStack")
        assert await address(own, "one") == ["192.0.2.10"]
        assert await ingress(own, "one") == [{"ip": "192.0.2.10", "ipMode": "VIP"}]
        assert await address(own, "two") == ["192.0.2.11", "2001:db8::10"]
        await own.until(lambda: own.reasons("one"), lambda said: len(said) == 2)
        assert await own.reasons("one") == ["EnsuredLoadBalancer", "EnsuringLoadBalancer"]
        found = await own.find(SERVICES, "one", "default")
        assert not found["metadata"].get("finalizers")


async def test_others_are_left_alone(own):
    async with own.controlled(load_balancer_pool=POOL):
        await create(own, "theirs", loadBalancerClass="example.com/theirs")
        await create(own, "plain", type="ClusterIP")
        await own.quiet()
        assert await ingress(own, "theirs") == []
        assert await ingress(own, "plain") == []


async def test_without_a_pool_services_stay_pending(own):
    async with own.controlled(load_balancer_pool=()):
        await create(own, "one")
        await own.quiet()
        assert await ingress(own, "one") == []


async def test_who_finds_the_pool_empty_gets_the_next_address_that_is_given_back(own):
    async with own.controlled(load_balancer_pool=("192.0.2.10/32",)):
        await create(own, "first")
        await address(own, "first")
        await create(own, "second")
        await own.until(lambda: own.reasons("second"), lambda said: said == ["SyncLoadBalancerFailed"])
        assert await ingress(own, "second") == []
        await own.cluster.delete(SERVICES, "first", namespace="default")
        assert await address(own, "second") == ["192.0.2.10"]


async def test_a_change_of_type_gives_the_address_back(own):
    async with own.controlled(load_balancer_pool=("192.0.2.10/32",)):
        await create(own, "first")
        await address(own, "first")
        await create(own, "second")
        await own.cluster.patch(SERVICES, "first", {"spec": {"type": "ClusterIP"}}, namespace="default")
        assert await address(own, "second") == ["192.0.2.10"]
        assert await ingress(own, "first") == []
        await own.until(lambda: own.reasons("first"), lambda said: "DeletedLoadBalancer" in said and "Type" in said)


async def test_a_requested_address_is_given_and_waited_for(own):
    async with own.controlled(load_balancer_pool=POOL):
        await create(own, "asks", loadBalancerIP="192.0.2.11")
        assert await address(own, "asks") == ["192.0.2.11"]
        await create(own, "waits", loadBalancerIP="192.0.2.11")
        await own.until(lambda: own.reasons("waits"), lambda said: said == ["SyncLoadBalancerFailed"])
        assert await ingress(own, "waits") == []
        await own.cluster.patch(SERVICES, "asks", {"spec": {"loadBalancerIP": "192.0.2.10"}}, namespace="default")
        assert await address(own, "asks", ["192.0.2.10"])
        assert await address(own, "waits") == ["192.0.2.11"]


async def test_after_a_restart_everybody_has_what_they_had_and_nothing_is_written(own):
    async with own.controlled(load_balancer_pool=POOL, namespace_contents=False):
        for name in ("one", "two"):
            await create(own, name)
            await address(own, name)
        await own.cluster.delete(SERVICES, "one", namespace="default")
        await own.quiet()
    revision = own.api.cache.revision
    async with own.controlled(load_balancer_pool=POOL, namespace_contents=False):
        await own.quiet()
        assert own.api.cache.revision == revision
        await create(own, "three")
        assert await address(own, "three") == ["192.0.2.10"]
        assert await address(own, "two") == ["192.0.2.11"]


async def test_an_address_written_by_hand_is_kept_if_it_is_free_and_else_replaced(own):
    def status(ip):
        return {"status": {"loadBalancer": {"ingress": [{"ip": ip}]}}}

    async with own.controlled(load_balancer_pool=POOL):
        await create(own, "one")
        await address(own, "one")
        own.clock.now += 5  # the older of two keeps an address
        await create(own, "two")
        assert await address(own, "two") == ["192.0.2.11"]
        await own.cluster.patch(SERVICES, "two", status("192.0.2.10"), namespace="default", subresource="status")
        assert await address(own, "two", ["192.0.2.11"])
        await own.cluster.patch(SERVICES, "one", status("192.0.2.11"), namespace="default", subresource="status")
        assert await address(own, "two", ["192.0.2.10"])
        assert await address(own, "one", ["192.0.2.11"])


async def test_the_finalizer_of_a_cloud_does_not_hold_a_service_up(own):
    async with own.controlled(load_balancer_pool=POOL):
        made = {"metadata": {"name": "moved", "finalizers": [FINALIZER]}, "spec": {"type": "LoadBalancer"}}
        made["spec"]["ports"] = [{"port": 80}]
        await own.cluster.create(SERVICES, made, namespace="default")
        await address(own, "moved")
        await own.cluster.delete(SERVICES, "moved", namespace="default")
        await own.until(lambda: own.find(SERVICES, "moved", "default"), lambda found: found is None)


async def test_many_at_once_get_an_address_each(own):
    async with own.controlled(load_balancer_pool=("192.0.2.0/26",)):
        names = [f"svc-{number}" for number in range(62)]
        for name in names:
            await create(own, name)
        given = [(await address(own, name))[0] for name in names]
        assert len(set(given)) == len(names)
