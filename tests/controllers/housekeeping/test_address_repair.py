"""IPAddresses and cluster IPs agree, whatever a person did to them."""

import msgspec
import pytest
from faulty_cluster import FaultyCluster

from seamark.controllers.housekeeping.address_repair import plan
from seamark.kinds.resource import IP_ADDRESSES, SERVICES
from seamark.kinds.service.ipaddress import ip_address_object
from seamark.kinds.values import times
from seamark.rules.objects.network import IPAddress
from seamark.rules.objects.service import Service

NOW = 1_800_000_000.0
ADDRESS = "10.96.3.4"


def service(name, created="2026-01-01T00:00:00Z"):
    meta = {"name": name, "namespace": "default", "creationTimestamp": created}
    return msgspec.convert({"metadata": meta, "spec": {"clusterIPs": [ADDRESS]}}, Service)


def ip_address(name="web", *, age=3600.0, **edits):
    document = ip_address_object(ADDRESS, "default", name, now=times.text(NOW - age))
    document["metadata"].update(edits.pop("metadata", {}))
    document["spec"]["parentRef"].update(edits)
    return msgspec.convert(document, IPAddress)


def planned(holders, found, *, in_range=True, parent_exists=False):
    return plan(ADDRESS, holders, found, in_range=in_range, parent_exists=parent_exists, now=NOW)


def said(repair):
    return [(note.about.name, note.reason) for note in (*repair.notes, *repair.complaints)]


def test_what_agrees_is_left_alone():
    assert planned([service("web")], ip_address()) == planned([], None)
    assert not planned([], None).notes


def test_what_is_missing_is_made_for_the_oldest():
    young, old = service("young", "2026-03-01T00:00:00Z"), service("old")
    repair = planned([young, old], None)
    assert repair.owner is old
    assert said(repair) == [("old", "ClusterIPNotAllocated"), ("young", "ClusterIPAlreadyAllocated")]


@pytest.mark.parametrize("edits", [{"name": "other"}, {"resource": "gateways", "group": "example.com"}])
def test_a_wrong_reference_is_put_right(edits):
    found = ip_address(**edits)
    repair = planned([service("web")], found, parent_exists=True)
    assert (repair.remove, repair.owner.metadata.name) == (found, "web")
    assert said(repair) == [("web", "ClusterIPNotAllocated")]


def test_wrong_labels_are_put_right_without_a_word():
    found = ip_address(metadata={"labels": {"ipaddress.kubernetes.io/ip-family": "IPv6"}})
    repair = planned([service("web")], found)
    assert (repair.remove, repair.owner.metadata.name, said(repair)) == (found, "web", [])


def test_what_is_out_of_range_is_only_told():
    repair = planned([service("web")], None, in_range=False)
    assert (repair.owner, said(repair)) == (None, [("web", "ClusterIPOutOfRange")])


def test_what_belongs_to_nobody_goes_after_a_minute():
    assert planned([], ip_address(age=59)).remove is None
    assert planned([], ip_address(age=59)).wait == 1.0
    orphan = ip_address(age=61)
    assert (planned([], orphan).remove, said(planned([], orphan))) == (orphan, [(ADDRESS, "IPAddressNotAllocated")])
    assert said(planned([], orphan, parent_exists=True)) == [(ADDRESS, "IPAddressWrongReference")]
    strange = ip_address(resource="gateways", age=0)
    assert planned([], strange).remove is strange


def test_what_others_manage_is_theirs():
    theirs = ip_address(metadata={"labels": {"ipaddress.kubernetes.io/managed-by": "somebody"}})
    assert planned([], theirs).remove is None


# --- at work ---------------------------------------------------------------------------------------


async def create(own, name="web"):
    made = {"metadata": {"name": name}, "spec": {"clusterIP": ADDRESS, "ports": [{"port": 80}]}}
    await own.cluster.create(SERVICES, made, namespace="default")


async def test_ordinary_life_needs_no_repair_and_says_nothing(own):
    async with own.controlled(namespace_contents=False):
        await own.quiet()
        for number in range(5):
            await create(own, f"web-{number}")
            await own.quiet()
            revision = own.api.cache.revision
            await own.clock.advance(120)
            await own.quiet()
            assert own.api.cache.revision == revision
            await own.cluster.delete(SERVICES, f"web-{number}", namespace="default")
            await own.quiet()
            assert await own.find(IP_ADDRESSES, ADDRESS) is None
            assert await own.reasons(f"web-{number}") == []


async def test_a_deleted_ip_address_comes_back(own):
    async with own.controlled():
        await create(own)
        before = await own.find(IP_ADDRESSES, ADDRESS)
        await own.cluster.delete(IP_ADDRESSES, ADDRESS)
        after = await own.until(lambda: own.find(IP_ADDRESSES, ADDRESS))
        assert after["spec"] == before["spec"]
        assert after["metadata"]["labels"] == before["metadata"]["labels"]
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        await own.until(lambda: own.reasons("web"), lambda said: said == ["ClusterIPNotAllocated"])


async def test_one_that_was_missing_before_we_came_is_made_too(own):
    await create(own)
    await own.cluster.delete(IP_ADDRESSES, ADDRESS)
    async with own.controlled():
        await own.until(lambda: own.find(IP_ADDRESSES, ADDRESS))


async def test_an_ip_address_made_by_hand_for_a_service_that_never_comes_goes(own):
    async with own.controlled():
        orphan = ip_address_object(ADDRESS, "default", "ghost", now=times.text(NOW))
        await own.cluster.create(IP_ADDRESSES, orphan)
        await own.quiet()
        await own.clock.advance(58)
        await own.quiet()
        assert await own.find(IP_ADDRESSES, ADDRESS) is not None
        await own.clock.advance(3)
        await own.until(lambda: own.find(IP_ADDRESSES, ADDRESS), lambda found: found is None)
        await own.until(lambda: own.reasons(ADDRESS), lambda said: said == ["IPAddressNotAllocated"])


async def test_nothing_is_taken_away_only_because_the_service_was_not_heard_of_yet(own):
    late = FaultyCluster(own.cluster)
    async with own.controlled(through=late):
        await own.quiet()
        late.lag(SERVICES)
        await create(own)
        await own.quiet()
        before = await own.find(IP_ADDRESSES, ADDRESS)
        await own.clock.advance(200)
        await own.quiet()
        assert await own.find(IP_ADDRESSES, ADDRESS) == before
        late.catch_up()
        await own.quiet()
        assert await own.find(IP_ADDRESSES, ADDRESS) == before
        assert await own.reasons(ADDRESS) == []


async def test_nothing_is_made_twice_only_because_it_was_not_heard_of_yet(own):
    late = FaultyCluster(own.cluster)
    async with own.controlled(through=late):
        await own.quiet()
        late.lag(IP_ADDRESSES)
        await create(own)
        before = await own.find(IP_ADDRESSES, ADDRESS)
        await own.clock.advance(10)
        await own.quiet()
        assert await own.find(IP_ADDRESSES, ADDRESS) == before
        late.catch_up()
        await own.quiet()
        assert await own.reasons("web") == []


async def test_an_ip_address_that_names_the_wrong_service_is_replaced(own):
    await create(own)
    await own.cluster.delete(IP_ADDRESSES, ADDRESS)
    await own.cluster.create(IP_ADDRESSES, ip_address_object(ADDRESS, "default", "other", now=times.text(NOW)))
    async with own.controlled():
        right = {"resource": "services", "namespace": "default", "name": "web"}
        await own.until(
            lambda: own.find(IP_ADDRESSES, ADDRESS), lambda found: found and found["spec"]["parentRef"] == right
        )


async def test_ip_addresses_of_others_stay(own):
    async with own.controlled():
        theirs = {
            "metadata": {"name": "198.51.100.1"},
            "spec": {"parentRef": {"group": "example.com", "resource": "gateways", "name": "edge"}},
        }
        await own.cluster.create(IP_ADDRESSES, theirs)
        await own.quiet()
        await own.clock.advance(120)
        await own.quiet()
        assert await own.find(IP_ADDRESSES, "198.51.100.1") is not None
