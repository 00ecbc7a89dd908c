"""Which endpoints can take a connection, and which takes the next."""

from __future__ import annotations

import msgspec

from seamark.forwarding.backends import Backend, InTurn, Sticky, of_pods, of_port
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service


def service(**port):
    return msgspec.convert(
        {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": [{"port": 80, **port}]}}, Service
    )


def slice_of(endpoints, *, family="IPv4", **port):
    return msgspec.convert(
        {
            "metadata": {"name": family, "namespace": "shop"},
            "addressType": family,
            "endpoints": endpoints,
            "ports": [{"port": 8080, "protocol": "TCP", **port}],
        },
        EndpointSlice,
    )


def pod(name, *, phase="Running", ready="True", created="2026-01-01T00:00:00Z", deleted=None, ports=()):
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "shop",
                "creationTimestamp": created,
                **({"deletionTimestamp": deleted} if deleted else {}),
            },
            "spec": {"containers": [{"ports": list(ports)}]},
            "status": {"phase": phase, "podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": ready}]},
        },
        Pod,
    )


def backends(made, *slices):
    return of_port(made, made.spec.ports[0], slices)


def test_ready_endpoints_with_the_ports_name_are_backends():
    listed = slice_of(
        [
            {"addresses": ["10.0.0.2"], "targetRef": {"kind": "Pod", "name": "web-2", "uid": "u2"}},
            {"addresses": ["10.0.0.1"], "conditions": {"ready": True}, "hostname": "one"},
            {"addresses": ["10.0.0.3"], "conditions": {"ready": False}},
            {"addresses": []},
        ],
        name="http",
    )
    assert backends(service(name="http"), listed) == [
        Backend("10.0.0.1", 8080, None, "one"),
        Backend("10.0.0.2", 8080, ("shop", "web-2", "u2")),
    ]
    assert backends(service(name="other"), listed) == []
    assert backends(service(name="http", protocol="UDP"), listed) == []


def test_an_endpoint_in_two_slices_or_families_is_one_backend():
    one = {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "web-1", "uid": "u1"}}
    six = {"addresses": ["fd00::1"], "targetRef": {"kind": "Pod", "name": "web-1", "uid": "u1"}}
    found = backends(service(), slice_of([one]), slice_of([one]), slice_of([six], family="IPv6"))
    assert [backend.address for backend in found] == ["10.0.0.1"]


def test_of_pods_the_oldest_ready_one_comes_first_and_one_that_is_not_ready_is_better_than_none():
    old, new = pod("old"), pod("new", created="2026-01-02T00:00:00Z")
    starting, ending = pod("starting", ready="False"), pod("ending", deleted="2026-01-01T00:00:00Z")
    found = of_pods([ending, new, starting, old, pod("done", phase="Succeeded")], 80)
    assert [backend.pod[1] for backend in found] == ["old", "new"]
    assert [backend.pod[1] for backend in of_pods([ending, starting], 80)] == ["starting"]


def test_a_port_of_pods_can_be_named():
    named = pod("named", ports=[{"name": "http", "containerPort": 8080}, {"name": "dns", "protocol": "UDP"}])
    assert [backend.port for backend in of_pods([named, pod("plain")], "http")] == [8080]
    assert of_pods([named], "dns") == []


def test_sticky_keeps_to_one_and_in_turn_to_none():
    one, two, three = (Backend(f"10.0.0.{number}", 80) for number in (1, 2, 3))
    sticky = Sticky()
    assert sticky.order([one, two]) == [one, two]
    sticky.current = two
    assert sticky.order([one, two]) == [two, one]
    assert sticky.order([one, three]) == [one, three]
    turn = InTurn()
    assert {tuple(turn.order([one, two, three])) for _ in range(3)} == {
        (one, two, three),
        (two, three, one),
        (three, one, two),
    }
    assert turn.order([]) == []


def test_a_backend_is_named_for_people():
    assert str(Backend("10.0.0.1", 80, ("shop", "web-1", "u"))) == "Pod web-1"
    assert (str(Backend("10.0.0.1", 80)), str(Backend("fd00::1", 80))) == ("10.0.0.1", "[fd00::1]")
