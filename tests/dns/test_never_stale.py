"""The zone is updated per change, and replies are cached as bytes: both must always equal a fresh computation."""

from __future__ import annotations

from typing import Any

import dns.message
from asking import put, query_packet, remove, respond, responder_over
from hypothesis import example, given, settings
from hypothesis import strategies as st
from watched_cluster import endpoint, namespace, service, slice_of

from seamark.dns.config import ZoneConfig
from seamark.dns.zone.records import Type
from seamark.dns.zone.state import SERIAL, ClusterZone
from virtual_time import VirtualClock

_SERVICES = ("a", "b")
_ADDRESSES = ("10.1.0.1", "10.1.0.2", "fd00::1")
_HOSTNAMES = (None, "x", "y")

_endpoints = st.lists(
    st.builds(
        endpoint, st.sampled_from(_ADDRESSES), st.sampled_from(_HOSTNAMES), ready=st.sampled_from([True, False, None])
    ),
    max_size=4,
)
_objects = st.one_of(
    st.builds(service, st.sampled_from(_SERVICES), st.sampled_from(["None", "10.96.0.1", "10.96.0.2", "fd00::1"])),
    st.builds(
        lambda name, target: service(name, "", type="ExternalName", externalName=target),
        st.sampled_from(_SERVICES),
        st.sampled_from([f"{name}.default.svc.cluster.local" for name in (*_SERVICES, "nope")]),
    ),
    st.builds(
        lambda name, of, found: slice_of(of, *found, name=name),
        st.sampled_from(["s1", "s2"]),
        st.sampled_from(_SERVICES),
        _endpoints,
    ),
    st.builds(
        lambda name, address, phase: {
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "status": {"podIP": address, "phase": phase},
        },
        st.sampled_from(["p", "q"]),
        st.sampled_from(_ADDRESSES),
        st.sampled_from(["Running", "Succeeded"]),
    ),
    st.just(namespace("default")),
)
_changes = st.lists(st.tuples(st.booleans(), _objects), min_size=1, max_size=25)

_NAMES = [
    *(
        f"{label}{name}.default.svc.cluster.local"
        for name in _SERVICES
        for label in ("", "x.", "10-1-0-1.", "_http._tcp.")
    ),
    "10-1-0-1.default.pod.cluster.local",
    "default.svc.cluster.local",
    "cluster.local",
    "1.0.1.10.in-addr.arpa",
    "1.0.96.10.in-addr.arpa",
    "1." + "0." * 27 + "d.f.ip6.arpa",
]
_PACKETS = [query_packet(name, kind) for name in _NAMES for kind in (Type.A, Type.AAAA, Type.SRV, Type.PTR, Type.SOA)]
_CONFIG = ZoneConfig(pods="verified", ignore_empty_services=True)


def _told(reply: bytes | None) -> list[str]:
    """A reply without the order of its records.  Read, because names are shortened by what comes before them."""
    assert reply is not None
    return sorted(dns.message.from_wire(reply, one_rr_per_rrset=True).to_text().splitlines())


@settings(max_examples=30, deadline=None)
@example(
    [
        (False, slice_of("a", name="s2")),
        (False, slice_of("a", endpoint("10.1.0.1", "x"), name="s1")),
        (False, slice_of("a", endpoint("10.1.0.1"), name="s2")),
    ],
    _PACKETS[:1],
)
@given(_changes, st.lists(st.sampled_from(_PACKETS), min_size=1, max_size=30))
def test_kept_answers_are_those_of_a_fresh_start(
    changes: list[tuple[bool, dict[str, Any]]], asked: list[bytes]
) -> None:
    clock = VirtualClock(1000.0)
    zone = ClusterZone(clock=clock)
    responder = responder_over(zone, _CONFIG)
    present: dict[tuple[str, str], dict[str, Any]] = {}
    for number, (gone, obj) in enumerate(changes):
        clock.now += number % 3 / 2  # several changes share a second, and so a serial
        for packet in (*asked, *asked):
            respond(responder, packet)
        key = (obj["kind"], obj["metadata"]["name"])
        if gone:
            touched = remove(zone, present.pop(key, obj))
        else:
            touched = put(zone, obj)
            present[key] = obj
        responder.udp.ready.forget(touched)
    fresh = ClusterZone(clock=VirtualClock(float(zone.serial)))
    for obj in present.values():
        put(fresh, obj)
    fresh.serial = zone.serial
    anew = responder_over(fresh, _CONFIG)
    for packet in _PACKETS:
        assert _told(respond(responder, packet)) == _told(respond(anew, packet))


@settings(max_examples=30, deadline=None)
@given(_changes)
def test_nothing_is_left_of_what_is_gone(changes: list[tuple[bool, dict[str, Any]]]) -> None:
    zone = ClusterZone(clock=VirtualClock(1000.0))
    for gone, obj in changes:
        (remove if gone else put)(zone, obj)
    for _, obj in changes:
        remove(zone, obj)
    assert not list(zone.addresses())
    left = {name: value for name, value in vars(zone).items() if isinstance(value, dict | set) and value}
    assert left == {}


def test_one_changed_endpoint_touches_its_own_records_only() -> None:
    zone = ClusterZone(clock=VirtualClock(1000.0))
    many = [endpoint(f"10.1.0.{n}", f"web-{n}") for n in range(1, 101)]
    put(zone, slice_of("hl", *many))
    many[41] = endpoint("10.1.0.42", "web-42", ready=False)
    assert put(zone, slice_of("hl", *many)) == {
        ("endpoint", "default", "hl", "web-42"),
        ("endpoints", "default", "hl"),
        ("address", bytes([10, 1, 0, 42])),
    }


def test_a_change_of_no_consequence_touches_nothing() -> None:
    zone = ClusterZone(clock=VirtualClock(1000.0))
    put(zone, slice_of("hl", endpoint("10.1.0.1", pod="a")))
    put(zone, service("web", "10.96.0.1"))
    assert put(zone, slice_of("hl", endpoint("10.1.0.1", pod="b"))) == set()
    assert put(zone, service("web", "10.96.0.1")) == set()


def test_the_serial_is_the_time_of_the_last_change() -> None:
    clock = VirtualClock(1000.0)
    zone = ClusterZone(clock=clock)
    assert SERIAL in put(zone, service("web", "10.96.0.1"))
    clock.now = 1000.9
    assert SERIAL not in put(zone, service("web", "10.96.0.2"))
    clock.now = 2000.0
    put(zone, service("web", "10.96.0.2"))
    assert zone.serial == 1000, "what changes nothing does not move the serial"


def test_other_answers_stay_when_one_changes() -> None:
    zone = ClusterZone(clock=VirtualClock(1000.0))
    put(zone, namespace("default"))
    put(zone, service("hl", "None"))
    put(zone, slice_of("hl", endpoint("10.1.0.1", "x"), endpoint("10.1.0.2", "y")))
    responder = responder_over(zone)
    x, y, all_of_them = (query_packet(f"{name}.default.svc.cluster.local", Type.A) for name in ("x.hl", "y.hl", "hl"))
    for packet in (x, y, all_of_them) * 2:
        respond(responder, packet)
    ready = responder.udp.ready
    assert set(ready.plain) == {x[2:], y[2:], all_of_them[2:]}
    ready.forget(put(zone, slice_of("hl", endpoint("10.1.0.1", "x"))))
    assert set(ready.plain) == {x[2:]}
