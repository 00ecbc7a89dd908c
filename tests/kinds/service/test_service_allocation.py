"""Planning of cluster IPs and node ports."""

from __future__ import annotations

import random
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.api.settings import ServiceNetwork
from seamark.errors import ApiError, InternalError, Invalid, Object, status
from seamark.kinds.allocation import Allocation
from seamark.kinds.service.allocation import address_in, plan, release
from seamark.kinds.service.bands import address_range
from seamark.kinds.service.service import SERVICE

NETWORK = ServiceNetwork()
SMALL = ServiceNetwork(ranges=("10.0.0.0/29", "fd00::/125"), node_ports=(30000, 30003))


class Held:
    """Addresses and ports in use."""

    def __init__(self, *addresses: str, ports: tuple[int, ...] = ()) -> None:
        self.addresses = set(addresses)
        self.ports = set(ports)
        self.lookups = 0


class Pool:
    """A network, and what is held of it."""

    def __init__(self, network: ServiceNetwork, added: tuple[str, ...], held: Held, seed: int) -> None:
        self.ranges, self.node_ports, self.open_ranges = network.ranges, network.node_ports, (*network.ranges, *added)
        self.random = random.Random(seed)
        self._held = held

    def has_address(self, address: str) -> bool:
        self._held.lookups += 1
        return address in self._held.addresses

    def has_port(self, port: int) -> bool:
        self._held.lookups += 1
        return port in self._held.ports


def service(**spec: Any) -> Object:
    spec.setdefault("ports", [{"port": 80}])
    obj: Object = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec, "status": {"loadBalancer": {}}}
    SERVICE.default(obj)
    SERVICE.prepare_create(obj)
    return obj


def planned(
    obj: Object,
    old: Object | None = None,
    *,
    network: ServiceNetwork = NETWORK,
    held: Held | None = None,
    seed: int = 0,
    dry_run: bool = False,
    more_ranges: tuple[str, ...] = (),
) -> Allocation:
    return plan(obj, old, Pool(network, more_ranges, held or Held(), seed), dry_run=dry_run)


def changed(old: Object, **spec: Any) -> Object:
    """The object after a patch of its spec, ready to be planned."""
    merged = {key: value for key, value in {**old["spec"], **spec}.items() if value is not None}
    merged["ports"] = [dict(port) for port in merged.get("ports", [])]
    obj: Object = {"metadata": dict(old["metadata"]), "spec": merged, "status": {"loadBalancer": {}}}
    SERVICE.default(obj)
    SERVICE.prepare_update(obj, old)
    return obj


def refusal(error: ApiError) -> list[tuple[str, str]]:
    return [(cause.field, cause.message) for cause in error.causes]


# --- addresses -------------------------------------------------------------------------------------


def test_bands_of_ranges() -> None:
    found = address_range("10.96.0.0/16")
    assert (found.text(found.first), found.text(found.upper), found.text(found.last)) == (
        *("10.96.0.1", "10.96.1.1", "10.96.255.254"),
    )
    found = address_range("fd00:96::/112")
    assert (found.text(found.first), found.text(found.last)) == ("fd00:96::1", "fd00:96::ffff")
    assert address_range("10.0.0.0/24").upper - address_range("10.0.0.0/24").first == 16
    assert address_range("10.0.0.0/28").upper == address_range("10.0.0.0/28").first
    assert address_in("10.96.0.0/16", 1) == "10.96.0.1"
    assert address_in("10.96.0.0/16", 10) == "10.96.0.10"
    assert address_in("10.96.0.0/29", 10) == "10.96.0.6"  # the last of a small range
    with pytest.raises(ValueError, match="no CIDR"):
        address_range("10.0.0.0")


@given(st.integers(0, 2**32))
def test_chosen_values_come_from_the_upper_band(seed: int) -> None:
    obj = service(type="NodePort", ipFamilyPolicy="PreferDualStack")
    allocation = planned(obj, seed=seed)
    first, second = obj["spec"]["clusterIPs"]
    assert ip_address(first) in ip_network("10.96.0.0/16")
    assert ip_address(first) > ip_address("10.96.1.0")
    assert ip_address(second) in ip_network("fd00:96::/112")
    assert 30086 <= obj["spec"]["ports"][0]["nodePort"] <= 32767
    assert allocation == Allocation(reserve_ips=(first, second), reserve_ports=(obj["spec"]["ports"][0]["nodePort"],))
    assert obj["spec"]["clusterIP"] == first


def test_every_address_is_found_before_the_range_is_full() -> None:
    held = Held()
    for _ in range(6):
        (address,) = planned(service(), network=SMALL, held=held, seed=len(held.addresses)).reserve_ips
        held.addresses.add(address)
    assert held.addresses == {f"10.0.0.{i}" for i in range(1, 7)}
    with pytest.raises(InternalError) as caught:
        planned(service(), network=SMALL, held=held)
    assert status(caught.value) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Internal error occurred: failed to allocate a serviceIP for Service "web": range is full',
        "reason": "InternalError",
        "details": {"causes": [{"message": 'failed to allocate a serviceIP for Service "web": range is full'}]},
        "code": 500,
    }


def test_more_ranges_help_when_the_first_is_full() -> None:
    held = Held(*(f"10.0.0.{i}" for i in range(1, 7)))
    (address,) = planned(service(), network=SMALL, held=held, more_ranges=("10.1.0.0/24",)).reserve_ips
    assert ip_address(address) in ip_network("10.1.0.0/24")
    wanted = service(clusterIP="10.1.0.9")
    assert planned(wanted, network=SMALL, more_ranges=("10.1.0.0/24",)).reserve_ips == ("10.1.0.9",)


def test_looking_for_an_address_does_not_get_dearer_with_the_number_in_use() -> None:
    held = Held(*(f"10.96.{i}.{j}" for i in range(128) for j in range(256)))
    for seed in range(50):
        planned(service(), held=held, seed=seed)
    assert held.lookups < 50 * 8


def test_an_address_is_recorded_in_its_canonical_form_and_shown_as_asked() -> None:
    obj = service(clusterIP="FD00:96:0::77")
    assert planned(obj).reserve_ips == ("fd00:96::77",)
    assert obj["spec"]["clusterIPs"] == ["FD00:96:0::77"]
    assert obj["spec"]["ipFamilies"] == ["IPv6"]
    assert release(obj).release_ips == ("fd00:96::77",)


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("10.96.0.5", "provided IP is already allocated"),
        ("10.96.0.0", "the provided network does not match the current range"),
        ("10.96.255.255", "the provided network does not match the current range"),
        ("10.97.0.1", "the provided network does not match the current range"),
    ],
)
def test_addresses_that_cannot_be_had(wanted: str, reason: str) -> None:
    with pytest.raises(Invalid) as caught:
        planned(service(clusterIP=wanted), held=Held("10.96.0.5"))
    assert refusal(caught.value) == [
        ("spec.clusterIPs", f'Invalid value: ["{wanted}"]: failed to allocate IP {wanted}: {reason}')
    ]


def test_the_second_address_may_be_what_cannot_be_had() -> None:
    spec = {"clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5", "fd00:97::1"], "ipFamilyPolicy": "RequireDualStack"}
    with pytest.raises(Invalid) as caught:
        planned(service(**spec))
    ((_, message),) = refusal(caught.value)
    assert message.startswith('Invalid value: ["10.96.0.5","fd00:97::1"]: failed to allocate IP fd00:97::1: ')


@pytest.mark.parametrize("name", ["", "a/b", ".."])
def test_no_address_for_a_service_that_cannot_be_referred_to(name: str) -> None:
    obj = service(ipFamilyPolicy="PreferDualStack")
    obj["metadata"]["name"] = name
    with pytest.raises(Invalid) as caught:
        planned(obj)
    ((field, message),) = refusal(caught.value)
    assert field == "spec.clusterIPs"
    assert message.startswith('Invalid value: ["",""]: failed to allocate IP: IPAddress.networking.k8s.io "10.96.')
    assert "spec.parentRef.name: " in message


def test_headless_and_external_names_get_no_address() -> None:
    for obj in (service(clusterIP="None"), service(type="ExternalName", externalName="x.example.com")):
        assert planned(obj) == Allocation()
        assert (release(obj).release_ips, release(obj).release_ports) == ((), ())


def test_one_family_only() -> None:
    single = ServiceNetwork(ranges=("fd00::/112",))
    obj = service(ipFamilyPolicy="PreferDualStack")
    planned(obj, network=single)
    assert obj["spec"]["ipFamilies"] == ["IPv6"]
    selectorless = service(clusterIP="None")
    planned(selectorless, network=single)
    assert selectorless["spec"]["ipFamilies"] == ["IPv6", "IPv4"]
    for spec, expected in (
        (
            {"ipFamilyPolicy": "RequireDualStack"},
            ("spec.ipFamilyPolicy", '"RequireDualStack": this cluster is not configured for dual-stack services'),
        ),
        ({"ipFamilies": ["IPv4"]}, ("spec.ipFamilies[0]", '"IPv4": not configured on this cluster')),
        ({"clusterIP": "10.0.0.1"}, ("spec.clusterIPs[0]", '["10.0.0.1"]: IPv4 is not configured on this cluster')),
    ):
        with pytest.raises(Invalid) as caught:
            planned(service(**spec), network=single)
        assert refusal(caught.value) == [(expected[0], f"Invalid value: {expected[1]}")]


# --- updates ---------------------------------------------------------------------------------------


def test_an_update_keeps_what_it_has() -> None:
    old = service(type="LoadBalancer", externalTrafficPolicy="Local", ipFamilyPolicy="PreferDualStack")
    planned(old)
    new = changed(old, clusterIP=None, clusterIPs=None, healthCheckNodePort=None, ports=[{"port": 81}])
    assert planned(new, old) == Allocation()
    assert new["spec"]["clusterIPs"] == old["spec"]["clusterIPs"]
    assert new["spec"]["ports"][0]["nodePort"] == old["spec"]["ports"][0]["nodePort"]
    assert SERVICE.validate_update(new, old) == []


def test_a_second_family_is_added_and_given_up() -> None:
    old = service()
    planned(old)
    dual = changed(old, ipFamilyPolicy="RequireDualStack")
    (address,) = planned(dual, old).reserve_ips
    assert dual["spec"]["clusterIPs"] == [old["spec"]["clusterIP"], address]
    again = changed(dual, ipFamilyPolicy="SingleStack")
    assert planned(again, dual) == Allocation(release_ips=(address,))
    assert again["spec"]["clusterIPs"] == old["spec"]["clusterIPs"]
    assert again["spec"]["ipFamilies"] == ["IPv4"]


def test_a_second_address_may_be_asked_for() -> None:
    old = service()
    planned(old)
    both = [old["spec"]["clusterIP"], "fd00:96::5"]
    new = changed(old, clusterIPs=both, ipFamilyPolicy="PreferDualStack")
    assert planned(new, old) == Allocation(reserve_ips=("fd00:96::5",))
    assert new["spec"]["clusterIPs"] == both


def test_giving_up_addresses_needs_the_policy() -> None:
    old = service(ipFamilyPolicy="RequireDualStack")
    planned(old)
    with pytest.raises(Invalid) as caught:
        planned(changed(old, clusterIPs=old["spec"]["clusterIPs"][:1], ipFamilies=["IPv4"]), old)
    assert [message.partition(": must")[2] for _, message in refusal(caught.value)] == [
        " be 'SingleStack' to release the secondary cluster IP",
        " be 'SingleStack' to release the secondary IP family",
    ]


def test_prefer_dual_stack_is_left_alone_when_the_cluster_gains_a_family() -> None:
    old = service(ipFamilyPolicy="PreferDualStack")
    planned(old, network=ServiceNetwork(ranges=("10.96.0.0/16",)))
    same = changed(old, selector={"a": "b"})
    assert planned(same, old) == Allocation()
    assert same["spec"]["ipFamilies"] == ["IPv4"]


def test_to_external_name_and_back() -> None:
    old = service(type="NodePort")
    held = planned(old)
    away = changed(old, type="ExternalName", externalName="x.example.com")
    assert planned(away, old) == Allocation(release_ips=held.reserve_ips, release_ports=held.reserve_ports)
    assert SERVICE.validate_update(away, old) == []
    back = changed(away, type="ClusterIP", externalName=None)
    assert len(planned(back, away).reserve_ips) == 1
    assert SERVICE.validate_update(back, away) == []


# --- node ports ------------------------------------------------------------------------------------


def ports(*pairs: tuple[int, str, int]) -> list[Object]:
    return [
        {"name": f"p{i}", "port": number, "protocol": protocol} | ({"nodePort": wanted} if wanted else {})
        for i, (number, protocol, wanted) in enumerate(pairs)
    ]


def node_ports(obj: Object) -> list[int]:
    return [port.get("nodePort", 0) for port in obj["spec"]["ports"]]


def test_ports_of_one_number_share_a_node_port_on_creation() -> None:
    obj = service(type="NodePort", ports=ports((53, "TCP", 0), (53, "UDP", 30053), (80, "TCP", 0)))
    allocation = planned(obj)
    assert node_ports(obj)[:2] == [30053, 30053]
    assert allocation.reserve_ports == (30053, node_ports(obj)[2])
    apart = service(type="NodePort", ports=ports((53, "TCP", 30001), (53, "UDP", 30002)))
    assert planned(apart).reserve_ports == (30001, 30002)


def test_ports_of_one_number_do_not_share_on_update() -> None:
    old = service(type="ClusterIP", ports=ports((53, "TCP", 0), (53, "UDP", 0)))
    planned(old)
    new = changed(old, type="NodePort")
    assert len(set(planned(new, old).reserve_ports)) == 2


def test_node_ports_that_cannot_be_had() -> None:
    for wanted, reason in (
        (80, "provided port is not in the valid range. The range of valid ports is 30000-32767"),
        (30005, "provided port is already allocated"),
    ):
        with pytest.raises(Invalid) as caught:
            planned(service(type="NodePort", ports=ports((1, "TCP", 0), (2, "TCP", wanted))), held=Held(ports=(30005,)))
        assert refusal(caught.value) == [("spec.ports[1].nodePort", f"Invalid value: {wanted}: {reason}")]


def test_when_no_node_port_is_left() -> None:
    obj = service(type="NodePort", ports=ports(*((i, "TCP", 0) for i in range(1, 5))))
    assert sorted(planned(obj, network=SMALL).reserve_ports) == [30000, 30001, 30002, 30003]
    with pytest.raises(InternalError, match="failed to allocate a nodePort: range is full"):
        planned(service(type="NodePort"), network=SMALL, held=Held(ports=(30000, 30001, 30002, 30003)))


def test_a_balancer_may_do_without_node_ports() -> None:
    obj = service(
        type="LoadBalancer", allocateLoadBalancerNodePorts=False, ports=ports((80, "TCP", 0), (81, "TCP", 30001))
    )
    assert planned(obj).reserve_ports == (30001,)
    assert node_ports(obj) == [0, 30001]
    new = changed(obj, allocateLoadBalancerNodePorts=True)
    assert len(planned(new, obj).reserve_ports) == 1


def test_node_ports_move_and_are_released() -> None:
    old = service(type="NodePort", ports=ports((80, "TCP", 30001), (81, "TCP", 30002)))
    planned(old)
    moved = changed(old, ports=ports((80, "TCP", 30002), (81, "TCP", 30003)))
    held = Held(ports=(30001, 30002))
    assert planned(moved, old, held=held) == Allocation(reserve_ports=(30003,), release_ports=(30001,))
    gone = changed(old, type="ClusterIP")
    assert planned(gone, old, held=held) == Allocation(release_ports=(30001, 30002))
    assert node_ports(gone) == [0, 0]


def test_one_node_port_for_two_ports_of_a_protocol_on_update_is_an_error_without_a_reason() -> None:
    old = service(type="NodePort", ports=ports((80, "TCP", 30001), (81, "TCP", 30002)))
    planned(old)
    with pytest.raises(ApiError) as caught:
        planned(changed(old, ports=ports((80, "TCP", 30009), (81, "TCP", 30009))), old)
    assert status(caught.value) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "duplicate nodePort: {TCP 30009}",
        "code": 500,
    }


def test_health_check_ports_come_and_go() -> None:
    old = service(type="LoadBalancer")
    planned(old)
    local = changed(old, externalTrafficPolicy="Local")
    (port,) = planned(local, old, held=Held(ports=tuple(node_ports(old)))).reserve_ports
    assert local["spec"]["healthCheckNodePort"] == port
    assert release(local).release_ports == (*node_ports(local), port)
    back = changed(local, externalTrafficPolicy="Cluster")
    assert planned(back, local) == Allocation(release_ports=(port,))
    assert "healthCheckNodePort" not in back["spec"]


def test_a_health_check_port_that_is_taken_is_an_internal_error() -> None:
    obj = service(type="LoadBalancer", externalTrafficPolicy="Local", healthCheckNodePort=30001)
    with pytest.raises(InternalError, match="requested HealthCheck NodePort 30001: provided port is already allocated"):
        planned(obj, held=Held(ports=(30001,)))


# --- dry runs --------------------------------------------------------------------------------------


def test_a_dry_run_shows_values_and_holds_none() -> None:
    obj = service(type="LoadBalancer", externalTrafficPolicy="Local", ipFamilyPolicy="PreferDualStack")
    assert planned(obj, dry_run=True) == Allocation()
    assert obj["spec"]["clusterIPs"] == ["10.96.0.0", "fd00:96::"]
    assert node_ports(obj) == [32769]
    assert obj["spec"]["healthCheckNodePort"] == 32770
    assert SERVICE.validate(obj) == []


def test_a_dry_run_looks_only_at_the_range_of_addresses_and_only_at_the_use_of_ports() -> None:
    held = Held("10.96.0.5", ports=(30001,))
    obj = service(clusterIP="10.96.0.5", type="NodePort", ports=ports((1, "TCP", 80), (2, "TCP", 0)))
    planned(obj, held=held, dry_run=True)
    assert node_ports(obj) == [80, 81]
    with pytest.raises(Invalid, match=r"the provided IP \(10.97.0.1\) is not in the valid range"):
        planned(service(clusterIP="10.97.0.1"), dry_run=True)
    with pytest.raises(Invalid, match="provided port is already allocated"):
        planned(service(type="NodePort", ports=ports((1, "TCP", 30001))), held=held, dry_run=True)


# --- settings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "complaint"),
    [
        ({"ranges": ()}, "one, or one of each IP family, is needed, not 0"),
        ({"ranges": ("10.0.0.0/8",) * 3}, "not 3"),
        ({"ranges": ("x",)}, "service range x: "),
        ({"ranges": ("10.0.0.1/24",)}, "service range 10.0.0.1/24: .*host bits set"),
        ({"ranges": ("10.0.0.0/30",)}, "too small, at least 8 addresses"),
        ({"ranges": ("fd00::/63",)}, "too large, an IPv6 prefix must have 64 bits or more"),
        ({"ranges": ("10.0.0.0/24", "10.1.0.0/24")}, "already a range of IPv4"),
        ({"node_ports": (32767, 30000)}, "node ports 32767-30000"),
        ({"node_ports": (0, 10)}, "node ports 0-10"),
    ],
)
def test_networks_that_services_cannot_live_on(network: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ServiceNetwork(**network)
