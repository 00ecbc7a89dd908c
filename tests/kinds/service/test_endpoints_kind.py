"""Endpoints beyond what is recorded."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.service.endpoints import ENDPOINTS_KIND
from seamark.kinds.values.times import parse

BAD = [{"addresses": [{"ip": "127.0.0.1"}]}]


def endpoints(subsets: list[Object] | None = None, **labels: str) -> Object:
    obj: Object = {"metadata": {"name": "web", "labels": labels, "creationTimestamp": "2030-01-01T00:00:00Z"}}
    if subsets is not None:
        obj["subsets"] = subsets
    ENDPOINTS_KIND.default(obj)
    return obj


def cell(subsets: list[Object] | None) -> str:
    row = ENDPOINTS_KIND.row(endpoints(subsets), parse("2030-01-01T00:01:00Z"))
    assert (row[0], row[2]) == ("web", "60s")
    return str(row[1])


def test_what_was_there_before_may_stay_until_it_is_touched() -> None:
    assert ENDPOINTS_KIND.validate_update(endpoints(BAD), endpoints(BAD)) == []
    assert ENDPOINTS_KIND.validate_update(endpoints([*BAD, {"addresses": [{"ip": "10.0.0.1"}]}]), endpoints(BAD))
    assert ENDPOINTS_KIND.validate_update(endpoints(BAD), endpoints())


def test_every_list_of_a_subset_is_checked() -> None:
    obj = endpoints(
        [
            {
                "notReadyAddresses": [{"ip": "x"}],
                "ports": [
                    {"port": 80, "name": "A", "appProtocol": "a b"},
                    {"port": 70000, "name": "b", "protocol": "IP"},
                ],
            }
        ]
    )
    assert [error.field for error in ENDPOINTS_KIND.validate(obj)] == [
        "subsets[0].notReadyAddresses[0].ip",
        "subsets[0].notReadyAddresses[0].ip",
        "subsets[0].ports[0].name",
        "subsets[0].ports[0].appProtocol",
        "subsets[0].ports[1].port",
        "subsets[0].ports[1].protocol",
    ]


def test_odd_addresses_draw_warnings_unless_the_controller_wrote_them() -> None:
    odd = [{"addresses": [{"ip": "FD00::1"}], "notReadyAddresses": [{"ip": "010.0.0.1"}]}]
    assert [text.partition(":")[0] for text in ENDPOINTS_KIND.warnings(endpoints(odd), None)] == [
        "subsets[0].addresses[0].ip",
        "subsets[0].notReadyAddresses[0].ip",
    ]
    managed = endpoints(odd)
    managed["metadata"]["labels"] = {"endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert ENDPOINTS_KIND.warnings(managed, None) == []


def test_the_cell_of_endpoints() -> None:
    assert cell(None) == "<none>"
    assert cell([{"notReadyAddresses": [{"ip": "10.0.0.1"}]}]) == ""
    assert cell([{"addresses": [{"ip": "fd00::1"}], "ports": [{"port": 80}]}]) == "[fd00::1]:80"
    both = {"addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], "ports": [{"port": 1, "name": "a"}, {"port": 2}]}
    assert cell([both]) == "10.0.0.1:1,10.0.0.2:1,10.0.0.1:2 + 1 more..."
    assert cell([{"addresses": [{"ip": "10.0.0.9"}]}, both]) == "10.0.0.9,10.0.0.1:1,10.0.0.2:1 + 2 more..."
