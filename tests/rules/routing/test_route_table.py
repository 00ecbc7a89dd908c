"""The table of routes: a change touches its Service, and the order of changes does not matter."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from route_worlds import AROUND, HERE, endpoint, put, service, services, shown, slice, slices, table

from seamark.rules.objects.service import Service
from seamark.rules.routing.endpoints import Unusable, unusable
from seamark.rules.routing.model import Kind
from seamark.rules.routing.table import RouteTable

events = st.lists(
    st.one_of(services, slices, st.tuples(st.just("gone"), st.one_of(services, slices))), min_size=1, max_size=12
)


def apply(into, event):
    if not isinstance(event, tuple):
        return put(into, event)
    meta = event[1].metadata
    remove = into.remove_service if isinstance(event[1], Service) else into.remove_slice
    return remove(meta.namespace, meta.name)


def final(history):
    """The objects that exist in the end."""
    kept = {}
    for event in history:
        each = event[1] if isinstance(event, tuple) else event
        key = (type(each), each.metadata.key)
        kept.pop(key, None)
        if not isinstance(event, tuple):
            kept[key] = each
    return list(kept.values())


def everything(of):
    return {key: of.routes(key) for key in of}


@given(events, st.randoms())
def test_step_by_step_equals_all_at_once_in_any_order(history, random):
    step_by_step = RouteTable(AROUND)
    for event in history:
        apply(step_by_step, event)
    objects = final(history)
    random.shuffle(objects)
    assert everything(step_by_step) == everything(table(*objects))


@given(events)
def test_whatever_changes_is_touched(history):
    made = RouteTable(AROUND)
    for event in history:
        before = everything(made)
        touched = apply(made, event)
        after = everything(made)
        assert {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)} <= touched


@given(events)
def test_every_endpoint_is_chosen_or_left_out_once_and_no_place_is_given_twice(history):
    made = table(*final(history))
    held = []
    for found in everything(made).values():
        for route in found.routes:
            for choice in (route.cluster, route.local):
                listed = [*choice.backends, *(each.backend for each in choice.left_out)]
                assert len({(each.address, each.port) for each in listed}) == len(listed)
            assert len(route.cluster.backends) + len(route.cluster.left_out) == len(route.local.backends) + len(
                route.local.left_out
            )
            assert all(backend.local for backend in route.local.backends)
            held += [(each.address, each.protocol, each.port) for each in route.frontends]
    assert len(held) == len(set(held))


def test_a_slice_that_changes_its_service_touches_both():
    made = table(service(), service("db", ip="10.96.0.2"), slice("s", endpoint("10.0.0.1")))
    assert made.put_slice(slice("s", endpoint("10.0.0.1"), of="db")) == {"default/web", "default/db"}
    assert made.routes("default/web").routes[0].cluster.backends == ()
    assert made.remove_slice("default", "s") == {"default/db"}
    assert made.remove_slice("default", "s") == set()


def test_another_zone_touches_every_service_and_other_service_ranges_none():
    made = table(service(), slice("s", endpoint("10.0.0.1", zones=["zone-a"]), endpoint("10.0.0.2", zones=["zone-b"])))
    moved = msgspec.structs.replace(AROUND, node=msgspec.structs.replace(HERE, zone="zone-b"))
    assert made.put_surroundings(msgspec.structs.replace(AROUND, service_cidrs=("10.96.0.0/16",))) == set()
    assert made.put_surroundings(moved) == {"default/web"}
    assert made.put_surroundings(moved) == set()
    assert shown(made.routes("default/web").routes[0].cluster.backends) == ["10.0.0.2:8080"]


def test_a_service_that_is_not_there_has_no_routes():
    made = table(service())
    assert made.remove_service("default", "web") == {"default/web"}
    assert made.remove_service("default", "web") == set()
    assert made.routes("default/web") is None
    assert "default/web" not in made
    assert len(made) == 0


def test_slices_before_their_service():
    made = table(slice("s", endpoint("10.0.0.1")), service())
    assert shown(made.routes("default/web").routes[0].cluster.backends) == ["10.0.0.1:8080"]
    assert [each.metadata.name for each in made.slices("default/web")] == ["s"]
    made.clear()
    assert len(made) == 0
    assert made.slices("default/web") == ()


def test_why_a_slice_has_nothing_for_a_port():
    port = service().spec.ports[0]
    assert unusable(slice("s", endpoint("10.0.0.1")), port, "IPv4") is None
    assert unusable(slice("s"), port, "IPv6") is Unusable.OTHER_FAMILY
    assert unusable(slice("s", ports=[{"name": "x", "port": 1}]), port, "IPv4") is Unusable.NO_SUCH_PORT
    assert unusable(slice("s", labels={"service.kubernetes.io/headless": ""}), port, "IPv4") is Unusable.HEADLESS
    other = {"service.kubernetes.io/service-proxy-name": "x"}
    assert unusable(slice("s", labels=other), port, "IPv4") is Unusable.OTHER_PROXY


def test_a_port_that_cannot_be_served_has_no_route_and_the_others_stay_the_same():
    ports = [{"name": "a", "port": 80, "nodePort": 30080}, {"name": "b", "port": 81}]
    objects = [
        service(type="NodePort", ports=ports),
        slice("web-1", endpoint("10.0.0.1"), ports=[{"name": "a", "port": 80}]),
    ]
    all_of_them = table(*objects).routes("default/web").routes
    only_node_ports = RouteTable(AROUND, served=lambda frontend: frontend.kind is Kind.NODE_PORT)
    for each in objects:
        put(only_node_ports, each)
    assert only_node_ports.routes("default/web").routes == all_of_them[:1]
