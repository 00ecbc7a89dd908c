"""Where the engine listens, and what is decided there."""

import pytest
from route_worlds import AROUND, endpoint, service, slice, table

from seamark.proxy.userspace.balancing import Balancer
from seamark.proxy.userspace.places import Opening, Place, RoutePicker, openings, serving, without
from virtual_time import VirtualClock

NODE = ("192.168.50.10", "fd00:50::10")


def found(*objects, silent=()):
    routes = table(*objects).routes("default/web")
    return dict(openings(without(routes, silent), AROUND, NODE))


def node_port(**more):
    return service(type="NodePort", ports=[{"port": 80, "protocol": "TCP", "nodePort": 30080}], **more)


def balanced(**more):
    return service(
        type="LoadBalancer",
        ports=[{"port": 80, "protocol": "TCP"}],
        ingress=[{"ip": "198.51.100.1", "ipMode": "VIP"}],
        **more,
    )


def test_a_place_for_every_frontend_of_its_family():
    places = found(node_port(), slice("s", endpoint("10.244.1.1")))
    assert [str(place) for place in places] == ["10.96.0.1:80/TCP", "192.168.50.10:30080/TCP"]


def test_brackets_around_ipv6():
    assert str(Place("UDP", "fd00::1", 53)) == "[fd00::1]:53/UDP"


@pytest.mark.parametrize("endpoints", [[], [endpoint("10.244.1.1", ready=False)]])
def test_no_place_where_everybody_is_refused(endpoints):
    assert found(node_port(), slice("s", *endpoints)) == {}


def test_no_place_if_nothing_can_answer_at_the_backends():
    assert found(node_port(), slice("s", endpoint("10.244.1.1")), silent=("10.244.0.0/16",)) == {}
    assert len(found(node_port(), slice("s", endpoint("127.0.0.1")), silent=("10.244.0.0/16",))) == 2


def test_no_place_for_sctp():
    ports = [{"port": 80, "protocol": "SCTP"}]
    there = slice("s", endpoint("10.244.1.1"), ports=[{"name": "", "port": 80, "protocol": "SCTP"}])
    assert found(service(ports=ports), there) == {}


def test_source_ranges_drop_even_where_there_is_no_endpoint():
    places = found(balanced(loadBalancerSourceRanges=["203.0.113.0/24"]))
    assert [str(place) for place in places] == ["198.51.100.1:80/TCP"]


def picker(places, place):
    return RoutePicker(places[place], AROUND, Balancer(clock=VirtualClock()))


def test_who_is_outside_the_source_ranges_meets_silence():
    places = found(balanced(loadBalancerSourceRanges=["203.0.113.0/24"]), slice("s", endpoint("10.244.1.1")))
    at = picker(places, Place("TCP", "198.51.100.1", 80))
    assert at.pick("203.0.113.9") == ("10.244.1.1", 8080)
    assert at.pick("203.0.112.9") == "drop"
    assert picker(places, Place("TCP", "10.96.0.1", 80)).pick("203.0.112.9") == ("10.244.1.1", 8080)


def test_policy_local_without_a_local_endpoint_drops_from_outside_only():
    objects = node_port(externalTrafficPolicy="Local"), slice("s", endpoint("10.244.2.1", "node-b"))
    at = picker(found(*objects), Place("TCP", "192.168.50.10", 30080))
    assert at.pick("203.0.113.9") == "drop"
    assert at.pick("10.244.1.5") == ("10.244.2.1", 8080)
    assert at.pick("192.168.50.10") == ("10.244.2.1", 8080)


def test_a_connection_from_the_address_itself_is_the_nodes():
    objects = balanced(externalTrafficPolicy="Local"), slice("s", endpoint("10.244.2.1", "node-b"))
    at = picker(found(*objects), Place("TCP", "198.51.100.1", 80))
    assert at.pick("198.51.100.1") == ("10.244.2.1", 8080)
    assert at.pick("198.51.100.2") == "drop"


def test_refused_when_all_were_tried():
    at = picker(found(node_port(), slice("s", endpoint("10.244.1.1"))), Place("TCP", "192.168.50.10", 30080))
    assert at.pick("203.0.113.9", [("10.244.1.1", 8080)]) == "refuse"


def test_decisions_kept_for_many_clients_are_bounded():
    at = picker(found(node_port(), slice("s", endpoint("10.244.1.1"))), Place("TCP", "192.168.50.10", 30080))
    for number in range(5000):
        at.pick(f"203.0.{number >> 8}.{number & 255}")
    assert len(at._decisions) <= 1024


def test_backends_that_still_serve_keep_their_flows():
    objects = (
        node_port(),
        slice(
            "s",
            endpoint("10.244.1.1"),
            endpoint("10.244.1.2", ready=False, serving=True),
            endpoint("10.244.1.3", ready=False, serving=False),
        ),
    )
    opening = next(iter(found(*objects).values()))
    assert isinstance(opening, Opening)
    assert serving(opening.route) == {("10.244.1.1", 8080), ("10.244.1.2", 8080)}
