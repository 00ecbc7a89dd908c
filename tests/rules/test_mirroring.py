"""Endpoints written by hand, and the slices that mirror them."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import Slices, service

from seamark.rules import mirroring
from seamark.rules.objects.endpoints import Endpoints
from seamark.rules.objects.endpointslice import Hints, HintTarget

EXTERNAL = service("ext", selector={})


def endpoints(*subsets, uid="ep-1", labels=None, annotations=None, **meta):
    body = {
        "metadata": {
            "name": "ext",
            "namespace": "default",
            "uid": uid,
            "labels": labels or {},
            "annotations": annotations or {},
            **meta,
        },
        "subsets": list(subsets),
    }
    return msgspec.convert(body, Endpoints)


def subset(*ips, waiting=(), ports=({"port": 80, "protocol": "TCP"},)):
    return {
        "addresses": [{"ip": ip} for ip in ips],
        "notReadyAddresses": [{"ip": ip} for ip in waiting],
        "ports": list(ports),
    }


def mirrored(written, slices=None, web=EXTERNAL):
    slices = Slices() if slices is None else slices
    plan = mirroring.plan(web, written, slices)
    list(slices.carry_out(plan.changes))
    assert not mirroring.plan(web, written, slices).changes
    return slices, plan


def addresses(slices):
    return sorted(ip for each in slices for e in each.endpoints for ip in e.addresses)


def test_ready_and_not_ready():
    slices, _ = mirrored(endpoints(subset("10.0.0.1", waiting=("10.0.0.2",))))
    [each] = slices
    assert [(e.addresses, e.conditions.ready) for e in each.endpoints] == [
        (("10.0.0.1",), True),
        (("10.0.0.2",), False),
    ]
    assert each.endpoints[0].conditions.serving is None
    assert each.metadata.generate_name == "ext-"
    [owner] = each.metadata.owner_references
    assert (owner.kind, owner.uid) == ("Endpoints", "ep-1")


def test_families_and_ports_make_slices():
    written = endpoints(subset("10.0.0.1", "fd00::1"), subset("10.0.0.1", ports=({"name": "x", "port": 81},)))
    slices, _ = mirrored(written)
    assert sorted((each.address_type, len(each.endpoints)) for each in slices) == [
        ("IPv4", 1),
        ("IPv4", 1),
        ("IPv6", 1),
    ]


def test_labels_and_annotations():
    written = endpoints(
        subset("10.0.0.1"),
        labels={"a": "b", "kubernetes.io/service-name": "other"},
        annotations={
            "note": "x",
            "endpoints.kubernetes.io/last-change-trigger-time": "t",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        },
    )
    slices, _ = mirrored(written)
    [each] = slices
    assert each.metadata.annotations == {"note": "x"}
    assert each.metadata.labels == {
        "a": "b",
        "kubernetes.io/service-name": "ext",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    slices, plan = mirrored(endpoints(subset("10.0.0.1"), labels={"a": "c"}), slices)
    assert len(plan.changes.update) == 1


@pytest.mark.parametrize(
    ("web", "written"),
    [
        (None, endpoints(subset("10.0.0.1"))),
        (service("ext"), endpoints(subset("10.0.0.1"))),
        (EXTERNAL, None),
        (EXTERNAL, endpoints(subset("10.0.0.1"), labels={"endpointslice.kubernetes.io/skip-mirror": "true"})),
        (EXTERNAL, endpoints(subset("10.0.0.1"), annotations={"control-plane.alpha.kubernetes.io/leader": "{}"})),
        (EXTERNAL, endpoints()),
    ],
)
def test_where_nothing_is_mirrored_nothing_is_left(web, written):
    slices, _ = mirrored(endpoints(subset("10.0.0.1")))
    list(slices.carry_out(mirroring.plan(web, written, slices).changes))
    assert list(slices) == []


def test_external_name_services_are_mirrored_too():
    slices, _ = mirrored(endpoints(subset("10.0.0.1")), web=service("ext", selector={}, type="ExternalName"))
    assert addresses(slices) == ["10.0.0.1"]


def test_other_ports_are_written_over_the_old_slice():
    slices, _ = mirrored(endpoints(subset("10.0.0.1")))
    slices, plan = mirrored(endpoints(subset("10.0.0.1", ports=({"port": 81},))), slices)
    assert (len(plan.changes.create), len(plan.changes.update), len(plan.changes.delete)) == (0, 1, 0)


def test_recreated_endpoints_force_a_rewrite():
    slices, _ = mirrored(endpoints(subset("10.0.0.1")))
    slices, plan = mirrored(endpoints(subset("10.0.0.1"), uid="ep-2"), slices)
    assert plan.changes.update[0].metadata.owner_references[0].uid == "ep-2"


def test_hints_that_somebody_gave_a_mirror_stay():
    written = endpoints(subset("10.0.0.1"))
    slices, _ = mirrored(written)
    [each] = slices
    hinted = msgspec.structs.replace(each.endpoints[0], hints=Hints(for_zones=(HintTarget("here"),)))
    slices.update(msgspec.structs.replace(each, endpoints=(hinted,)))
    assert not mirroring.plan(EXTERNAL, written, slices).changes


def test_a_slice_on_its_way_out_still_mirrors():
    written = endpoints(subset("10.0.0.1"))
    slices, _ = mirrored(written)
    [each] = slices
    going = msgspec.structs.replace(each.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    slices.update(msgspec.structs.replace(each, metadata=going))
    assert not mirroring.plan(EXTERNAL, written, slices).changes


def test_endpoints_being_deleted_get_no_new_slices():
    plan = mirroring.plan(EXTERNAL, endpoints(subset("10.0.0.1"), deletionTimestamp="now"), [])
    assert not plan.changes


def test_too_many_addresses():
    many = [f"10.0.{i // 250}.{i % 250}" for i in range(1100)]
    slices, plan = mirrored(endpoints(subset(*many[:900], waiting=many[900:])))
    [each] = slices
    assert len(each.endpoints) == 1000
    assert sum(e.ready for e in each.endpoints) == 900
    [note] = plan.notes
    assert note.reason == "TooManyAddressesToMirror"
    assert note.message.endswith("100 addresses were skipped")


def test_what_is_no_address_is_skipped_and_told():
    slices, plan = mirrored(endpoints(subset("010.0.0.1", "nonsense")))
    assert addresses(slices) == ["10.0.0.1"]
    assert [(n.reason, n.message) for n in plan.notes] == [
        ("InvalidIPAddress", "Skipped 1 invalid IP addresses when mirroring to EndpointSlices")
    ]


ips = st.lists(st.sampled_from([f"10.0.0.{i}" for i in range(6)] + [f"fd00::{i}" for i in range(3)]), max_size=5)
subsets = st.builds(
    lambda ready, waiting, ports: subset(*ready, waiting=waiting, ports=[{"name": str(p), "port": p} for p in ports]),
    ips,
    ips,
    st.sets(st.integers(1, 3), max_size=2),
)


@given(st.lists(st.lists(subsets, max_size=3), min_size=1, max_size=4))
@settings(max_examples=80, deadline=None)
def test_whatever_came_before_the_mirror_is_complete(history):
    slices = Slices()
    for number, written in enumerate(history):
        mirrored(endpoints(*written, labels={"n": str(number // 2)}), slices)
    fresh, _ = mirrored(endpoints(*history[-1], labels={"n": str((len(history) - 1) // 2)}))

    def content(found):
        return sorted((each.address_type, each.ports, sorted(map(repr, each.endpoints))) for each in map(plain, found))

    assert content(slices) == content(fresh)


def plain(endpoint_slice):
    ports = tuple(sorted((p.name, p.port, p.protocol) for p in endpoint_slice.ports))
    return msgspec.structs.replace(endpoint_slice, ports=ports)
