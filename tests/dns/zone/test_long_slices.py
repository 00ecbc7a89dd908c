"""Slices as long as the API takes them: a thousand endpoints, maybe all alike, each with thousands of ports.

Queries are free to everybody, so none may look at every port of every endpoint.
"""

from __future__ import annotations

from typing import Any

import pytest
from asking import ask, put, texts, zone_of
from effort import LINEAR, grows
from watched_cluster import endpoint, service, slice_of

from seamark.dns.zone.state import Ports

HEADLESS = service("hl", "None")
NAME = "hl.default.svc.cluster.local"


def long_slice(endpoints: int, ports: int, *, alike: bool = False) -> dict[str, Any]:
    made = slice_of(
        "hl", *(endpoint(f"10.1.{0 if alike else n // 250}.{1 if alike else n % 250}") for n in range(endpoints))
    )
    made["ports"] = [{"name": f"p{n}", "port": n + 1, "protocol": "TCP"} for n in range(ports)]
    return made


@pytest.mark.parametrize("alike", [True, False])
@pytest.mark.parametrize("name", ["_p1._tcp.", "_nowhere._tcp.", "10-1-0-1."])
def test_no_query_looks_at_every_port_of_every_endpoint(name: str, alike: bool) -> None:
    def prepared(count: int) -> Any:
        zone = zone_of([HEADLESS, long_slice(count, count, alike=alike)])
        return lambda: ask(zone, f"{name}{NAME}", "SRV")

    assert grows(prepared) < LINEAR


def test_ports_of_a_slice_that_stay_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    zone = zone_of([HEADLESS, long_slice(50, 3)])
    same = Ports.__eq__
    monkeypatch.setattr(Ports, "__eq__", lambda self, other: compared.append(self) or same(self, other))
    put(zone, long_slice(60, 3))
    assert len(compared) == 1
    assert len(texts(ask(zone, f"_p2._tcp.{NAME}", "SRV"))) == 60
    put(zone, long_slice(60, 2))
    assert texts(ask(zone, f"_p2._tcp.{NAME}", "SRV")) == []


def test_of_very_many_ports_all_endpoints_are_told() -> None:
    zone = zone_of([HEADLESS, long_slice(200, 500)])
    assert len(texts(ask(zone, NAME, "A"))) == 200
    answer = texts(ask(zone, NAME, "SRV"))
    assert len(answer) > 1000  # all that the largest reply can hold
    assert all(text.startswith("SRV 0 1 ") for text in answer)
    assert len(texts(ask(zone, f"_p499._tcp.{NAME}", "SRV"))) == 200


@pytest.mark.parametrize(("times", "weight"), [(1, 100), (3, 33), (99, 1), (1000, 1)])
def test_the_weight_of_an_endpoint_that_is_listed_again_and_again(times: int, weight: int) -> None:
    zone = zone_of([HEADLESS, long_slice(times, 2, alike=True)])
    [answer] = texts(ask(zone, f"_p1._tcp.{NAME}", "SRV"))
    assert answer.startswith(f"SRV 0 {weight} 2 ")
