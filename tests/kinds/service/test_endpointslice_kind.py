"""EndpointSlices beyond what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import Object
from seamark.kinds.service.endpointslice import ENDPOINT_SLICE


def slice_of(*endpoints: Object, address_type: str = "IPv4", ports: list[Object] | None = None) -> Object:
    obj: Object = {
        "metadata": {"name": "web-1", "generation": 1},
        "addressType": address_type,
        "endpoints": list(endpoints) or None,
        "ports": ports,
    }
    ENDPOINT_SLICE.default(obj)
    return obj


def at(*addresses: str, **more: Any) -> Object:
    return {"addresses": list(addresses), "conditions": {}, **more}


def said(obj: Object, old: Object | None = None) -> list[tuple[str, str]]:
    errors = ENDPOINT_SLICE.validate(obj) if old is None else ENDPOINT_SLICE.validate_update(obj, old)
    return [(error.field, error.message) for error in errors]


def fields(obj: Object, old: Object | None = None) -> list[str]:
    return [field for field, _ in said(obj, old)]


def test_written_rules_come_before_declared_ones() -> None:
    obj = slice_of(at(nodeName="N"), address_type="", ports=[{"port": 80, "protocol": "IP"}])
    assert fields(obj) == ["ports[0].protocol", "endpoints[0].nodeName", "addressType", "endpoints[0].addresses"]


def test_an_endpoint_is_checked_field_by_field() -> None:
    endpoint = at(
        "127.0.0.1",
        "fd00::1",
        nodeName="",
        hostname="a.b",
        hints={"forZones": [{"name": "a b"}], "forNodes": [{"name": "n"}, {"name": "n"}]},
    )
    assert fields(slice_of(endpoint)) == [
        "endpoints[0].addresses[0]",
        "endpoints[0].addresses",
        "endpoints[0].nodeName",
        "endpoints[0].hostname",
        "endpoints[0].hints.forZones[0].name",
        "endpoints[0].hints.forNodes[1].name",
    ]


def test_too_many_hints_end_the_list_of_complaints() -> None:
    names = [{"name": f"n{i}"} for i in range(9)]
    endpoint = at("10.0.0.1", hints={"forZones": names, "forNodes": names})
    assert said(slice_of(endpoint)) == [
        ("endpoints[0].hints.forZones", "Too many: 9: must have at most 8 items"),
    ]


def test_ipv6_is_wanted_in_its_canonical_form() -> None:
    assert said(slice_of(at("FD00::1"), address_type="IPv6")) == [
        ("endpoints[0].addresses[0]", 'Invalid value: "FD00::1": must be in canonical form ("fd00::1")')
    ]
    assert said(slice_of(at("10.0.0.1"), address_type="IPv6")) == [
        ("endpoints[0].addresses", 'Invalid value: "10.0.0.1": must be an IPv6 address')
    ]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("a.example.com", ""),
        ("a.example.com.", ""),
        ("", "Required value"),
        ("localhost", "should be a domain with at least two segments separated by dots"),
        ("A.example.com", "a lowercase RFC 1123 subdomain"),
        (f"{'a' * 64}.example.com", "must be no more than 63 characters"),
    ],
)
def test_domain_names(name: str, complaint: str) -> None:
    found = said(slice_of(at(name), address_type="FQDN"))
    assert bool(found) == bool(complaint)
    assert complaint in "".join(message for _, message in found)


def test_addresses_of_an_unknown_type_are_not_read() -> None:
    assert fields(slice_of(at("whatever"), address_type="IPX")) == ["addressType"]


def test_the_empty_port_name_may_be_there_once() -> None:
    assert fields(slice_of(ports=[{"port": 1}, {"port": 2}])) == ["ports[1].name"]
    assert fields(slice_of(ports=[{"port": 1}, {"name": "a"}])) == []


def test_limits() -> None:
    assert fields(slice_of(ports=[{"port": 1, "name": f"p{i}"} for i in range(20001)])) == ["ports"]
    assert fields(slice_of(*[at()] * 1001))[:2] == ["endpoints", "endpoints[0].addresses"]


def test_the_address_type_stays() -> None:
    immutable = "field is immutable"
    old = slice_of(at("10.0.0.1"))
    assert said(slice_of(at("10.0.0.1"), address_type="IPv6"), old) == [
        ("addressType", f'Invalid value: "IPv6": {immutable}')
    ]
    assert said(slice_of(at("10.0.0.1"), address_type=""), old) == [
        ("addressType", "Required value"),
        ("addressType", f'Invalid value: "": {immutable}'),
    ]


def test_endpoints_that_were_there_before_may_stay() -> None:
    bad = slice_of(at("127.0.0.1"), at())
    assert said(bad, bad) == []
    assert fields(slice_of(at("127.0.0.1"), at(), at("10.0.0.1")), bad) == [
        "endpoints[0].addresses[0]",
        "endpoints[1].addresses",
    ]


def test_the_generation_counts_changes_of_content_and_labels() -> None:
    old = slice_of(at("10.0.0.1"))

    def generation(**metadata: Any) -> int:
        new = slice_of(at("10.0.0.1"))
        new["metadata"].update(metadata)
        ENDPOINT_SLICE.prepare_update(new, old)
        return int(new["metadata"]["generation"])

    assert generation() == 1
    assert generation(annotations={"a": "b"}, labels={}) == 1
    assert generation(labels={"a": "b"}) == 2
    changed = slice_of(at("10.0.0.2"))
    ENDPOINT_SLICE.prepare_update(changed, old)
    assert changed["metadata"]["generation"] == 2


def test_deprecated_topology_is_not_written() -> None:
    obj = slice_of(at("10.0.0.1", deprecatedTopology={"a": "b"}))
    ENDPOINT_SLICE.prepare_create(obj)
    assert obj["endpoints"] == [at("10.0.0.1")]
    assert obj["metadata"]["generation"] == 1
    again = slice_of(at("10.0.0.1", deprecatedTopology={"a": "b"}))
    ENDPOINT_SLICE.prepare_update(again, obj)
    assert again["endpoints"] == [at("10.0.0.1")]


def test_warnings() -> None:
    domains = slice_of(at("a.example.com"), address_type="FQDN")
    assert ENDPOINT_SLICE.warnings(domains, None) == ["spec.addressType: FQDN endpoints are deprecated"]
    assert ENDPOINT_SLICE.warnings(domains, domains) == []
    odd = slice_of(at("10.0.0.1", "010.0.0.1"))
    assert [text.partition(":")[0] for text in ENDPOINT_SLICE.warnings(odd, odd)] == ["endpoints[0].addresses[1]"]
    odd["metadata"]["labels"] = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
    assert ENDPOINT_SLICE.warnings(odd, None) == []


def test_a_port_without_a_number_is_shown_by_its_name() -> None:
    row = ENDPOINT_SLICE.row(slice_of(at("10.0.0.1"), ports=[{"name": "all"}, {"port": 80}]), 0.0)
    assert row == ["web-1", "IPv4", "all,80", "10.0.0.1", "<unknown>"]


def test_a_port_with_neither_a_number_nor_a_name_shows_nothing() -> None:
    assert ENDPOINT_SLICE.row(slice_of(ports=[{}]), 0.0)[2] == "<unset>"
    assert ENDPOINT_SLICE.row(slice_of(ports=[{}, {"name": "b"}]), 0.0)[2] == ",b"
