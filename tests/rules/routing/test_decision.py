"""One connection from one place: where it goes, and whose address the backend sees."""

import msgspec
import pytest
from route_worlds import AROUND, endpoint, route, service, slice

from seamark.rules.routing.decision import decide, origin_of
from seamark.rules.routing.model import Kind

NODE_PORT = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]
BOTH = slice("s", endpoint("10.244.1.1"), endpoint("10.244.2.1", "node-b"))
FAR = slice("s", endpoint("10.244.2.1", "node-b"))
SOURCES = {"pod": "10.244.1.9", "node": "192.168.50.10", "outside": "203.0.113.1"}


def asked(kind, origin, *slices, around=AROUND, **spec):
    made = service(type="LoadBalancer", ports=NODE_PORT, ingress=[{"ip": "198.51.100.1"}], **spec)
    found = route(made, *slices, around=around)
    (frontend,) = [each for each in found.frontends if each.kind is kind]
    return decide(found, frontend, origin, SOURCES[origin], around)


@pytest.mark.parametrize(
    ("kind", "policies", "origin", "backends", "masquerade"),
    [
        (Kind.CLUSTER_IP, {}, "pod", 2, False),
        (Kind.CLUSTER_IP, {}, "node", 2, True),
        (Kind.CLUSTER_IP, {}, "outside", 2, True),
        (Kind.NODE_PORT, {}, "pod", 2, True),
        (Kind.NODE_PORT, {}, "outside", 2, True),
        (Kind.LOAD_BALANCER, {}, "node", 2, True),
        (Kind.CLUSTER_IP, {"internalTrafficPolicy": "Local"}, "pod", 1, False),
        (Kind.NODE_PORT, {"internalTrafficPolicy": "Local"}, "pod", 2, True),
        (Kind.NODE_PORT, {"externalTrafficPolicy": "Local"}, "outside", 1, False),
        (Kind.NODE_PORT, {"externalTrafficPolicy": "Local"}, "pod", 2, False),
        (Kind.NODE_PORT, {"externalTrafficPolicy": "Local"}, "node", 2, True),
        (Kind.CLUSTER_IP, {"externalTrafficPolicy": "Local"}, "outside", 2, True),
    ],
)
def test_who_gets_it_and_who_is_seen(kind, policies, origin, backends, masquerade):
    found = asked(kind, origin, BOTH, **policies)
    assert (found.verdict, len(found.choice.backends), found.masquerade) == ("accept", backends, masquerade)


@pytest.mark.parametrize(
    ("kind", "policies", "origin", "verdict"),
    [
        (Kind.NODE_PORT, {"externalTrafficPolicy": "Local"}, "outside", "drop"),
        (Kind.NODE_PORT, {"externalTrafficPolicy": "Local"}, "pod", "accept"),
        (Kind.CLUSTER_IP, {"internalTrafficPolicy": "Local"}, "pod", "drop"),
        (Kind.CLUSTER_IP, {"internalTrafficPolicy": "Local"}, "node", "drop"),
    ],
)
def test_local_without_a_local_endpoint(kind, policies, origin, verdict):
    assert asked(kind, origin, FAR, **policies).verdict == verdict
    assert asked(kind, origin, **policies).verdict == "refuse"


def test_source_ranges_guard_only_load_balancer_addresses_and_come_first():
    ranges = {"loadBalancerSourceRanges": ["203.0.113.0/24"]}
    assert asked(Kind.LOAD_BALANCER, "outside", BOTH, **ranges).verdict == "accept"
    blocked = asked(Kind.LOAD_BALANCER, "pod", **ranges)
    assert (blocked.verdict, blocked.blocked) == ("drop", True)
    assert asked(Kind.NODE_PORT, "pod", BOTH, **ranges).verdict == "accept"


def test_masquerading_everything_and_not_knowing_the_pods():
    everything = msgspec.structs.replace(AROUND, masquerade_all=True)
    assert asked(Kind.CLUSTER_IP, "pod", BOTH, around=everything).masquerade
    unknown = msgspec.structs.replace(AROUND, cluster_cidrs=())
    assert not asked(Kind.CLUSTER_IP, "outside", BOTH, around=unknown).masquerade


def test_what_a_client_is_to_the_node():
    assert {name: origin_of(address, AROUND) for name, address in SOURCES.items()} == {
        "pod": "pod",
        "node": "node",
        "outside": "outside",
    }
    assert origin_of("127.0.0.1", AROUND) == "node"
