"""Which connections NetworkPolicies let through."""

import msgspec
import pytest

from seamark.rules import isolation
from seamark.rules.isolation import Door, Party
from seamark.rules.objects.networkpolicy import NetworkPolicy
from seamark.rules.objects.pod import Pod


def pod(namespace="shop", ip="10.1.0.1", **labels):
    return msgspec.convert(
        {"metadata": {"name": "p", "namespace": namespace, "labels": labels}, "status": {"podIPs": [{"ip": ip}]}}, Pod
    )


def policy(**spec):
    return msgspec.convert({"metadata": {"name": "x", "namespace": "shop"}, "spec": spec}, NetworkPolicy)


def rule(*peers, ports=()):
    return policy(podSelector={}, ingress=[{"from": list(peers), "ports": list(ports)}])


DOOR = Door(8080, "TCP", ("http",))
WEB = {"podSelector": {"matchLabels": {"app": "web"}}}
SHOP = {"namespaceSelector": {"matchLabels": {"team": "shop"}}}


def test_who_is_selected():
    web = pod(app="web")
    mine, other = policy(podSelector={"matchLabels": {"app": "web"}}), policy(podSelector={"matchLabels": {"app": "x"}})
    assert isolation.selecting([mine, other], web, "Ingress") == [mine]
    assert isolation.selecting([mine], web, "Egress") == []
    assert isolation.selecting([policy(podSelector={}, egress=[{}])], web, "Egress")
    assert isolation.selecting([mine], pod("back", app="web"), "Ingress") == []


@pytest.mark.parametrize(
    ("ports", "open"),
    [
        ([], True),
        ([{"port": 8080}], True),
        ([{"port": "http"}], True),
        ([{"port": 8000, "endPort": 8100}], True),
        ([{"protocol": "TCP"}], True),
        ([{"port": 80}], False),
        ([{"port": "metrics"}], False),
        ([{"port": 8080, "protocol": "UDP"}], False),
    ],
)
def test_ports(ports, open):
    assert isolation.closed([rule(ports=ports)], DOOR) is not open
    assert isolation.closed([policy(podSelector={})], DOOR)


@pytest.mark.parametrize(
    ("peer", "party", "expected"),
    [
        (WEB, Party(pod(app="web")), True),
        (WEB, Party(pod(app="api")), False),
        (WEB, Party(pod("back", app="web")), False),  # without a namespace selector: its own namespace
        (SHOP, Party(pod("back"), {"team": "shop"}), True),
        (SHOP, Party(pod("back"), {"team": "back"}), False),
        (SHOP, Party(pod("back")), None),  # the labels of the namespace are not known
        ({"namespaceSelector": {}}, Party(pod("back")), True),
        ({**WEB, **SHOP}, Party(pod("back", app="api"), {"team": "shop"}), False),
        ({"ipBlock": {"cidr": "10.0.0.0/8"}}, Party(pod()), True),
        ({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, Party(pod()), False),
        ({"ipBlock": {"cidr": "198.51.100.0/24"}}, Party(addresses=("198.51.100.7",)), True),
        (WEB, Party(addresses=("198.51.100.7",)), False),
    ],
)
def test_peers(peer, party, expected):
    assert isolation.admitted([rule(peer)], DOOR, party) is expected
    out = policy(podSelector={}, policyTypes=["Egress"], egress=[{"to": [peer]}])
    assert isolation.let_out([out], DOOR, party) is expected


def test_a_second_rule_may_allow_what_the_first_does_not():
    assert isolation.admitted([rule(SHOP), rule()], DOOR, Party(pod("back"))) is True
    assert isolation.admitted([rule(SHOP), rule(WEB)], DOOR, Party(pod("back"))) is None


def test_dns():
    assert not isolation.speaks([policy(podSelector={}, policyTypes=["Egress"])], 53)
    assert isolation.speaks([policy(podSelector={}, egress=[{"ports": [{"port": 53, "protocol": "UDP"}]}])], 53)
