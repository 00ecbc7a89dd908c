"""Health checks of hand-made members: what annotations mean, thresholds, and what is written."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.rules import probing
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import EndpointSlice
from seamark.rules.probing import Health, Probe, Target

A, B = Target("10.0.0.1", 8080), Target("10.0.0.2", 8080)


def slice_of(*endpoints, ports=({"name": "web", "port": 8080},), labels=None, **annotations):
    return msgspec.convert(
        {
            "metadata": {"name": "s", "resourceVersion": "7", "labels": labels or {}, "annotations": annotations},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": conditions} for address, conditions in endpoints],
            "ports": list(ports),
        },
        EndpointSlice,
    )


def endpoints_of(*subsets):
    made = [
        {
            "addresses": [{"ip": each} for each in ready],
            "notReadyAddresses": [{"ip": each} for each in unready],
            "ports": [{"name": "web", "port": port}],
        }
        for ready, unready, port in subsets
    ]
    return msgspec.convert({"metadata": {"name": "e", "resourceVersion": "7"}, "subsets": made}, Endpoints)


@pytest.mark.parametrize(
    ("text", "probe"),
    [
        ("tcp", Probe("tcp")),
        ("tcp://:5432", Probe("tcp", port="5432")),
        ("http", Probe("http")),
        ("http://:web/healthz?full=1", Probe("http", port="web", path="/healthz?full=1")),
        ("https://shop.example.com:8443", Probe("https", host="shop.example.com", port="8443")),
        ("http://[fd00::1]/", Probe("http", host="[fd00::1]", path="/")),
        ("grpc://:50051/orders.v1.Orders", Probe("grpc", port="50051", path="/orders.v1.Orders")),
        (
            "exec pg_isready -h $ADDRESS -d 'my db'",
            Probe("exec", command=("pg_isready", "-h", "$ADDRESS", "-d", "my db")),
        ),
    ],
)
def test_a_probe_is_one_annotation(text, probe):
    assert probing.parse({"seamark.dev/probe": text}) == (probe, ())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a probe such as"),
        ("ftp://:21", "is not a probe such as"),
        ("http://:8080/a b", "is not a probe such as"),
        ("http://:8080/a\r\nX: y", "is not a probe such as"),
        ("http://:70000", "port 70000 is not between 1 and 65535"),
        ("tcp://:80/path", "a tcp probe has no path"),
        ("exec ", "exec needs a command"),
        ("exec 'unclosed", "No closing quotation"),
    ],
)
def test_a_probe_that_is_not_valid_is_not_used(text, says):
    probe, [complaint] = probing.parse({"seamark.dev/probe": text})
    assert probe is None
    assert complaint.startswith("annotation seamark.dev/probe: ")
    assert says in complaint


def test_times_and_thresholds():
    annotations = {
        "seamark.dev/probe": "tcp",
        "seamark.dev/probe-interval": "1m30s",
        "seamark.dev/probe-timeout": "250ms",
        "seamark.dev/probe-success-threshold": "2",
        "seamark.dev/probe-failure-threshold": "5",
    }
    assert probing.parse(annotations) == (Probe("tcp", interval=90, timeout=0.25, successes=2, failures=5), ())


def test_everything_that_is_wrong_is_told_at_once():
    annotations = {
        "seamark.dev/probe": "carrier pigeon",
        "seamark.dev/probe-interval": "0s",
        "seamark.dev/probe-failure-threshold": "-1",
        "seamark.dev/probe-colour": "blue",
    }
    probe, complaints = probing.parse(annotations)
    assert probe is None
    assert [each.split(":")[0] for each in complaints] == [
        "annotation seamark.dev/probe",
        "unknown annotation seamark.dev/probe-colour",
        "annotation seamark.dev/probe-failure-threshold",
        "annotation seamark.dev/probe-interval",
    ]


def test_without_the_annotation_nothing_is_probed():
    assert probing.parse({"seamark.dev/probe-interval": "1s", "seamark.dev/simulated": "x"}) == (None, ())


@given(st.text())
def test_no_text_breaks_the_parser(text):
    probe, complaints = probing.parse({"seamark.dev/probe": text, "seamark.dev/probe-interval": text})
    assert probe is None
    assert complaints


def test_what_controllers_write_is_not_probed():
    assert probing.hand_made(slice_of())
    for owner in ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"):
        assert not probing.hand_made(slice_of(labels={"endpointslice.kubernetes.io/managed-by": owner}))
    assert probing.hand_made(endpoints_of())


# --- targets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("port", "found"), [("", 8080), ("web", 8080), ("admin", 9090), ("7000", 7000), ("nothing", None)]
)
def test_the_port_is_a_number_or_a_name_or_the_first_of_tcp(port, found):
    ports = (
        {"name": "dns", "port": 53, "protocol": "UDP"},
        {"name": "web", "port": 8080},
        {"name": "admin", "port": 9090},
    )
    members, complaints = probing.members(Probe("tcp", port=port), slice_of(("10.0.0.1", {}), ports=ports))
    assert list(members) == ([Target("10.0.0.1", found)] if found else [])
    assert bool(complaints) == (found is None)


def test_a_command_needs_no_port():
    found, complaints = probing.members(Probe("exec", command=("true",)), slice_of(("10.0.0.1", {}), ports=()))
    assert (list(found), complaints) == ([Target("10.0.0.1", 0)], ())


def test_members_bring_what_the_object_says_of_them():
    terminating = {"ready": False, "serving": True, "terminating": True}
    found, _ = probing.members(
        Probe("tcp"), slice_of(("10.0.0.1", {}), ("10.0.0.2", {"ready": False}), ("10.0.0.3", terminating))
    )
    assert list(found.values()) == [None, False, True]
    found, _ = probing.members(Probe("tcp"), endpoints_of((["10.0.0.1"], ["10.0.0.2"], 80), (["10.0.0.1"], [], 81)))
    assert found == {Target("10.0.0.1", 80): True, Target("10.0.0.2", 80): False, Target("10.0.0.1", 81): True}


# --- thresholds ------------------------------------------------------------------------------------


def test_so_many_results_in_a_row_change_a_member():
    probe, health, seen = Probe("tcp", successes=2, failures=3), Health(True), []
    for result in (0, 0, 1, 0, 0, 0, 1, 0, 1, 1):
        health = health.after(bool(result), probe)
        seen.append(int(health.healthy))
    assert seen == [1, 1, 1, 1, 1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("result", [True, False])
def test_the_first_result_decides_about_a_member_without_a_condition(result):
    assert Health(None).after(result, Probe("tcp", successes=5, failures=5)) == Health(result)


@given(st.lists(st.booleans()), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_a_member_changes_only_after_its_threshold(results, successes, failures, start):
    probe, health = Probe("tcp", successes=successes, failures=failures), Health(start)
    for place, result in enumerate(results):
        before, health = health.healthy, health.after(result, probe)
        needed = successes if result else failures
        changes = result != before and results[max(0, place - needed + 1) : place + 1] == [result] * needed
        assert (health.healthy != before) <= changes


# --- what is written -------------------------------------------------------------------------------

VERSION = {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}


def test_a_slice_is_patched_where_it_is_wrong():
    written = slice_of(("10.0.0.1", {"ready": True}), ("10.0.0.2", {"ready": True, "serving": True}))
    assert probing.changes(Probe("tcp"), written, {A: True, B: False}) == [
        VERSION,
        {"op": "add", "path": "/endpoints/1/conditions", "value": {"ready": False, "serving": False}},
    ]
    assert probing.changes(Probe("tcp"), written, {A: True}) == []


def test_an_endpoint_that_ends_is_never_made_ready():
    ending = slice_of(("10.0.0.1", {"ready": False, "serving": True, "terminating": True}))
    assert probing.changes(Probe("tcp"), ending, {A: True}) == []
    [_, edit] = probing.changes(Probe("tcp"), ending, {A: False})
    assert edit["value"] == {"ready": False, "serving": False, "terminating": True}


def test_addresses_of_endpoints_move_between_the_lists():
    written = endpoints_of((["10.0.0.1", "10.0.0.2"], ["10.0.0.3"], 8080), (["10.0.0.1"], [], 9090))
    [version, edit] = probing.changes(Probe("tcp"), written, {A: False, Target("10.0.0.3", 8080): True})
    assert version == VERSION
    assert edit["path"] == "/subsets"
    first, second = edit["value"]
    assert [each["ip"] for each in first["addresses"]] == ["10.0.0.2", "10.0.0.3"]
    assert [each["ip"] for each in first["notReadyAddresses"]] == ["10.0.0.1"]
    assert second == msgspec.to_builtins(written.subsets[1])
    assert probing.changes(Probe("tcp"), written, {A: True, B: True}) == []


def test_a_target_shows_brackets_around_ipv6():
    assert [str(each) for each in (A, Target("fd00::1", 80), Target("fd00::1", 0))] == [
        "10.0.0.1:8080",
        "[fd00::1]:80",
        "fd00::1",
    ]
