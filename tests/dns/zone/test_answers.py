"""What the recordings do not cover: options, several zones, chains, the older Endpoints, the server's own names."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from asking import ask, outcome, put, texts, zone_of
from watched_cluster import endpoint, namespace, service, slice_of

from seamark.dns.config import ZoneConfig

HEADLESS = service("hl", "None")


def external(name: str, target: str, **metadata: Any) -> dict[str, Any]:
    return service(name, "", type="ExternalName", externalName=target)


def test_an_endpoint_without_a_ready_condition_is_ready() -> None:
    zone = zone_of([HEADLESS, slice_of("hl", endpoint("10.1.0.1", ready=None), endpoint("10.1.0.2", ready=False))])
    assert texts(ask(zone, "hl.default.svc.cluster.local", "A")) == ["A 10.1.0.1"]


def test_a_hostname_of_several_endpoints_has_all_their_addresses() -> None:
    zone = zone_of([HEADLESS, slice_of("hl", endpoint("10.1.0.1", "web"), endpoint("10.1.0.2", "web"))])
    assert texts(ask(zone, "web.hl.default.svc.cluster.local", "A")) == ["A 10.1.0.1", "A 10.1.0.2"]


def test_two_slices_of_one_service_are_one_answer() -> None:
    slices = [slice_of("hl", endpoint(f"10.1.0.{n}"), name=f"hl-{n}") for n in (1, 2)]
    zone = zone_of([HEADLESS, *slices])
    answer = ask(zone, "_http._tcp.hl.default.svc.cluster.local", "SRV")
    assert texts(answer) == [
        "SRV 0 50 8080 10-1-0-1.hl.default.svc.cluster.local.",
        "SRV 0 50 8080 10-1-0-2.hl.default.svc.cluster.local.",
    ]
    assert texts(answer, "additional") == ["A 10.1.0.1", "A 10.1.0.2"]


@pytest.mark.parametrize("hostname", ["", "a"])
def test_an_endpoint_listed_twice_is_one_record_with_half_the_weight(hostname: str) -> None:
    zone = zone_of([HEADLESS, slice_of("hl", endpoint("10.1.0.1", hostname), endpoint("10.1.0.1", hostname))])
    answer = ask(zone, "_http._tcp.hl.default.svc.cluster.local", "SRV")
    assert texts(answer) == [f"SRV 0 50 8080 {hostname or '10-1-0-1'}.hl.default.svc.cluster.local."]
    assert texts(answer, "additional") == ["A 10.1.0.1"]
    assert texts(ask(zone, "hl.default.svc.cluster.local", "A")) == ["A 10.1.0.1"]
    put(zone, slice_of("hl", endpoint("10.1.0.1", hostname)))
    answer = ask(zone, "_http._tcp.hl.default.svc.cluster.local", "SRV")
    assert texts(answer) == [f"SRV 0 100 8080 {hostname or '10-1-0-1'}.hl.default.svc.cluster.local."]


@pytest.mark.parametrize(("number", "told"), [(65535, "65535"), (70000, "4464"), (0, "0"), (-2, "65534"), (-1, None)])
def test_a_port_that_is_none_is_cut_to_size(number: int, told: str | None) -> None:
    """The API does not check the numbers in EndpointSlices; CoreDNS takes -1 for no port at all."""
    slice = slice_of("hl", endpoint("10.1.0.1"))
    slice["ports"] = [{"name": "http", "port": number, "protocol": "TCP"}]
    answer = ask(zone_of([HEADLESS, slice]), "hl.default.svc.cluster.local", "SRV")
    if told is None:
        assert outcome(answer) == "NODATA"
    else:
        assert texts(answer) == [f"SRV 0 100 {told} 10-1-0-1.hl.default.svc.cluster.local."]


def test_a_slice_can_change_its_service() -> None:
    zone = zone_of([HEADLESS, service("other", "None"), slice_of("hl", endpoint("10.1.0.1"), name="s")])
    put(zone, slice_of("other", endpoint("10.1.0.1"), name="s"))
    assert outcome(ask(zone, "hl.default.svc.cluster.local", "A")) == "NXDOMAIN"
    assert texts(ask(zone, "1.0.1.10.in-addr.arpa", "PTR")) == ["PTR 10-1-0-1.other.default.svc.cluster.local."]


def test_slices_without_a_service_are_named_by_their_addresses_only() -> None:
    zone = zone_of([slice_of("gone", endpoint("10.1.0.1", "a"))])
    assert outcome(ask(zone, "a.gone.default.svc.cluster.local", "A")) == "NXDOMAIN"
    assert texts(ask(zone, "1.0.1.10.in-addr.arpa", "PTR")) == ["PTR a.gone.default.svc.cluster.local."]


def test_endpoints_objects_serve_where_there_are_no_slices() -> None:
    subsets = [
        {
            "addresses": [{"ip": "10.1.0.1", "hostname": "a"}, {"ip": "10.1.0.2"}],
            "notReadyAddresses": [{"ip": "10.1.0.3"}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        },
        {
            "addresses": [{"ip": "10.1.0.1", "hostname": "a"}],
            "ports": [{"name": "admin", "port": 9, "protocol": "TCP"}],
        },
    ]
    endpoints = {"kind": "Endpoints", "metadata": {"name": "hl", "namespace": "default"}, "subsets": subsets}
    zone = zone_of([HEADLESS, endpoints])
    assert texts(ask(zone, "hl.default.svc.cluster.local", "A")) == ["A 10.1.0.1", "A 10.1.0.2"]
    assert texts(ask(zone, "a.hl.default.svc.cluster.local", "SRV")) == [
        "SRV 0 50 8080 a.hl.default.svc.cluster.local.",
        "SRV 0 50 9 a.hl.default.svc.cluster.local.",
    ]
    put(zone, {**endpoints, "subsets": None})
    assert outcome(ask(zone, "hl.default.svc.cluster.local", "A")) == "NXDOMAIN"


class TestOptions:
    def test_endpoint_pod_names(self) -> None:
        long = "p" * 64
        slice = slice_of(
            "hl",
            endpoint("10.1.0.1", pod="web-0"),
            endpoint("10.1.0.2", "host", pod="web-1"),
            endpoint("10.1.0.3", pod=long),
        )
        zone = zone_of([HEADLESS, slice], pod_names=True)
        assert texts(ask(zone, "hl.default.svc.cluster.local", "SRV")) == [
            "SRV 0 33 8080 10-1-0-3.hl.default.svc.cluster.local.",
            "SRV 0 33 8080 host.hl.default.svc.cluster.local.",
            "SRV 0 33 8080 web-0.hl.default.svc.cluster.local.",
        ]

    def test_empty_services_can_be_ignored(self) -> None:
        config = ZoneConfig(ignore_empty_services=True)
        zone = zone_of([service("web", "10.96.0.1"), external("ext", "example.com"), HEADLESS])
        assert outcome(ask(zone, "web.default.svc.cluster.local", "A", config)) == "NXDOMAIN"
        assert outcome(ask(zone, "web.default.svc.cluster.local", "A")) == "NOERROR"
        assert outcome(ask(zone, "ext.default.svc.cluster.local", "CNAME", config)) == "NOERROR"
        put(zone, slice_of("web", endpoint("10.1.0.1")))
        assert outcome(ask(zone, "web.default.svc.cluster.local", "A", config)) == "NOERROR"

    def test_only_some_namespaces(self) -> None:
        config = ZoneConfig(namespaces=("shop",))
        objects = [namespace("shop"), service("web", "10.96.0.1"), service("web", "10.96.0.2", namespace="shop")]
        zone = zone_of(objects)
        assert outcome(ask(zone, "web.default.svc.cluster.local", "A", config)) == "NXDOMAIN"
        assert outcome(ask(zone, "web.shop.svc.cluster.local", "A", config)) == "NOERROR"
        assert outcome(ask(zone, "1.0.96.10.in-addr.arpa", "PTR", config)) == "NXDOMAIN"
        assert outcome(ask(zone, "2.0.96.10.in-addr.arpa", "PTR", config)) == "NOERROR"

    def test_several_zones(self) -> None:
        config = ZoneConfig(zones=("cluster.local", "10.in-addr.arpa", "example.org", "sub.example.org"))
        zone = zone_of([service("web", "10.96.0.1")])
        for served in ("cluster.local", "example.org", "sub.example.org"):
            answer = ask(zone, f"_http._tcp.web.default.svc.{served}", "SRV", config)
            assert texts(answer) == [f"SRV 0 100 80 web.default.svc.{served}."]
        assert texts(ask(zone, "1.0.96.10.in-addr.arpa", "PTR", config)) == ["PTR web.default.svc.cluster.local."]
        with pytest.raises(AssertionError, match="no served zone"):
            ask(zone, "1.0.0.11.in-addr.arpa", "PTR", config)

    def test_the_ttl_and_how_long_nothing_may_be_remembered(self) -> None:
        zone = zone_of([service("web", "10.96.0.1")])
        config = ZoneConfig(ttl=1800)
        assert ask(zone, "web.default.svc.cluster.local", "A", config).answers[0].ttl == 1800
        negative = ask(zone, "nope.default.svc.cluster.local", "A", config)
        assert negative.authority[0].ttl == 300
        assert texts(negative, "authority") == [
            "SOA ns.dns.cluster.local. hostmaster.cluster.local. 1000 7200 1800 86400 1800"
        ]

    @pytest.mark.parametrize("wrong", [{"ttl": 3601}, {"ttl": -1}, {"zones": ("in-addr.arpa",)}, {"zones": ()}])
    def test_nonsense_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match=r"ttl|zone"):
            ZoneConfig(**wrong)

    def test_namespaces_by_name_and_by_labels_exclude_each_other(self) -> None:
        with pytest.raises(ValueError, match="not both"):
            ZoneConfig(namespaces=("a",), namespace_labels="a=b")


class TestAliases:
    @pytest.mark.parametrize(("length", "found"), [(11, True), (12, False)])
    def test_a_chain_has_at_most_eleven_links(self, length: int, found: bool) -> None:
        links = [external(f"e{n}", f"e{n + 1}.default.svc.cluster.local") for n in range(length - 1)]
        last = external(f"e{length - 1}", "web.default.svc.cluster.local")
        zone = zone_of([*links, last, service("web", "10.96.0.1")])
        answer = ask(zone, "e0.default.svc.cluster.local", "A")
        assert outcome(answer) == ("NOERROR" if found else "NODATA")
        assert len(answer.answers) == (length + 1 if found else 0)

    def test_a_name_below_itself_is_no_alias(self) -> None:
        zone = zone_of([external("e", "x.e.default.svc.cluster.local")])
        assert outcome(ask(zone, "e.default.svc.cluster.local", "A")) == "NODATA"

    def test_a_chain_that_leaves_the_zone_is_to_be_followed(self) -> None:
        zone = zone_of([external("a", "b.default.svc.cluster.local"), external("b", "www.Example.com.")])
        answer = ask(zone, "a.default.svc.cluster.local", "AAAA")
        assert texts(answer) == ["CNAME b.default.svc.cluster.local.", "CNAME www.Example.com."]
        assert answer.follow == [(b"www", b"Example", b"com")]

    @pytest.mark.parametrize(
        ("target", "kind", "expected"),
        [
            ("192.0.2.7", "CNAME", []),
            ("192.0.2.7", "A", []),
            # With a final dot it is no address any more, but a name like any other.
            ("192.0.2.7.", "CNAME", ["CNAME 192.0.2.7."]),
            ("192.0.2.7.", "A", ["CNAME 192.0.2.7."]),
        ],
    )
    def test_an_address_is_no_alias(self, target: str, kind: str, expected: list[str]) -> None:
        answer = ask(zone_of([external("e", target)]), "e.default.svc.cluster.local", kind)
        assert outcome(answer) == ("NOERROR" if expected else "NXDOMAIN")
        assert not expected or texts(answer) == expected

    def test_nothing_is_below_an_external_name(self) -> None:
        zone = zone_of([external("e", "example.com")])
        for name in ("_http._tcp.e", "x.e"):
            assert outcome(ask(zone, f"{name}.default.svc.cluster.local", "A")) == "NXDOMAIN"

    def test_slices_of_names_are_aliases(self) -> None:
        zone = zone_of([HEADLESS, slice_of("hl", endpoint("db.example.com", "a"))])
        assert texts(ask(zone, "a.hl.default.svc.cluster.local", "A")) == ["CNAME db.example.com."]
        assert outcome(ask(zone, "a.hl.default.svc.cluster.local", "SRV")) == "NODATA"

    def test_a_name_that_fits_no_message_is_none(self) -> None:
        zone = zone_of([external("e", f"{'a' * 64}.com")])
        assert outcome(ask(zone, "e.default.svc.cluster.local", "CNAME")) == "NXDOMAIN"


class TestPods:
    def _pod(self, name: str, address: str, **more: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": "default", **more.pop("metadata", {})}
        return {"kind": "Pod", "metadata": metadata, "status": {"phase": "Running", "podIP": address, **more}}

    def test_two_pods_with_one_address_are_one_name(self) -> None:
        zone = zone_of([self._pod("a", "10.1.0.1"), self._pod("b", "10.1.0.1")])
        config = ZoneConfig(pods="verified")
        name = "10-1-0-1.default.pod.cluster.local"
        assert texts(ask(zone, name, "A", config)) == ["A 10.1.0.1"]
        assert texts(ask(zone, name, "SRV", config)) == [f"SRV 0 50 0 {name}."]

    def test_a_pod_first_seen_on_its_way_out_is_not_there(self) -> None:
        going = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
        zone = zone_of([self._pod("a", "10.1.0.1", **going)])
        config = ZoneConfig(pods="verified")
        assert outcome(ask(zone, "10-1-0-1.default.pod.cluster.local", "A", config)) == "NXDOMAIN"

    def test_a_pod_that_has_finished_is_gone(self) -> None:
        zone = zone_of([self._pod("a", "10.1.0.1"), self._pod("a", "10.1.0.1", phase="Succeeded")])
        config = ZoneConfig(pods="verified")
        assert outcome(ask(zone, "10-1-0-1.default.pod.cluster.local", "A", config)) == "NXDOMAIN"

    def test_an_ipv4_address_written_as_ipv6_is_one(self) -> None:
        answer = ask(zone_of([]), "--ffff-102-304.default.pod.cluster.local", "A", ZoneConfig(pods="insecure"))
        assert texts(answer) == ["A 1.2.3.4"]


class TestOwnNames:
    LOCAL = (socket.inet_aton("10.1.0.53"),)

    def test_without_a_service_the_server_is_where_it_listens(self) -> None:
        zone = zone_of([])
        answer = ask(zone, "cluster.local", "NS", local_addresses=self.LOCAL)
        assert texts(answer) == ["NS ns.dns.cluster.local."]
        assert texts(answer, "additional") == ["A 10.1.0.53"]
        assert texts(ask(zone, "ns.dns.cluster.local", "A", local_addresses=self.LOCAL)) == ["A 10.1.0.53"]
        assert outcome(ask(zone, "ns.dns.cluster.local", "AAAA", local_addresses=self.LOCAL)) == "NODATA"
        assert outcome(ask(zone, "ns.dns.cluster.local", "SRV", local_addresses=self.LOCAL)) == "NODATA"
        assert outcome(ask(zone, "ns.dns.cluster.local", "TXT", local_addresses=self.LOCAL)) == "NXDOMAIN"

    @pytest.mark.parametrize(
        ("name", "found"),
        [
            ("NS.Dns.cluster.local", "NOERROR"),
            # CoreDNS compares the zone as it was spelled with the name in lower case.
            ("ns.dns.Cluster.local", "NXDOMAIN"),
            ("ns.dns.in-addr.arpa", "NOERROR"),
            ("x.ns.dns.cluster.local", "NXDOMAIN"),
        ],
    )
    def test_its_name_is_spelled_in_lower_case(self, name: str, found: str) -> None:
        assert outcome(ask(zone_of([]), name, "A", local_addresses=self.LOCAL)) == found

    def test_behind_a_service_it_is_known_by_that(self) -> None:
        zone = zone_of([service("kube-dns", "10.96.0.10"), slice_of("kube-dns", endpoint("10.1.0.53"))])
        answer = ask(zone, "cluster.local", "NS", local_addresses=self.LOCAL)
        assert texts(answer) == ["NS kube-dns.default.svc.cluster.local."]
        assert texts(answer, "additional") == ["A 10.96.0.10"]

    def test_behind_a_headless_service_every_endpoint_is_a_server(self) -> None:
        zone = zone_of([service("dns", "None"), slice_of("dns", endpoint("10.1.0.53"), endpoint("10.1.0.54"))])
        answer = ask(zone, "cluster.local", "NS", local_addresses=self.LOCAL)
        assert texts(answer) == [
            "NS 10-1-0-53.dns.default.svc.cluster.local.",
            "NS 10-1-0-54.dns.default.svc.cluster.local.",
        ]


def test_every_answer_says_why() -> None:
    zone = zone_of([service("web", "10.96.0.1"), HEADLESS])
    expected = {
        "nope.default.svc": "there is no Service nope in namespace default",
        "web.nowhere.svc": "there is no namespace nowhere",
        "hl.default.svc": "Service hl in namespace default is headless and has no ready endpoints",
        "x.web.default.svc": "Service web in namespace default has no ready endpoint called x",
        "_gopher._tcp.web.default.svc": "Service web in namespace default has no port gopher/tcp",
        "web.default.foo": "below the zone there are only svc and pod, not foo",
    }
    for name, why in expected.items():
        assert ask(zone, f"{name}.cluster.local", "A").why == why
