from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.dns.zone import names
from seamark.dns.zone.names import (
    Apex,
    BranchName,
    NamespaceName,
    Nowhere,
    PodName,
    ReverseName,
    ServerName,
    ServiceName,
    VersionName,
    labels_of,
    parse,
)

ZONE = labels_of("cluster.local")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("cluster.local", Apex()),
        ("svc.cluster.local", BranchName("svc")),
        ("pod.cluster.local", BranchName("pod")),
        ("a.svc.cluster.local", NamespaceName("svc", "a")),
        ("a.pod.cluster.local", NamespaceName("pod", "a")),
        ("web.a.svc.cluster.local", ServiceName("a", "web")),
        ("svc.svc.svc.cluster.local", ServiceName("svc", "svc")),
        ("e.web.a.svc.cluster.local", ServiceName("a", "web", endpoint="e")),
        ("_http._tcp.web.a.svc.cluster.local", ServiceName("a", "web", port="http", protocol="tcp")),
        ("http.tcp.web.a.svc.cluster.local", ServiceName("a", "web", port="http", protocol="tcp")),
        ("_._tcp.web.a.svc.cluster.local", ServiceName("a", "web", port="", protocol="tcp")),
        ("1-2-3-4.a.pod.cluster.local", PodName("a", "1-2-3-4")),
        ("y.x.1-2-3-4.a.pod.cluster.local", PodName("a", "1-2-3-4")),
        ("dns-version.cluster.local", VersionName()),
        ("ns.dns.cluster.local", ServerName()),
        ("WEB.a.SVC.cluster.LOCAL.", ServiceName("a", "web")),
    ],
)
def test_shapes(name: str, shape: names.Shape) -> None:
    assert parse(labels_of(name), ZONE) == shape


@pytest.mark.parametrize(
    "name", ["foo.cluster.local", "x._http._tcp.web.a.svc.cluster.local", "z.y.x.1-2-3-4.a.pod.cluster.local"]
)
def test_what_is_none_of_the_shapes_says_why(name: str) -> None:
    shape = parse(labels_of(name), ZONE)
    assert isinstance(shape, Nowhere)
    assert shape.why


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("4.3.2.1.in-addr.arpa", "1.2.3.4"),
        ("04.3.2.1.in-addr.arpa", None),
        ("3.2.1.in-addr.arpa", None),
        ("5.4.3.2.1.in-addr.arpa", None),
        ("1." + "0." * 23 + "8.b.d.0.1.0.0.2.ip6.arpa", "2001:db8::1"),
        # What is left over of the fours is not looked at, as in CoreDNS.
        ("x.1." + "0." * 23 + "8.b.d.0.1.0.0.2.ip6.arpa", "2001:db8::1"),
        ("0." * 20 + "8.b.d.0.1.0.0.2.ip6.arpa", None),
    ],
)
def test_reverse_names(name: str, address: str | None) -> None:
    labels = labels_of(name)
    shape = parse(labels, labels[-2:])
    if address is None:
        assert isinstance(shape, Nowhere)
    else:
        assert shape == ReverseName(ipaddress.ip_address(address).packed)


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        (("4.3", "2", "1", "in-addr", "arpa"), ("in-addr", "arpa")),
        (("0", "0", "0", "0.0.0.0", *"0000", *"0000", *"0000", *"0000", *"0000", "ip6", "arpa"), ("ip6", "arpa")),
        (("1.2.3.4", "a", "pod", *ZONE), ZONE),
        (("--1.2.3.4", "a", "pod", *ZONE), ZONE),
    ],
)
def test_a_dot_inside_a_label_parts_nothing(name: names.Labels, zone: names.Labels) -> None:
    assert isinstance(parse(name, zone), Nowhere)


@pytest.mark.parametrize(
    ("pod", "address"),
    [("1-2-3-4", "1.2.3.4"), ("fd00--1", "fd00::1"), ("1--2-3", "1::2:3"), ("1-2-3-4-5", "1:2:3:4:5")],
)
def test_dashes_are_dots_or_colons(pod: str, address: str) -> None:
    assert PodName("a", pod).address == address


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("1.2.3.4", 4),
        ("fd00::1", 16),
        ("::ffff:1.2.3.4", 4),
        ("::ffff:102:304", 4),
        ("01.2.3.4", None),
        ("1.2.3", None),
        ("1.2.3.4 ", None),
        ("fe80::1%eth0", None),
        ("web", None),
        ("", None),
        ("1.2.3.\0", None),
    ],
)
def test_addresses_are_read_as_go_does(text: str, length: int | None) -> None:
    packed = names.parse_address(text)
    assert (packed and len(packed)) == length


@given(st.ip_addresses())
def test_reverse_labels_lead_back(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    labels = names.reverse_labels(address.packed)
    assert ".".join(labels) == address.reverse_pointer
    if getattr(address, "ipv4_mapped", None) is None:
        assert names.reverse_address(labels) == address.packed


@given(st.ip_addresses(v=6))
def test_a_dashed_address_is_a_label(address: ipaddress.IPv6Address) -> None:
    assert not names.dashed(str(address)).endswith("-")


@given(st.lists(st.text(max_size=10), max_size=12), st.sampled_from([ZONE, ("in-addr", "arpa"), ("ip6", "arpa"), ()]))
def test_every_name_has_a_shape(labels: list[str], zone: names.Labels) -> None:
    assert parse((*labels, *zone), zone) is not None
