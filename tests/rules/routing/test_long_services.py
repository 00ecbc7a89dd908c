"""Services and slices as long as the API takes them: ports, addresses and endpoints are not multiplied without end."""

import pytest
from effort import LINEAR, grows
from route_worlds import endpoint, routes, service, slice, table

from seamark.rules.routing import frontends
from seamark.rules.routing import table as route_table
from seamark.rules.routing.model import Kind


def ports(count):
    return [{"name": f"p{i}", "port": i + 1, "protocol": "TCP"} for i in range(count)]


def addresses(count):
    return [f"198.51.{i // 250}.{i % 250}" for i in range(count)]


def test_addresses_are_not_looked_at_again_for_each_port(monkeypatch):
    monkeypatch.setattr(frontends, "MOST_FRONTENDS", 40)

    def prepared(count):
        made = service(ports=ports(count), externalIPs=addresses(count))
        return lambda: table(made).routes("default/web")

    assert grows(prepared) < LINEAR


def test_ports_of_slices_are_looked_up():
    def prepared(count):
        objects = service(ports=ports(count)), slice("s", endpoint("10.244.1.1"), ports=ports(count))
        return lambda: routes(*objects)

    assert grows(prepared) < LINEAR


@pytest.mark.parametrize(("asked", "served"), [(5, 5), (1000, 100)])
def test_of_very_many_addresses_the_first_are_served(asked, served):
    made = service(
        type="LoadBalancer", ports=ports(100), ingress=[{"ip": "203.0.113.1"}], externalIPs=addresses(asked - 1)
    )
    found = routes(made)
    assert len(found.routes) == 100
    for route in found.routes:
        kinds = [each.kind for each in route.frontends]
        assert (kinds[0], kinds[1], len(kinds)) == (Kind.CLUSTER_IP, Kind.LOAD_BALANCER, 1 + served)
    assert found.left_out == 100 * (asked - served)


def test_of_very_many_endpoints_of_ports_the_first_have_routes(monkeypatch):
    monkeypatch.setattr(route_table, "MOST_BACKENDS", 200)
    listed = slice("s", *(endpoint(f"10.244.1.{i}") for i in range(50)), ports=ports(10))
    found = routes(service(ports=ports(10)), listed)
    assert [len(each.cluster.backends) for each in found.routes] == [50] * 4
    assert found.left_out == 6
