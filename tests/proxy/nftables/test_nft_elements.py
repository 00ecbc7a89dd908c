"""What routes become in the kernel: elements, and chains for session affinity."""

import pytest
from route_worlds import endpoint, routes, service, slice

from seamark.proxy.nftables import expressions as x
from seamark.proxy.nftables import layout
from seamark.proxy.nftables.elements import wanted

PORTS = [{"port": 80, "protocol": "TCP", "nodePort": 30080}]
BOTH = slice("s", endpoint("10.244.1.1"), endpoint("10.244.2.1", "node-b"))
CLUSTER = b"\x0a\x60\0\1" + b"\x06\0\0\0" + b"\0\x50\0\0"  # 10.96.0.1, TCP, 80
BALANCER = b"\xc6\x33\x64\1" + b"\x06\0\0\0" + b"\0\x50\0\0"
NODE_PORT = b"\x06\0\0\0" + b"\x75\x80\0\0"
FIRST, SECOND = b"\x0a\xf4\1\1\x1f\x90\0\0", b"\x0a\xf4\2\1\x1f\x90\0\0"


def elements(*objects):
    found = wanted(routes(*objects))
    return {name: content for (_, name), content in found.own.elements.items()}, found


def balancer(**spec):
    return service(type="LoadBalancer", ports=PORTS, ingress=[{"ip": "198.51.100.1"}], **spec)


def test_a_cluster_ip_leads_to_the_chain_for_its_number_of_endpoints():
    found, whole = elements(service(), BOTH)
    assert found == {
        "services": {CLUSTER: layout.goto("to-2")},
        "endpoints": {CLUSTER + x.word(0): FIRST, CLUSTER + x.word(1): SECOND},
        "cluster_ips": {CLUSTER[:4]: b""},
    }
    assert whole.pickings == {(2, layout.TO, 2)}
    assert whole.hairpins == {(2, 2 * FIRST[:4]), (2, 2 * SECOND[:4])}


@pytest.mark.parametrize(
    ("listed", "spec", "verdict"),
    [
        ([], {}, layout.REFUSE),
        ([endpoint("10.244.2.1", "node-b")], {"internalTrafficPolicy": "Local"}, layout.DROP),
        ([], {"internalTrafficPolicy": "Local"}, layout.REFUSE),
        ([endpoint("10.244.1.1")], {"internalTrafficPolicy": "Local"}, layout.goto("to-1")),
    ],
)
def test_where_a_cluster_ip_leads(listed, spec, verdict):
    assert elements(service(**spec), slice("s", *listed))[0]["services"] == {CLUSTER: verdict}


def test_external_addresses_and_node_ports_are_masqueraded():
    found, whole = elements(balancer(), BOTH)
    assert found["external"] == {BALANCER: layout.MASQUERADED}
    assert found["node_port_policies"] == {NODE_PORT: layout.MASQUERADED}
    assert found["node_ports"] == {NODE_PORT: layout.goto("node-port-to-2")}
    assert "locals" not in found
    assert whole.pickings == {(2, layout.TO, 2), (2, layout.NODE_PORT_TO, 2)}


def test_the_policy_local_has_endpoints_of_its_own():
    found, _ = elements(balancer(externalTrafficPolicy="Local"), BOTH)
    assert found["external"] == {BALANCER: layout.POLICY_LOCAL}
    assert found["locals"] == {BALANCER: layout.goto("local-1")}
    assert found["node_port_locals"] == {NODE_PORT: layout.goto("node-port-local-1")}
    assert found["endpoints"][BALANCER + x.word(layout.LOCAL_OFFSET)] == FIRST


def test_source_ranges_are_written_without_overlap():
    found, _ = elements(balancer(loadBalancerSourceRanges=["10.0.0.0/8", "10.1.0.0/16"]), BOTH)
    assert found["guarded"] == {BALANCER: b""}
    assert found["admitted"] == {BALANCER + b"\x0a\0\0\0" + BALANCER + b"\x0a\xff\xff\xff": b""}


def test_session_affinity_has_a_chain_and_clients_for_each_endpoint():
    _, whole = elements(balancer(sessionAffinity="ClientIP"), BOTH)
    own = whole.own
    chain = layout.goto("affinity-default/web/tcp/")
    assert own.elements[2, "services"] == {CLUSTER: chain, BALANCER: chain}
    assert own.elements[2, "node_ports"] == {NODE_PORT: chain}
    assert (2, "endpoints") not in own.elements
    assert [name for _, name in own.sets if name.startswith("clients")] == [
        "clients-default/web/tcp//10.244.1.1/8080",
        "clients-default/web/tcp//10.244.2.1/8080",
    ]
    assert len(own.chains[2, "affinity-default/web/tcp/"].rules) == 3


def test_ipv6_is_written_into_its_own_table():
    found = wanted(routes(service(ip="fd00:96::1"), slice("s", endpoint("fd00::1"), family="IPv6")))
    assert {family for family, _ in found.own.elements} == {10}
    ((key, data),) = found.own.elements[10, "endpoints"].items()
    assert (len(key), len(data)) == (16 + 4 + 4 + 4, 16 + 4)


def test_a_service_that_is_left_alone_asks_for_nothing():
    assert not wanted(routes(service(ip="None"))).own.elements
    assert not wanted(None).own.elements
