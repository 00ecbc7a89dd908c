"""Which addresses lead to a Service, and who gets one that several ask for."""

import pytest
from route_worlds import AROUND, endpoint, route, routes, service, slice, table

from seamark.rules.routing.model import Frontend, Ignored, Kind
from seamark.rules.routing.surroundings import Surroundings, ThisNode

WEB = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]


def frontends(found):
    return [(each.kind.value, each.address, each.protocol, each.port) for each in found.frontends]


def test_every_kind_of_address():
    found = route(
        service(
            type="LoadBalancer",
            ports=WEB,
            externalIPs=["198.51.100.9", "2001:db8::9"],
            ingress=[
                {"ip": "198.51.100.1"},
                {"ip": "198.51.100.2", "ipMode": "VIP"},
                {"ip": "198.51.100.3", "ipMode": "Proxy"},
                {"hostname": "lb.example"},
            ],
        )
    )
    assert frontends(found) == [
        ("clusterIP", "10.96.0.1", "TCP", 80),
        ("loadBalancer", "198.51.100.1", "TCP", 80),
        ("loadBalancer", "198.51.100.2", "TCP", 80),
        ("externalIP", "198.51.100.9", "TCP", 80),
        ("nodePort", "", "TCP", 30080),
    ]


def test_an_address_listed_twice_counts_once():
    found = route(service(type="LoadBalancer", externalIPs=["198.51.100.1"], ingress=[{"ip": "198.51.100.1"}]))
    assert [each[0] for each in frontends(found)] == ["clusterIP", "loadBalancer"]


def test_ingress_and_node_ports_count_only_with_their_types():
    assert frontends(route(service(ports=WEB, ingress=[{"ip": "198.51.100.1"}]))) == [
        ("clusterIP", "10.96.0.1", "TCP", 80)
    ]


def test_both_families_have_their_own_route():
    found = routes(
        service(ip=["10.96.0.1", "fd00:96::1"], type="NodePort", ports=WEB, externalIPs=["2001:DB8::9"]),
        slice("a", endpoint("10.0.0.1")),
        slice("b", endpoint("fd00::1"), family="IPv6"),
    )
    four, six = found.routes
    assert (four.family, six.family) == ("IPv4", "IPv6")
    assert frontends(six)[1] == ("externalIP", "2001:db8::9", "TCP", 80)
    assert six.cluster.backends[0].address == "fd00::1"
    assert found.addresses == ("10.96.0.1", "fd00:96::1")


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (service(ip="None"), Ignored.HEADLESS),
        (service(ip=""), Ignored.NO_ADDRESS),
        (service(type="ExternalName"), Ignored.EXTERNAL_NAME),
        (service(labels={"service.kubernetes.io/service-proxy-name": "x"}), Ignored.OTHER_PROXY),
        (service(labels={"service.kubernetes.io/headless": ""}), Ignored.HEADLESS_LABEL),
    ],
)
def test_services_left_alone(made, reason):
    found = routes(made)
    assert (found.ignored, found.routes) == (reason, ())


def test_affinity_and_its_default():
    assert route(service()).affinity_seconds == 0
    assert route(service(sessionAffinity="ClientIP")).affinity_seconds == 10800
    config = {"clientIP": {"timeoutSeconds": 5}}
    assert route(service(sessionAffinity="ClientIP", sessionAffinityConfig=config)).affinity_seconds == 5


def test_policies():
    found = route(service(internalTrafficPolicy="Local", externalTrafficPolicy="Cluster"))
    assert (found.internal, found.external) == ("Local", "Cluster")


@pytest.mark.parametrize(
    ("listed", "four", "six"),
    [
        ([], (), ()),
        (["203.0.113.1/32", "2001:db8::/64"], ("203.0.113.1/32",), ("2001:db8::/64",)),
        (["10.1.0.0/16", "0.0.0.0/0"], (), ()),
        ([" 10.1.2.3/16"], ("10.1.0.0/16",), ()),
    ],
)
def test_source_ranges_by_family(listed, four, six):
    made = service(ip=["10.96.0.1", "fd00:96::1"], type="LoadBalancer", loadBalancerSourceRanges=listed)
    assert [each.source_ranges for each in routes(made).routes] == [four, six]


def test_a_range_that_admits_the_node_admits_the_address_itself():
    made = service(type="LoadBalancer", loadBalancerSourceRanges=["192.168.50.0/24"], ingress=[{"ip": "198.51.100.1"}])
    assert route(made).source_ranges == ("192.168.50.0/24", "198.51.100.1/32")


# --- an address that two Services ask for ------------------------------------------------------------


def external(name, ip, created, *addresses):
    return service(name, ip=ip, created=created, externalIPs=list(addresses))


def test_the_older_service_keeps_an_external_address_until_it_goes():
    young = external("young", "10.96.0.2", "2026-01-02T00:00:00Z", "198.51.100.1")
    old = external("old", "10.96.0.1", "2026-01-01T00:00:00Z", "198.51.100.1")
    made = table(young)
    assert made.put_service(old) == {"default/old", "default/young"}
    lost = made.routes("default/young").routes[0]
    assert [each.winner for each in lost.shadowed] == ["default/old"]
    assert len(lost.frontends) == 1
    assert made.winner(Frontend(Kind.EXTERNAL_IP, "198.51.100.1", "TCP", 80)) == "default/old"
    assert made.remove_service("default", "old") == {"default/old", "default/young"}
    assert len(made.routes("default/young").routes[0].frontends) == 2


def test_no_external_address_takes_another_services_cluster_ip():
    thief = external("thief", "10.96.0.2", "2020-01-01T00:00:00Z", "10.96.0.1")
    made = table(thief, service("victim"))
    assert made.winner(Frontend(Kind.CLUSTER_IP, "10.96.0.1", "TCP", 80)) == "default/victim"


# --- this node ---------------------------------------------------------------------------------------


def test_health_check_counts_ready_local_addresses_once():
    found = routes(
        service(
            type="LoadBalancer",
            externalTrafficPolicy="Local",
            healthCheckNodePort=30999,
            ports=[{"name": "a", "port": 80}, {"name": "b", "port": 81}],
        ),
        slice(
            "s",
            endpoint("10.0.0.1"),
            endpoint("10.0.0.2", ready=False),
            endpoint("10.0.0.3", "node-b"),
            ports=[{"name": "a", "port": 1}, {"name": "b", "port": 2}],
        ),
    )
    assert [(each.port, each.family, each.local_endpoints) for each in found.health_checks] == [(30999, "IPv4", 1)]
    assert routes(service(type="LoadBalancer", healthCheckNodePort=30999)).health_checks == ()


@pytest.mark.parametrize(
    ("setting", "address", "served"),
    [
        (("primary",), "192.168.50.10", True),
        (("primary",), "192.168.50.11", False),
        (("0.0.0.0/0", "::/0"), "192.168.50.11", True),
        (("0.0.0.0/0", "::/0"), "127.0.0.1", False),
        (("0.0.0.0/0", "::/0"), "::1", False),
        (("192.168.50.11/32",), "192.168.50.10", False),
        (("primary",), "nonsense", False),
    ],
)
def test_where_node_ports_answer(setting, address, served):
    around = Surroundings(AROUND.node, node_port_addresses=setting)
    assert around.serves_node_ports(address) is served


def test_a_nodes_primary_addresses():
    import msgspec

    from seamark.rules.objects.node import Node

    body = {
        "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z"}},
        "spec": {"taints": [{"key": "ToBeDeletedByClusterAutoscaler", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [
                {"type": "Hostname", "address": "n"},
                {"type": "ExternalIP", "address": "203.0.113.1"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "10.0.0.2"},
                {"type": "InternalIP", "address": "FD00::1"},
            ]
        },
    }
    assert ThisNode.of(msgspec.convert(body, Node)) == ThisNode("n", "z", ("10.0.0.1", "fd00::1"), eligible=False)
