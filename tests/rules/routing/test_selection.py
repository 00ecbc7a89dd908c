"""Which endpoints get the connections, and why the others do not."""

import pytest
from route_worlds import endpoint, reasons, retiring, route, service, shown, slice

NAMED = [{"name": "http", "port": 80, "protocol": "TCP"}]


def chosen(*endpoints):
    """Addresses chosen for the whole cluster and for this node, and what happens without any of the latter."""
    found = route(service(), slice("s", *endpoints))
    return [e.address[-1] for e in found.cluster.backends], [e.address[-1] for e in found.local.backends]


def test_ready_endpoints_are_chosen_here_and_elsewhere():
    assert chosen(endpoint("10.0.0.1"), endpoint("10.0.0.2", "node-b")) == (["1", "2"], ["1"])


def test_an_endpoint_without_conditions_is_ready():
    assert chosen(endpoint("10.0.0.1", ready=None)) == (["1"], ["1"])


def test_an_endpoint_without_a_node_is_not_local():
    assert chosen(endpoint("10.0.0.1", None)) == (["1"], [])


def test_terminating_endpoints_are_the_second_choice_for_the_cluster_and_the_node_separately():
    both = chosen(retiring("10.0.0.1"), retiring("10.0.0.2", "node-b"))
    assert both == (["1", "2"], ["1"])
    assert chosen(retiring("10.0.0.1"), endpoint("10.0.0.2", "node-b")) == (["2"], ["1"])
    assert chosen(retiring("10.0.0.1"), endpoint("10.0.0.2")) == (["2"], ["2"])


def test_each_endpoint_that_is_left_out_has_its_reason():
    found = route(
        service(),
        slice(
            "s",
            endpoint("10.0.0.1"),
            endpoint("10.0.0.2", ready=False),
            retiring("10.0.0.3"),
            endpoint("10.0.0.4", ready=False, serving=False, terminating=True),
            endpoint("10.0.0.5", "node-b"),
        ),
    )
    assert reasons(found.cluster) == {"10.0.0.2": "NOT_READY", "10.0.0.3": "TERMINATING", "10.0.0.4": "STOPPED"}
    assert reasons(found.local) == {**reasons(found.cluster), "10.0.0.5": "ELSEWHERE"}


@pytest.mark.parametrize(
    ("endpoints", "cluster", "local"),
    [
        ([], "refuse", "refuse"),
        ([endpoint("10.0.0.1", ready=False)], "refuse", "refuse"),
        ([endpoint("10.0.0.1", "node-b")], "refuse", "drop"),
        ([retiring("10.0.0.1", "node-b")], "refuse", "drop"),
        ([endpoint("10.0.0.1", "node-b", ready=False)], "refuse", "refuse"),
    ],
)
def test_what_happens_without_a_backend(endpoints, cluster, local):
    found = route(service(), slice("s", *endpoints))
    assert (found.cluster.empty, found.local.empty) == (cluster, local)


# --- slices ----------------------------------------------------------------------------------------


def test_an_endpoint_in_two_slices_counts_once_and_one_on_two_ports_twice():
    other = [{"name": "", "port": 9090, "protocol": "TCP"}]
    found = route(
        service(),
        slice("a", endpoint("10.0.0.1"), endpoint("10.0.0.2")),
        slice("b", endpoint("10.0.0.1")),
        slice("c", endpoint("10.0.0.1"), ports=other),
    )
    assert shown(found.cluster.backends) == ["10.0.0.1:8080", "10.0.0.1:9090", "10.0.0.2:8080"]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_a_terminating_copy_does_not_replace_a_ready_one(order):
    found = route(service(), slice(order[0], endpoint("10.0.0.1")), slice(order[1], retiring("10.0.0.1")))
    assert found.cluster.backends[0].ready


def test_only_the_first_address_counts_and_ports_without_a_number_do_not():
    several = {**endpoint("10.0.0.1"), "addresses": ["10.0.0.1", "10.0.0.9"]}
    found = route(service(), slice("a", several), slice("b", endpoint("10.0.0.2"), ports=[{"name": ""}]))
    assert shown(found.cluster.backends) == ["10.0.0.1:8080"]


def test_slices_are_matched_by_port_name_and_protocol_not_by_number():
    found = route(
        service(ports=NAMED),
        slice("a", endpoint("10.0.0.1"), ports=[{"name": "http", "port": 1}]),
        slice("b", endpoint("10.0.0.2"), ports=[{"name": "http", "port": 2, "protocol": "UDP"}]),
        slice("c", endpoint("10.0.0.3"), ports=[{"name": "", "port": 80, "protocol": "TCP"}]),
    )
    assert shown(found.cluster.backends) == ["10.0.0.1:1"]


@pytest.mark.parametrize(
    "foreign",
    [
        slice("x", endpoint("10.0.0.1"), of=""),
        slice("x", endpoint("10.0.0.1"), of="other"),
        slice("x", endpoint("10.0.0.1"), labels={"service.kubernetes.io/headless": ""}),
        slice("x", endpoint("10.0.0.1"), labels={"service.kubernetes.io/service-proxy-name": "mine"}),
        slice("x", endpoint("web.example"), family="FQDN"),
        slice("x", endpoint("fd00::1"), family="IPv6"),
    ],
)
def test_slices_that_do_not_count(foreign):
    assert route(service(), foreign).cluster.backends == ()


# --- hints -----------------------------------------------------------------------------------------


def test_hints_for_zones_keep_connections_in_the_zone():
    found = route(
        service(),
        slice(
            "s",
            endpoint("10.0.0.1", zones=["zone-a"]),
            endpoint("10.0.0.2", "node-b", zones=["zone-b"]),
            endpoint("10.0.0.3", ready=False),
        ),
    )
    assert shown(found.cluster.backends) == ["10.0.0.1:8080"]
    assert reasons(found.cluster) == {"10.0.0.2": "OTHER_ZONE", "10.0.0.3": "NOT_READY"}


def test_hints_do_not_matter_to_the_policy_local():
    found = route(service(), slice("s", endpoint("10.0.0.1", zones=["zone-b"]), endpoint("10.0.0.2", zones=["zone-a"])))
    assert shown(found.local.backends) == ["10.0.0.1:8080", "10.0.0.2:8080"]


@pytest.mark.parametrize(
    "endpoints",
    [
        [endpoint("10.0.0.1", zones=["zone-a"]), endpoint("10.0.0.2")],
        [endpoint("10.0.0.1", zones=["zone-b"]), endpoint("10.0.0.2", zones=["zone-b"])],
    ],
)
def test_incomplete_hints_are_ignored(endpoints):
    assert len(route(service(), slice("s", *endpoints)).cluster.backends) == 2


def test_hints_for_nodes_come_first_and_fall_back_to_zones():
    near = endpoint("10.0.0.1", nodes=["node-a"], zones=["zone-a"])
    same_zone = endpoint("10.0.0.2", "node-c", nodes=["node-c"], zones=["zone-a"])
    far = endpoint("10.0.0.3", "node-b", nodes=["node-b"], zones=["zone-b"])
    by_node = route(service(), slice("s", near, same_zone, far))
    assert reasons(by_node.cluster) == {"10.0.0.2": "OTHER_NODE", "10.0.0.3": "OTHER_NODE"}
    assert shown(route(service(), slice("s", same_zone, far)).cluster.backends) == ["10.0.0.2:8080"]
    unhinted = endpoint("10.0.0.4", zones=["zone-a"])
    without = route(service(), slice("s", near, same_zone, far, unhinted))
    assert reasons(without.cluster) == {"10.0.0.3": "OTHER_ZONE"}


def test_hints_do_not_keep_the_second_choice_away():
    found = route(service(), slice("s", retiring("10.0.0.1", "node-b", zones=["zone-b"])))
    assert shown(found.cluster.backends) == ["10.0.0.1:8080"]
