"""IPAddresses and ServiceCIDRs."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import Object
from seamark.kinds.language.decode import conform
from seamark.kinds.service.ipaddress import IP_ADDRESS, ip_address_object
from seamark.kinds.service.servicecidr import SERVICE_CIDR, usable_ranges
from seamark.kinds.subresource import Part
from seamark.kinds.values.times import parse

NOW = "2030-01-01T00:00:00Z"
IMMUTABLE = "field is immutable"


def said(errors: list[Any]) -> list[str]:
    return [f"{error.field}: {error.message}" for error in errors]


# --- IPAddress -------------------------------------------------------------------------------------


def test_an_address_of_a_service() -> None:
    obj = ip_address_object("fd00:96::9", "default", "web", now=NOW)
    assert obj["metadata"]["labels"] == {
        "ipaddress.kubernetes.io/ip-family": "IPv6",
        "ipaddress.kubernetes.io/managed-by": "ipallocator.k8s.io",
    }
    assert obj["spec"] == {"parentRef": {"resource": "services", "namespace": "default", "name": "web"}}
    assert conform(obj, IP_ADDRESS.shape) == (obj, [])
    assert IP_ADDRESS.validate(obj) == []
    assert IP_ADDRESS.validate_name("fd00:96::9", prefix=False) == []
    assert IP_ADDRESS.row(obj, parse(NOW) + 5) == ["fd00:96::9", "services/default/web", "5s"]


def test_names_are_canonical_addresses() -> None:
    assert IP_ADDRESS.validate_name("FD00::1", prefix=False) == ['must be in canonical form ("fd00::1")']
    assert IP_ADDRESS.validate_name("web", prefix=False)


@pytest.mark.parametrize(
    ("parent", "complaints"),
    [
        (None, ["spec.parentRef: Required value"]),
        ({}, ["spec.parentRef.resource: Required value", "spec.parentRef.name: Required value"]),
        ({"resource": "a/b", "name": "x"}, ["spec.parentRef.resource: Invalid value: \"a/b\": may not contain '/'"]),
        (
            {"group": "g", "resource": "r", "namespace": "%", "name": ".."},
            [
                "spec.parentRef.name: Invalid value: \"..\": may not be '..'",
                "spec.parentRef.namespace: Invalid value: \"%\": may not contain '%'",
            ],
        ),
    ],
)
def test_parents(parent: Object | None, complaints: list[str]) -> None:
    obj: Object = {"metadata": {"name": "10.0.0.1"}, "spec": {} if parent is None else {"parentRef": parent}}
    assert said(IP_ADDRESS.validate(obj)) == complaints


def test_the_parent_stays() -> None:
    old = ip_address_object("10.96.0.9", "default", "web", now=NOW)
    new = ip_address_object("10.96.0.9", "default", "other", now=NOW)
    assert IP_ADDRESS.validate_update(old, old) == []
    assert said(IP_ADDRESS.validate_update(new, old)) == [
        'spec.parentRef: Invalid value: {"Group":"","Resource":"services","Namespace":"default","Name":"other"}: '
        f"{IMMUTABLE}"
    ]


def test_parents_of_other_groups_in_a_row() -> None:
    obj: Object = {
        "metadata": {"name": "10.0.0.1"},
        "spec": {"parentRef": {"group": "G", "resource": "R", "name": "n"}},
    }
    assert IP_ADDRESS.row(obj, 0.0)[1] == "r.g/n"
    assert IP_ADDRESS.row({"metadata": {"name": "10.0.0.1"}, "spec": {}}, 0.0)[1] == "<none>"


# --- ServiceCIDR -----------------------------------------------------------------------------------


def ranges(*cidrs: str) -> Object:
    return {"metadata": {"name": "more"}, "spec": {"cidrs": list(cidrs)} if cidrs else {}}


@pytest.mark.parametrize(
    ("cidrs", "complaint"),
    [
        (("10.0.0.0/24",), ""),
        (("10.0.0.0/24", "fd00::/112"), ""),
        ((), "spec.cidrs: Required value: at least one CIDR required"),
        (("10.0.0.1/24",), 'spec.cidrs[0]: Invalid value: "10.0.0.1/24": must not have bits set'),
        (("FD00::/112",), 'spec.cidrs[0]: Invalid value: "FD00::/112": must be in canonical form ("fd00::/112")'),
        (
            ("10.0.0.0/24", "10.1.0.0/24"),
            'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP '
            "family, i.e 192.168.0.0/24 and 2001:db8::/64",
        ),
        (
            ("10.0.0.0/24", "fd00::/112", "10.1.0.0/24"),
            'spec.cidrs: Invalid value: {"CIDRs":["10.0.0.0/24","fd00::/112","10.1.0.0/24"]}: may only hold up to 2',
        ),
    ],
)
def test_ranges(cidrs: tuple[str, ...], complaint: str) -> None:
    found = said(SERVICE_CIDR.validate(ranges(*cidrs)))
    assert len(found) == bool(complaint)
    assert "".join(found).startswith(complaint)


@pytest.mark.parametrize(
    ("before", "after", "complaints"),
    [
        (("10.0.0.0/24",), ("10.0.0.0/24",), []),
        (("10.0.0.0/24",), ("10.0.0.0/24", "fd00::/112"), []),
        (("10.0.0.0/24",), ("10.1.0.0/24",), ['spec.cidrs[0]: Invalid value: "10.1.0.0/24"']),
        (("10.0.0.0/24",), ("fd00::/112", "10.0.0.0/24"), ['spec.cidrs[0]: Invalid value: "fd00::/112"']),
        (("10.0.0.0/24", "fd00::/112"), ("10.0.0.0/24",), ['spec.cidrs: Invalid value: ["10.0.0.0/24"]']),
    ],
)
def test_only_a_second_family_may_be_added(
    before: tuple[str, ...], after: tuple[str, ...], complaints: list[str]
) -> None:
    found = said(SERVICE_CIDR.validate_update(ranges(*after), ranges(*before)))
    assert found == [f"{complaint}: {IMMUTABLE}" for complaint in complaints]


def test_a_status_update_takes_nothing_else() -> None:
    old = ranges("10.0.0.0/24")
    old["metadata"]["labels"] = {"a": "b"}
    new: Object = {
        "metadata": {"name": "more", "labels": {"c": "d"}, "finalizers": ["x/y"]},
        "spec": {"cidrs": ["10.1.0.0/24"]},
        "status": {"conditions": []},
    }
    status = SERVICE_CIDR.subresource("status")
    assert isinstance(status, Part)
    status.prepare(SERVICE_CIDR, new, old)
    assert new == {**old, "status": {"conditions": []}}


def test_only_ready_ranges_are_used() -> None:
    obj = ranges("10.0.0.0/24")
    assert usable_ranges(obj) == ["10.0.0.0/24"]
    obj["status"] = {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]}
    assert usable_ranges(obj) == ["10.0.0.0/24"]
    obj["status"]["conditions"][1]["status"] = "False"
    assert usable_ranges(obj) == []
    going = ranges("10.0.0.0/24")
    going["metadata"]["deletionTimestamp"] = NOW
    assert usable_ranges(going) == []


def test_a_row() -> None:
    obj = ranges("10.0.0.0/24", "fd00::/112")
    assert SERVICE_CIDR.row(obj, 0.0) == ["more", "10.0.0.0/24,fd00::/112", "<unknown>"]
