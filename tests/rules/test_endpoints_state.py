"""The state of a Service's Endpoints, fed Pod by Pod, against the batch plan; and the rules of both."""

import msgspec
import pytest
from batch_plans import endpoints_plan, size
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import pod, pods, service, services

from seamark.rules import endpoints
from seamark.rules.endpoints import EndpointsState
from seamark.rules.membership import judge, selects
from seamark.rules.objects.endpoints import EndpointAddress, EndpointPort, Endpoints, EndpointSubset
from seamark.rules.objects.metadata import ObjectReference
from seamark.rules.subsets import repack


def stored(changes, version="v1"):
    [written] = changes.create or changes.update
    meta = msgspec.structs.replace(written.metadata, resource_version=version)
    encoded = msgspec.json.encode(msgspec.structs.replace(written, metadata=meta))
    return msgspec.json.decode(encoded, type=Endpoints)


def chosen(web, everything):
    return [p for p in everything.values() if selects(web, p)]


@pytest.fixture(params=["usual", "small"])
def capacity(request, monkeypatch):
    """Truncation is rare at a thousand; at five it happens all the time."""
    if request.param == "small":
        monkeypatch.setattr(endpoints, "ENDPOINTS_CAPACITY", 5)


@given(services(), st.lists(st.one_of(pods(), st.integers(0, 11), st.just("write")), max_size=25), st.data())
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_state_equals_the_plan_after_any_sequence(capacity, web, sequence, data):
    state, everything, current = EndpointsState(web), {}, None
    for number, step in enumerate(sequence):
        if step == "write":
            changes = state.plan(current, trigger_time="t")
            if changes:
                current = stored(changes, f"v{number}")
        elif isinstance(step, int):
            everything.pop(f"p{step}", None)
            state.put(f"p{step}", None)
        else:
            everything[step.metadata.name] = step
            state.put(step.metadata.name, step if selects(web, step) else None)
    order = data.draw(st.permutations(sorted(everything)))
    pods_now = chosen(web, {name: everything[name] for name in order})
    fresh = endpoints_plan(web, pods_now, current, trigger_time="t")
    assert state.plan(current, trigger_time="t") == fresh
    if fresh:
        current = stored(fresh, "last")
    assert not state.plan(current)
    assert not endpoints_plan(web, pods_now, current)
    check(web, pods_now, current)


def check(web, pods_now, current):
    """Every listed Pod is there with every port it offers, and nothing else is."""
    if any(s for s in current.subsets or ()) and endpoints.OVER_CAPACITY_ANNOTATION in current.metadata.annotations:
        assert size(current.subsets) <= endpoints.ENDPOINTS_CAPACITY
        return
    expected = set()
    for each in pods_now:
        verdict = judge(web, each, None)
        if verdict.in_endpoints:
            for port in verdict.ports or (None,):
                expected.add((verdict.endpoints_address, each.metadata.uid, port and port.name, verdict.ready))
    found = []
    for subset in current.subsets or ():
        for listed, ready in ((subset.addresses, True), (subset.not_ready_addresses, False)):
            found += [
                (address.ip, address.target_ref.uid, port and port.name, ready)
                for address in listed
                for port in subset.ports or (None,)
            ]
    assert len(found) == len(set(found))
    assert set(found) == expected


def plan(web, *listed, current=None, **more):
    [written] = (changes := endpoints_plan(web, listed, current, **more)).create or changes.update
    return written


def test_ready_and_not_ready_share_a_subset():
    written = plan(service(), pod("b", ips=("10.1.0.2",), ready=False), pod("a"))
    [subset] = written.subsets
    assert [a.ip for a in subset.addresses] == ["10.1.0.1"]
    assert [a.ip for a in subset.not_ready_addresses] == ["10.1.0.2"]
    assert subset.ports == (EndpointPort(port=8080),)
    [address] = subset.addresses
    assert address.target_ref == ObjectReference(kind="Pod", namespace="default", name="a", uid="uid-a")
    assert address.node_name == "node-a"


def test_addresses_sort_as_text():
    listed = [pod(f"p{i}", ips=(f"10.1.0.{i}",)) for i in (2, 10, 1)]
    [subset] = plan(service(), *listed).subsets
    assert [a.ip for a in subset.addresses] == ["10.1.0.1", "10.1.0.10", "10.1.0.2"]


def test_different_ports_make_different_subsets():
    named = [{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP"}]
    one = pod("a", ports=({"name": "http", "containerPort": 8080, "protocol": "TCP"},))
    two = pod("b", ips=("10.1.0.2",), ports=({"name": "http", "containerPort": 9090, "protocol": "TCP"},))
    none = pod("c", ips=("10.1.0.3",))
    subsets = plan(service(ports=named), one, two, none).subsets
    assert {(s.ports[0].port, s.addresses[0].ip, len(s.addresses)) for s in subsets} == {
        (8080, "10.1.0.1", 1),
        (9090, "10.1.0.2", 1),
    }


def test_labels_follow_the_service_and_annotations_stay():
    current = stored(endpoints_plan(service(labels={"a": "1"}), [], None))
    meta = msgspec.structs.replace(current.metadata, annotations={"note": "x"}, labels={"stray": "y"})
    current = msgspec.structs.replace(current, metadata=meta)
    written = plan(service(labels={"b": "2"}), current=current, trigger_time="2026-01-02T00:00:00Z")
    assert written.metadata.labels == {"b": "2", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert written.metadata.annotations == {
        "note": "x",
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-02T00:00:00Z",
    }


def test_headless_services_are_marked():
    written = plan(service(clusterIP="None"))
    assert written.metadata.labels["service.kubernetes.io/headless"] == ""


def test_a_service_that_is_not_managed_gets_nothing():
    assert not endpoints_plan(service(selector={}), [pod()], None)
    assert not endpoints_plan(service(type="ExternalName"), [pod()], None)


def test_over_capacity_keeps_the_ready_ones_and_says_so():
    listed = [pod(f"p{i}", ips=(f"10.{i // 250}.0.{i % 250}",), ready=i % 2 == 0) for i in range(1600)]
    written = plan(service(), *listed)
    [subset] = written.subsets
    assert (len(subset.addresses), len(subset.not_ready_addresses)) == (800, 200)
    assert written.metadata.annotations["endpoints.kubernetes.io/over-capacity"] == "truncated"
    under = plan(service(), *listed[:100], current=stored(endpoints_plan(service(), listed, None)))
    assert "endpoints.kubernetes.io/over-capacity" not in under.metadata.annotations


def test_more_than_a_thousand_ready_leave_no_room_for_others():
    listed = [pod(f"p{i}", ips=(f"10.{i // 250}.0.{i % 250}",), ready=i < 1200) for i in range(1300)]
    [subset] = plan(service(), *listed).subsets
    assert (len(subset.addresses), len(subset.not_ready_addresses)) == (1000, 0)


def test_other_layouts_of_the_same_endpoints_are_left_alone():
    ref = ObjectReference(kind="Pod", namespace="default", name="a", uid="uid-a", resource_version="7")
    address = EndpointAddress(ip="10.1.0.1", node_name="node-a", target_ref=ref)
    ports = [{"name": n, "port": p, "targetPort": p, "protocol": "TCP"} for n, p in (("x", 1), ("y", 2))]
    spread = tuple(EndpointSubset(addresses=(address,), ports=(EndpointPort(n, p),)) for n, p in (("x", 1), ("y", 2)))
    web = service(ports=ports)
    current = stored(endpoints_plan(web, [], None))
    assert not endpoints_plan(web, [pod()], msgspec.structs.replace(current, subsets=spread))


def test_an_address_that_is_ready_and_not_ready_is_not_ready():
    address = EndpointAddress(ip="1.2.3.4")
    port = (EndpointPort(port=111),)
    both = [EndpointSubset((address,), (), port), EndpointSubset((), (address,), port)]
    assert repack(both) == (EndpointSubset((), (address,), port),)
    assert repack(reversed(both)) == (EndpointSubset((), (address,), port),)


def test_repacking_joins_ports_with_the_same_addresses():
    a, b = EndpointAddress(ip="1.2.3.4"), EndpointAddress(ip="1.2.3.5")
    jumbled = [
        EndpointSubset((b, a, a), (), (EndpointPort(port=111),)),
        EndpointSubset((a,), (), (EndpointPort(port=222), EndpointPort(port=222))),
        EndpointSubset((b,), (), (EndpointPort(port=222),)),
        EndpointSubset((), (), (EndpointPort(port=333),)),
    ]
    [subset] = repack(jumbled)
    assert subset.addresses == (a, b)
    assert sorted(p.port for p in subset.ports) == [111, 222]


@given(st.permutations([EndpointPort(str(i), i) for i in range(6)]))
def test_ports_have_one_order(ports):
    [subset] = repack([EndpointSubset((EndpointAddress(ip="1.2.3.4"),), (), tuple(ports))])
    [again] = repack([EndpointSubset((EndpointAddress(ip="1.2.3.4"),), (), tuple(sorted(ports, key=lambda p: p.port)))])
    assert subset == again
