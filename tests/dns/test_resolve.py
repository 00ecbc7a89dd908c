"""How a Pod's resolver walks its search path."""

from __future__ import annotations

import pytest
from scripted_upstream import FOREVER, ScriptedUpstream
from watched_cluster import WatchedCluster, service

from seamark.dns.config import ForwardConfig, ZoneConfig
from seamark.dns.resolve import SILENT, Told, Walk, ask_server, asking, candidates, search_path, type_number, walk
from seamark.errors import Forbidden, ServiceUnavailable
from seamark.kinds.resource import ENDPOINT_SLICES, NAMESPACES, PODS, SERVICES, Resource

SEARCH = search_path("shop", "cluster.local")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("web", ["web.shop.svc.cluster.local.", "web.svc.cluster.local.", "web.cluster.local.", "web."]),
        ("web.", ["web."]),
        ("a.b.c.d.e.f", ["a.b.c.d.e.f.", *(f"a.b.c.d.e.f.{domain}." for domain in SEARCH)]),
        ("a.b.c.d.e", [*(f"a.b.c.d.e.{domain}." for domain in SEARCH), "a.b.c.d.e."]),
    ],
)
def test_candidates(name: str, expected: list[str]) -> None:
    assert candidates(name, SEARCH) == expected


def test_a_nodes_own_domains_come_last() -> None:
    assert search_path("a", "cluster.local.", ["corp.example"])[-1] == "corp.example"


async def _walked(answers: dict[tuple[str, str], Told], name: str = "web") -> Walk:
    async def ask(name: str, kind: str) -> Told:
        return answers.get((name, kind), Told("NXDOMAIN", (), "no"))

    return await walk(name, ["A", "AAAA"], SEARCH, ask)


async def test_the_walk_ends_with_the_first_answer() -> None:
    found = await _walked({("web.svc.cluster.local.", "AAAA"): Told("NOERROR", ("x",), "yes")})
    assert [tried.name for tried in found.tries] == ["web.shop.svc.cluster.local.", "web.svc.cluster.local."]
    assert found.found


@pytest.mark.parametrize("rcode", ["NOERROR", "SERVFAIL", "REFUSED"])
async def test_neither_an_empty_answer_nor_a_failure_ends_it(rcode: str) -> None:
    nothing = await _walked({("web.shop.svc.cluster.local.", "A"): Told(rcode, (), "")})
    assert len(nothing.tries) == 4
    assert not nothing.found
    assert nothing.tries[0].told["A"].outcome == ("nodata" if rcode == "NOERROR" else "failure")


async def test_a_name_that_fits_no_message_is_not_asked_for() -> None:
    nothing = await _walked({}, "x" * 64)
    assert nothing.tries[0].told["A"].rcode == "FORMERR"


async def test_the_state_answers_with_reasons(cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    upstream = ScriptedUpstream()
    upstream.records["www.example.com.", "A"] = ["300 192.0.2.1"]
    async with upstream.running():
        forward = upstream.forward()
        async with asking(cluster, ZoneConfig(), forward) as ask:
            found = await walk("web", ["A"], search_path("default", "cluster.local"), ask)
            assert found.tries[0].told["A"] == Told(
                "NOERROR",
                ("web.default.svc.cluster.local. 5 IN A 10.96.0.1",),
                "Service web in namespace default has a cluster address",
            )
            told = await ask("www.example.com.", "A")
            assert told.records == ("www.example.com. 300 IN A 192.0.2.1",)
            assert "upstream" in told.why


async def test_a_cluster_that_cannot_be_read_is_an_error(cluster: WatchedCluster) -> None:
    cluster.lose()
    with pytest.raises(ServiceUnavailable, match="out of reach"):
        async with asking(cluster, ZoneConfig(), ForwardConfig(routes=())):
            pass


@pytest.mark.parametrize("refused", [NAMESPACES, SERVICES, ENDPOINT_SLICES, PODS])
async def test_a_kind_that_may_not_be_read_is_an_error(cluster: WatchedCluster, refused: Resource) -> None:
    cluster.refused.add(refused)
    with pytest.raises(Forbidden, match=refused.plural):
        async with asking(cluster, ZoneConfig(pods="verified"), ForwardConfig(routes=())):
            pass


async def test_endpoints_are_read_where_there_are_no_slices(cluster: WatchedCluster) -> None:
    cluster.missing.add(ENDPOINT_SLICES)
    async with asking(cluster, ZoneConfig(), ForwardConfig(routes=())) as ask:
        assert (await ask("web.default.svc.cluster.local.", "A")).rcode == "NXDOMAIN"


async def test_without_upstreams_other_names_are_refused(cluster: WatchedCluster) -> None:
    async with asking(cluster, ZoneConfig(), ForwardConfig(routes=())) as ask:
        told = await ask("www.example.com.", "A")
        assert (told.rcode, told.outcome) == ("REFUSED", "failure")
        assert "no upstream" in told.why


async def test_a_server_can_be_asked(serve: object, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    assert callable(serve)
    async with serve() as server:
        told = await ask_server(server.addresses[0], "web.default.svc.cluster.local.", "A", timeout=FOREVER)
        assert told.records == ("web.default.svc.cluster.local. 5 IN A 10.96.0.1",)
    silent = await ask_server(("127.0.0.1", 1), "web.", "A", timeout=0.2)
    assert (silent.rcode, "does not answer" in silent.why) == (SILENT, True)


def test_types_have_names() -> None:
    assert type_number("SRV") == 33
    assert type_number("TYPE65534") == 65534
    with pytest.raises(ValueError, match="no record type NONSENSE"):
        type_number("NONSENSE")
