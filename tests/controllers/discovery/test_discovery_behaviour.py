"""What the running controllers do, and above all what they leave alone."""

import contextlib

import pytest
from faulty_cluster import FaultyCluster
from memory_cluster import MemoryCluster
from running import running, settled
from scenery import NS, assert_right, flip, hand_made, node, pod, put, service

from seamark.access.informers import Informers
from seamark.controllers.discovery.discovery import DiscoverySettings, add_discovery
from seamark.kinds.resource import ENDPOINT_SLICES, ENDPOINTS, EVENTS, NODES, PODS, SERVICES
from seamark.runtime.manager import Manager

THEIRS = {"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": "me"}}}  # a slice of another controller


@contextlib.asynccontextmanager
async def sliced(cluster, *objects):
    """The controllers at work, and the name of the first slice that they have written."""
    await put(cluster, *objects)
    async with settled(cluster) as controllers:
        yield controllers, slices(cluster)[0]["metadata"]["name"]


@pytest.fixture
async def cluster():
    made = MemoryCluster()
    await put(made, node("node-a", "zone-a"), node("node-b", "zone-b"), node("node-c", "zone-c"))
    return made


def slices(cluster):
    return cluster.objects(ENDPOINT_SLICES)


def addresses(cluster):
    return sorted(ip for each in slices(cluster) for e in each.get("endpoints") or () for ip in e["addresses"])


def events(cluster):
    return sorted({each["reason"] for each in cluster.objects(EVENTS)})


async def test_one_change_is_one_write_each(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(250)])
    async with settled(cluster) as controllers:
        await assert_right(cluster)
        before = len(cluster.written())
        await flip(cluster, "p7", False)
        await controllers.settle()
        written = cluster.written()[before:]
        assert sorted((verb, kind) for verb, kind, _ in written) == [
            ("update", "EndpointSlice"),
            ("update", "Endpoints"),
        ]
        await assert_right(cluster)


async def test_nothing_changed_nothing_written(cluster):
    await put(cluster, service(), pod("p1"), service("ext", selector={}), hand_made())
    async with settled(cluster) as controllers:
        before = len(cluster.written())
        await cluster.patch(PODS, "p1", {"metadata": {"annotations": {"note": "x"}}}, namespace=NS)
        await cluster.patch(SERVICES, "web", {"metadata": {"annotations": {"note": "x"}}}, namespace=NS)
        await controllers.settle(quiet=30)
        assert len(cluster.written()) == before


async def test_a_restart_writes_nothing(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(20)], service("ext", selector={}), hand_made())
    async with settled(cluster):
        pass
    before = len(cluster.written())
    async with running(cluster) as controllers:
        await controllers.settle(quiet=30)
    assert len(cluster.written()) == before


async def test_the_time_of_the_trigger_is_noted(cluster):
    await put(cluster, service(), pod("p1"))
    key = "endpoints.kubernetes.io/last-change-trigger-time"
    async with settled(cluster) as controllers:
        assert cluster.objects(ENDPOINTS)[0]["metadata"]["annotations"][key] == cluster.now
        await flip(cluster, "p1", False)
        await controllers.settle()
        for kind in (ENDPOINTS, ENDPOINT_SLICES):
            assert cluster.objects(kind)[0]["metadata"]["annotations"][key] == "2026-01-03T00:00:00Z"
        await cluster.patch(SERVICES, "web", {"metadata": {"labels": {"a": "b"}}}, namespace=NS)
        await controllers.settle()
        for kind in (ENDPOINTS, ENDPOINT_SLICES):
            assert key not in cluster.objects(kind)[0]["metadata"].get("annotations", {})


async def test_a_pods_phase_alone_waits_for_the_next_reason_to_look(cluster):
    await put(cluster, service(), pod("p1"), pod("p2"))
    async with settled(cluster) as controllers:
        await cluster.patch(PODS, "p1", {"status": {"phase": "Failed"}}, namespace=NS)
        await controllers.settle()
        assert len(addresses(cluster)) == 2
        await flip(cluster, "p2", False)
        await controllers.settle()
        assert len(addresses(cluster)) == 1
        await assert_right(cluster)


async def test_a_node_that_appears_later_lets_its_pods_in(cluster):
    await put(cluster, service(), pod("p1", node="late"), pod("p2"))
    async with settled(cluster) as controllers:
        assert len(addresses(cluster)) == 1
        assert events(cluster) == ["FailedToUpdateEndpointSlices"]
        await controllers.clock.advance(600)  # the retries are minutes apart by now
        await put(cluster, node("late", "zone-b"))
        await controllers.clock.advance(0.1)
        assert len(addresses(cluster)) == 2
        await assert_right(cluster)


async def test_a_zone_that_changes_shows_at_the_next_look_only(cluster):
    await put(cluster, service(), pod("p1"))
    async with settled(cluster) as controllers:
        zone = {"metadata": {"labels": {"topology.kubernetes.io/zone": "zone-x"}}}
        await cluster.patch(NODES, "node-a", zone)
        await controllers.settle()
        assert slices(cluster)[0]["endpoints"][0]["zone"] == "zone-a"
        await cluster.patch(SERVICES, "web", {"metadata": {"labels": {"touch": "1"}}}, namespace=NS)
        await controllers.settle()
        assert slices(cluster)[0]["endpoints"][0]["zone"] == "zone-x"


async def test_leftovers_are_cleared_at_the_start_but_not_a_leaders_lock(cluster):
    lock = hand_made("lock", annotations={"control-plane.alpha.kubernetes.io/leader": "{}"})
    await put(cluster, hand_made("orphan"), lock)
    async with settled(cluster) as controllers:
        assert [each["metadata"]["name"] for each in cluster.objects(ENDPOINTS)] == ["lock"]
        await put(cluster, hand_made("later"))
        await controllers.settle()
        assert len(cluster.objects(ENDPOINTS)) == 2  # while running, the Service may be about to be made


async def test_a_service_that_goes_takes_its_endpoints_along(cluster):
    await put(cluster, service(), pod("p1"))
    async with settled(cluster) as controllers:
        await cluster.delete(SERVICES, "web", namespace=NS)
        await controllers.settle()
        assert cluster.objects(ENDPOINTS) == []
        await put(cluster, service())
        await controllers.settle()
        await assert_right(cluster)
        assert addresses(cluster)


async def test_what_others_do_to_slices_is_put_right(cluster):
    async with sliced(cluster, service(), *[pod(f"p{i}") for i in range(3)]) as (controllers, name):
        await cluster.patch(ENDPOINT_SLICES, name, {"endpoints": []}, namespace=NS)
        await controllers.settle()
        await assert_right(cluster)
        await cluster.patch(ENDPOINT_SLICES, name, {"metadata": {"labels": {"mine": "x"}}}, namespace=NS)
        await controllers.settle()
        await assert_right(cluster)
        await cluster.delete(ENDPOINT_SLICES, name, namespace=NS)
        await controllers.settle()
        await assert_right(cluster)


async def test_an_edited_endpoints_stays_until_there_is_a_reason_to_look(cluster):
    await put(cluster, service(), pod("p1"))
    async with settled(cluster) as controllers:
        await cluster.patch(ENDPOINTS, "web", {"subsets": []}, namespace=NS)
        await controllers.settle()
        assert "subsets" not in cluster.objects(ENDPOINTS)[0]
        await flip(cluster, "p1", False)
        await controllers.settle()
        await assert_right(cluster)
        await cluster.delete(ENDPOINTS, "web", namespace=NS)
        await controllers.settle()
        await assert_right(cluster)


async def test_a_slice_taken_away_is_missed_for_a_while_and_then_replaced(cluster):
    async with sliced(cluster, service(), pod("p1")) as (controllers, name):
        await cluster.patch(ENDPOINT_SLICES, name, THEIRS, namespace=NS)
        await controllers.clock.advance(30)
        assert len(slices(cluster)) == 1
        await controllers.clock.advance(60)
        assert len(slices(cluster)) == 2
        await assert_right(cluster)


async def test_a_slice_given_back_is_used_again(cluster):
    async with sliced(cluster, service(), pod("p1")) as (controllers, name):
        before = dict(slices(cluster)[0]["metadata"]["labels"])
        await cluster.patch(
            ENDPOINT_SLICES, name, {"metadata": {"labels": {"kubernetes.io/service-name": "x"}}}, namespace=NS
        )
        await controllers.clock.advance(5)
        await cluster.patch(ENDPOINT_SLICES, name, {"metadata": {"labels": before}}, namespace=NS)
        await flip(cluster, "p1", False)
        await controllers.settle()
        assert len(slices(cluster)) == 1
        await assert_right(cluster)


@pytest.mark.parametrize(
    "taken", [{"endpointslice.kubernetes.io/managed-by": "me"}, {"kubernetes.io/service-name": "x"}]
)
async def test_a_mirrored_slice_taken_away_is_missed_for_a_while_and_then_replaced(cluster, taken):
    async with sliced(cluster, service("ext", selector={}), hand_made()) as (controllers, name):
        await cluster.patch(ENDPOINT_SLICES, name, {"metadata": {"labels": taken}}, namespace=NS)
        await cluster.patch(ENDPOINTS, "ext", {"metadata": {"labels": {"new": "label"}}}, namespace=NS)
        await controllers.clock.advance(30)
        ours = [each for each in slices(cluster) if each["metadata"]["labels"].get("new")]
        assert ours == []
        await controllers.clock.advance(60)
        [each] = [each for each in slices(cluster) if each["metadata"]["labels"].get("new")]
        assert each["metadata"]["name"] != name


async def test_a_mirrored_slice_taken_away_is_not_missed_where_nothing_is_mirrored_meanwhile(cluster):
    async with sliced(cluster, service("ext", selector={}), hand_made()) as (controllers, name):
        await cluster.patch(ENDPOINT_SLICES, name, THEIRS, namespace=NS)
        await controllers.settle()
        skip = "endpointslice.kubernetes.io/skip-mirror"
        await cluster.patch(ENDPOINTS, "ext", {"metadata": {"labels": {skip: "true"}}}, namespace=NS)
        await controllers.settle()
        await cluster.patch(ENDPOINTS, "ext", {"metadata": {"labels": {skip: None}}}, namespace=NS)
        await controllers.settle()
        assert len(slices(cluster)) == 2


async def test_a_slice_taken_away_while_its_service_had_no_selector_is_missed_all_the_same(cluster):
    async with sliced(cluster, service(), pod("p1")) as (controllers, name):
        await cluster.patch(SERVICES, "web", {"spec": {"selector": None}}, namespace=NS)
        await controllers.settle()
        await cluster.patch(ENDPOINT_SLICES, name, THEIRS, namespace=NS)
        await controllers.settle()
        await cluster.patch(SERVICES, "web", {"spec": {"selector": {"app": "web"}}}, namespace=NS)
        await controllers.clock.advance(20)
        assert [each["metadata"]["name"] for each in slices(cluster)] == [name]


async def test_a_service_made_anew_does_not_miss_the_slices_of_the_one_before(cluster):
    async with sliced(cluster, service(), pod("p1")) as (controllers, name):
        theirs = {"metadata": {"labels": {"endpointslice.kubernetes.io/managed-by": "me"}, "ownerReferences": None}}
        await cluster.patch(ENDPOINT_SLICES, name, theirs, namespace=NS)
        await controllers.settle()
        await cluster.delete(SERVICES, "web", namespace=NS)
        await put(cluster, service())
        await controllers.settle()
        assert len(slices(cluster)) == 2


async def test_a_slice_that_cannot_go_yet_is_waited_for(cluster):
    async with sliced(cluster, service(), pod("p1")) as (controllers, name):
        await cluster.going(ENDPOINT_SLICES, name, namespace=NS)
        await flip(cluster, "p1", False)
        await controllers.settle()
        assert [each["metadata"]["name"] for each in slices(cluster)] == [name]
        await cluster.delete(ENDPOINT_SLICES, name, namespace=NS)
        await controllers.settle()
        [each] = slices(cluster)
        assert each["metadata"]["name"] != name
        await assert_right(cluster)


def ported(name, *ports, **more):
    made = pod(name, **more)
    made["spec"]["containers"][0]["ports"] = [{"name": port, "containerPort": 7000} for port in ports]
    return made


def layout(cluster):
    """Of every slice, its family, ports and number of endpoints."""
    return sorted((s["addressType"], len(s["ports"] or ()), len(s["endpoints"] or ())) for s in slices(cluster))


async def test_an_empty_slice_stays_while_some_pod_offers_its_ports(cluster):
    await put(cluster, service(ports=[{"port": 80, "targetPort": "admin"}]))
    # Without a port to offer and without an address of the Service's family, it could still get either.
    await put(cluster, ported("p1", podIPs=[{"ip": "fd00::1"}]))
    async with settled(cluster) as controllers:
        assert layout(cluster) == [("IPv4", 0, 0)]
        await put(cluster, ported("p2", "admin"))
        await controllers.settle()
        assert layout(cluster) == [("IPv4", 0, 0), ("IPv4", 1, 1)]
        await cluster.patch(SERVICES, "web", {"metadata": {"labels": {"new": "label"}}}, namespace=NS)
        await controllers.settle()
        assert layout(cluster) == [("IPv4", 0, 0), ("IPv4", 1, 1)]
        assert all(each["metadata"]["labels"]["new"] == "label" for each in slices(cluster))
        await cluster.delete(PODS, "p2", namespace=NS, grace_seconds=0)
        await controllers.settle()
        assert layout(cluster) == [("IPv4", 0, 0)]
        await put(cluster, ported("p2", "admin"))
        await cluster.delete(PODS, "p1", namespace=NS, grace_seconds=0)
        await controllers.settle()
        assert layout(cluster) == [("IPv4", 1, 1)]
        await assert_right(cluster)


async def test_a_slice_emptied_by_hand_is_not_taken_for_one_of_the_other_family(cluster):
    ports = [{"port": 80, "targetPort": "nobody offers it"}]
    await put(cluster, pod("p1"), service(ports=ports, ipFamilyPolicy="PreferDualStack"))
    async with settled(cluster) as controllers:
        assert layout(cluster) == [("IPv4", 0, 1), ("IPv6", 0, 0)]
        for each in slices(cluster):
            await cluster.patch(ENDPOINT_SLICES, each["metadata"]["name"], {"endpoints": []}, namespace=NS)
        await controllers.settle()
        assert layout(cluster) == [("IPv4", 0, 1), ("IPv6", 0, 0)]


async def test_another_services_slice_that_looks_like_ours_is_not_ours(cluster):
    await put(cluster, service("one"), service("two"))
    async with settled(cluster) as controllers:
        [theirs] = [s for s in slices(cluster) if s["metadata"]["labels"]["kubernetes.io/service-name"] == "one"]
        moved = {"metadata": {"labels": {"kubernetes.io/service-name": "two"}}}
        await cluster.patch(ENDPOINT_SLICES, theirs["metadata"]["name"], moved, namespace=NS)
        await controllers.settle()
        [left] = slices(cluster)
        assert left["metadata"]["generateName"] == "two-"


async def test_the_mark_of_a_headless_service_is_put_right_where_endpoints_change(cluster):
    await put(cluster, service(clusterIP="None"), pod("p1"))
    mark = "service.kubernetes.io/headless"
    async with settled(cluster) as controllers:
        name = slices(cluster)[0]["metadata"]["name"]
        await cluster.patch(ENDPOINT_SLICES, name, {"metadata": {"labels": {mark: None}}}, namespace=NS)
        await put(cluster, pod("p2"))
        await controllers.settle()
        await cluster.patch(SERVICES, "web", {"spec": {"trafficDistribution": "PreferSameNode"}}, namespace=NS)
        await controllers.settle()
        [each] = slices(cluster)
        assert all(e["hints"] for e in each["endpoints"])
        assert mark not in each["metadata"]["labels"]
        await flip(cluster, "p2", False)
        await controllers.settle()
        assert mark in slices(cluster)[0]["metadata"]["labels"]


async def test_metadata_that_others_write_on_slices_is_no_reason_to_look(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(150)], service("ext", selector={}), hand_made())
    async with settled(cluster) as controllers:
        before = len(cluster.written())
        note = {"metadata": {"annotations": {"mine": "x"}, "ownerReferences": None}}
        for each in slices(cluster):
            await cluster.patch(ENDPOINT_SLICES, each["metadata"]["name"], note, namespace=NS)
        edits = len(slices(cluster))
        await controllers.settle(quiet=30)
        assert len(cluster.written()) == before + edits
        # At the next look, slices without their owner belong to no mirror, and it is written anew.
        await flip(cluster, "p1", False)
        await cluster.patch(ENDPOINTS, "ext", {"metadata": {"labels": {"a": "b"}}}, namespace=NS)
        await controllers.settle()
        await assert_right(cluster)
        assert not any("mine" in each["metadata"].get("annotations", {}) for each in slices(cluster))


async def test_a_namespace_that_is_going_away_is_left_in_peace(cluster):
    await put(cluster, service(), pod("p1"), service("ext", selector={}), hand_made())
    cluster.terminating.add(NS)
    async with running(cluster) as controllers:
        await controllers.settle(quiet=60)
        assert cluster.written("Endpoints", "EndpointSlice") == [("create", "Endpoints", "ext")]
        assert events(cluster) == []
        assert controllers.manager.idle


async def test_a_selector_decides_who_keeps_the_slices(cluster):
    await put(cluster, service("web", selector={}), hand_made("web"), pod("p1"))
    managed_by = "endpointslice.kubernetes.io/managed-by"
    async with settled(cluster) as controllers:
        [each] = slices(cluster)
        assert each["metadata"]["labels"][managed_by] == "endpointslicemirroring-controller.k8s.io"
        await cluster.patch(SERVICES, "web", {"spec": {"selector": {"app": "web"}}}, namespace=NS)
        await controllers.settle()
        [each] = slices(cluster)
        assert each["metadata"]["labels"][managed_by] == "endpointslice-controller.k8s.io"
        await assert_right(cluster)


async def test_hints_follow_the_nodes(cluster):
    auto = {"service.kubernetes.io/topology-mode": "Auto"}
    pods = [pod(f"p{i}", node=f"node-{'abc'[i % 3]}") for i in range(9)]
    await put(cluster, service(annotations=auto), *pods)
    async with settled(cluster) as controllers:
        assert all(e["hints"]["forZones"] for e in slices(cluster)[0]["endpoints"])
        assert events(cluster) == ["TopologyAwareHintsEnabled"]
        down = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
        await cluster.patch(NODES, "node-b", down)
        await cluster.patch(NODES, "node-c", down)
        await controllers.settle()
        assert not any(e.get("hints") for e in slices(cluster)[0]["endpoints"])
        assert "TopologyAwareHintsDisabled" in events(cluster)


async def test_a_burst_is_written_together(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(50)])
    async with settled(cluster, settings=DiscoverySettings(batch=1.0)) as controllers:
        before = len(cluster.written())
        await flip(cluster, "p0", False)
        await controllers.clock.advance(0.01)
        assert len(cluster.written()) == before + 2  # the first is not kept waiting
        for i in range(1, 50):
            await flip(cluster, f"p{i}", False)
            await controllers.clock.advance(0.01)
        await controllers.settle()
        assert len(cluster.written()) <= before + 6
        await assert_right(cluster)


async def test_a_large_endpoints_rests_between_two_writes(cluster):
    await put(cluster, service(), *[pod(f"p{i}") for i in range(500)])
    async with settled(cluster) as controllers:
        before = len(cluster.written("Endpoints"))
        for i in range(100):
            await flip(cluster, f"p{i}", False)
            await controllers.clock.advance(0.01)
            if i == 0:
                assert len(cluster.written("Endpoints")) == before + 1
        await controllers.settle()
        assert len(cluster.written("Endpoints")) <= before + 6
        await assert_right(cluster)


async def test_an_informer_that_lags_behind_does_not_make_it_write_twice(cluster):
    through = FaultyCluster(cluster)
    await put(cluster, service(), pod("p1"))
    async with settled(cluster, through=through) as controllers:
        before = len(cluster.written())
        for _ in range(3):
            through.lag(ENDPOINTS, ENDPOINT_SLICES)
            for ready in (False, True, False):
                await flip(cluster, "p1", ready)
                await controllers.clock.advance(5)
            await flip(cluster, "p1", False)  # as it is: nothing to write, whatever the informer believes
            await cluster.patch(SERVICES, "web", {"metadata": {"annotations": {"n": "x"}}}, namespace=NS)
            await controllers.clock.advance(5)
            through.catch_up()
            await controllers.clock.advance(5)
            await flip(cluster, "p1", True)
            await controllers.settle()
        assert len(cluster.written()) == before + 3 * 4 * 2
        await controllers.settle()
        await assert_right(cluster)
        assert len(slices(cluster)) == 1
        creates = [write for write in cluster.written() if write[0] == "create"]
        assert sorted(kind for _, kind, _ in creates) == ["EndpointSlice", "Endpoints"]


async def test_only_the_controllers_asked_for_run(cluster):
    await put(cluster, service(), pod("p1"))
    async with settled(cluster, which=("endpoints",)) as controllers:
        assert controllers.manager.ready.is_set()
        assert slices(cluster) == []
        assert len(cluster.objects(ENDPOINTS)) == 1


@pytest.mark.parametrize(
    "settings", [{"max_endpoints_per_slice": 0}, {"max_endpoints_per_slice": 1001}, {"workers": 0}, {"batch": -1.0}]
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="not"):
        DiscoverySettings(**settings)


async def test_a_controller_nobody_knows_is_refused(cluster):
    with pytest.raises(ValueError, match="no such controller: proxies"):
        add_discovery(Manager(Informers(cluster)), lambda _: cluster, which=("proxies",))
