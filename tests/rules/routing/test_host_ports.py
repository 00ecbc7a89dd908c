"""Host ports of Pods as routes of their node."""

import msgspec
import pytest
from route_worlds import AROUND, HERE, service, table

from seamark.rules.objects.pod import Pod
from seamark.rules.routing.host_ports import HOST_PORTS
from seamark.rules.routing.surroundings import ThisNode


def pod(name="web", *, node="node-a", ips=("10.244.0.5", "fd00:10:244::5"), phase="Running", port=None, **spec):
    ports = [{"containerPort": 8080, "hostPort": 80} | (port or {})]
    body = {"nodeName": node, "containers": [{"name": "main", "ports": ports}], **spec}
    status = {"phase": phase, "podIP": ips[0] if ips else "", "podIPs": [{"ip": each} for each in ips]}
    return msgspec.convert({"metadata": {"name": name, "namespace": "default"}, "spec": body, "status": status}, Pod)


def places(of):
    """Where host ports answer, and where they lead."""
    found = of.routes(HOST_PORTS)
    return {
        (each.address, each.protocol, each.port): (route.local.backends[0].address, route.local.backends[0].port)
        for route in (found.routes if found is not None else ())
        for each in route.frontends
    }


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("", {"192.168.50.10": "10.244.0.5", "127.0.0.1": "10.244.0.5", "fd00:50::10": "fd00:10:244::5"}),
        ("0.0.0.0", {"192.168.50.10": "10.244.0.5", "127.0.0.1": "10.244.0.5"}),
        ("::", {"fd00:50::10": "fd00:10:244::5"}),
        ("127.0.0.1", {"127.0.0.1": "10.244.0.5"}),
        ("fd00:50::10", {"fd00:50::10": "fd00:10:244::5"}),
    ],
)
def test_where_a_host_port_answers(asked, expected):
    made = table()
    assert made.put_pod(pod(port={"hostIP": asked})) == {HOST_PORTS}
    assert places(made) == {(place, "TCP", 80): (address, 8080) for place, address in expected.items()}
    assert list(made) == [HOST_PORTS]


def test_pods_without_host_ports_here_touch_nothing():
    made = table()
    for each in (pod(node="node-b"), pod(hostNetwork=True), pod(phase="Failed"), pod(port={"hostPort": 0})):
        assert made.put_pod(each) == set()
    assert made.routes(HOST_PORTS) is None


def test_a_pod_that_gets_its_address_and_goes():
    made = table(around=msgspec.structs.replace(AROUND, node=ThisNode("node-a")))
    assert made.put_pod(pod(ips=())) == {HOST_PORTS}
    assert places(made) == {}
    assert made.put_pod(pod()) == {HOST_PORTS}
    assert made.put_pod(pod()) == set()
    assert HOST_PORTS in made.put_surroundings(msgspec.structs.replace(AROUND, node=HERE))
    assert ("192.168.50.10", "TCP", 80) in places(made)
    assert made.put_pod(pod(phase="Succeeded")) == {HOST_PORTS}
    assert made.remove_pod("default/web") == set()
    assert made.routes(HOST_PORTS) is None


def test_one_place_leads_to_one_pod_and_services_come_first():
    made = table()
    made.put_pod(pod("first"))
    made.put_pod(pod("second", ips=("10.244.0.6",)))
    made.put_pod(pod("udp", ips=("10.244.0.7",), port={"protocol": "UDP"}))
    assert places(made)["192.168.50.10", "TCP", 80] == ("10.244.0.5", 8080)
    assert places(made)["192.168.50.10", "UDP", 80] == ("10.244.0.7", 8080)
    assert HOST_PORTS in made.put_service(service(externalIPs=["192.168.50.10"]))
    assert ("192.168.50.10", "TCP", 80) not in places(made)
    assert HOST_PORTS in made.remove_service("default", "web")
    assert made.remove_pod("default/first") == {HOST_PORTS}
    assert places(made)["192.168.50.10", "TCP", 80] == ("10.244.0.6", 8080)
