"""Where connections to a Service go: in the words of ``why``, from the function that the proxies decide by."""

import catalogue_cases
import pytest
from catalogue_clusters import build, clock

from seamark.cli import main
from seamark.errors import Forbidden
from seamark.kinds.resource import NODES
from seamark.why import render
from seamark.why.explain_way import ENDPOINTS_SHOWN, Client, Place, explain_way, parse_place
from seamark.why.look import look_at_way
from seamark.why.observe import CannotLook, observe_service
from seamark.why.report import document

WEB = ("shop", "web")


def node(name, zone):
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {"topology.kubernetes.io/zone": zone}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def pod(name, on, **spec):
    return {
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"nodeName": on, "containers": [{"name": "c"}], **spec},
        "status": {"phase": "Running", "podIP": "10.1.9.9", "podIPs": [{"ip": "10.1.9.9"}]},
    }


def service(**spec):
    return {
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"port": 80, "targetPort": 8080}], "clusterIP": "10.96.1.1", **spec},
    }


def endpoint(address, on, **conditions):
    return {"addresses": [address], "nodeName": on, "conditions": {"ready": True, **conditions}}


def slice_of(*endpoints, zones=()):
    for each, zone in zip(endpoints, zones, strict=False):
        each |= {"zone": zone, "hints": {"forZones": [{"name": zone}]}}
    return {
        "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4",
        "endpoints": list(endpoints),
        "ports": [{"port": 8080, "protocol": "TCP"}],
    }


async def cluster_of(*objects):
    return await build(
        catalogue_cases.Case(name="", about="", ask="service shop/web", objects=list(objects), controllers=False)
    )


async def way(place, *objects, port=None):
    return await look_at_way(await cluster_of(*objects), WEB, parse_place(place), port, clock=clock())


NODES_OF_TWO_ZONES = (node("n1", "a"), node("n2", "b"))


async def test_each_endpoint_that_is_left_out_has_its_reason():
    objects = (
        service(),
        slice_of(
            endpoint("10.1.0.1", "n1"),
            endpoint("10.1.0.2", "n2"),
            endpoint("10.1.0.3", "n1", ready=False),
            endpoint("10.1.0.4", "n1", ready=False, serving=True, terminating=True),
            zones=("a", "b", "a", "a"),
        ),
        *NODES_OF_TWO_ZONES,
    )
    report = await way("node/n1", *objects)
    (found,) = report.ways
    assert [row.address for row in found.endpoints] == ["10.1.0.1"]
    assert {row.address: row.why for row in found.left_out} == {
        "10.1.0.2": "its hints are for other zones",
        "10.1.0.3": "it is not ready",
        "10.1.0.4": "it terminates, and others are ready",
    }
    text = render.report(report, render.Style(columns=120))
    assert "the proxy of node n1 in zone a" in text
    assert "its hints are for other zones" in text


async def test_programs_get_the_ways_with_all_endpoints_and_people_a_few():
    many = [endpoint(f"10.1.0.{number}", "n1") for number in range(1, ENDPOINTS_SHOWN + 6)]
    report = await way("node/n1", service(), slice_of(*many), *NODES_OF_TWO_ZONES)
    told = document(report)["ways"]
    assert len(told) == 1
    assert len(told[0]["endpoints"]) == len(many)
    assert {key: told[0][key] for key in ("kind", "address", "port", "protocol", "verdict", "policy", "nodes")} == {
        "kind": "clusterIP",
        "address": "10.96.1.1",
        "port": 80,
        "protocol": "TCP",
        "verdict": "accept",
        "policy": "Cluster",
        "nodes": ("n1",),
    }
    assert told[0]["endpoints"][0] == {"address": "10.1.0.1", "port": 8080, "node": "n1", "zone": "", "why": ""}
    assert "and 5 more" in render.report(report, render.Style())


async def test_the_external_policy_does_not_count_for_clients_in_the_cluster():
    objects = (
        service(type="NodePort", externalTrafficPolicy="Local", ports=[{"port": 80, "nodePort": 30080}]),
        slice_of(endpoint("10.1.0.1", "n1")),
        pod("client", "n2"),
        *NODES_OF_TWO_ZONES,
    )
    report = await way("pod/client", *objects, port=30080)
    assert [(each.verdict, each.why) for each in report.ways] == [
        ("accept", "externalTrafficPolicy Local does not count for clients in the cluster")
    ]
    outside = await way("outside", *objects)
    assert {each.nodes: each.verdict for each in outside.ways} == {("n1",): "accept", ("n2",): "drop"}
    assert all(each.kind == "nodePort" for each in outside.ways), "no route leads to a cluster IP from outside"


async def test_source_ranges_are_told_where_the_client_is_not_known():
    objects = (
        service(type="LoadBalancer", loadBalancerSourceRanges=["192.0.2.0/24"])
        | {"status": {"loadBalancer": {"ingress": [{"ip": "198.51.100.9"}]}}},
        slice_of(endpoint("10.1.0.1", "n1")),
        *NODES_OF_TWO_ZONES,
    )
    (found,) = (await way("outside", *objects)).ways
    assert found.why == "only for clients in 192.0.2.0/24 (loadBalancerSourceRanges)"
    (found,) = (await way("203.0.113.7", *objects)).ways
    assert (found.verdict, found.blocked, found.endpoints) == ("drop", True, ())


async def test_without_endpoints_connections_are_refused():
    report = await way("node/n1", service(), *NODES_OF_TWO_ZONES)
    assert [(each.verdict, each.why) for each in report.ways] == [("refuse", "no endpoint can serve")]
    assert "no connection gets through" in report.state
    assert not report.healthy


async def test_a_headless_service_has_no_ways_and_says_so():
    report = await way("node/n1", service(clusterIP="None"), slice_of(endpoint("10.1.0.1", "n1")), *NODES_OF_TWO_ZONES)
    assert report.ways == ()
    assert "no proxy serves it, because it is headless" in report.state
    assert "without a proxy" in dict(report.facts)["headless"]


async def test_affinity_is_told():
    report = await way(
        "node/n1", service(sessionAffinity="ClientIP"), slice_of(endpoint("10.1.0.1", "n1")), *NODES_OF_TWO_ZONES
    )
    assert "sessionAffinity ClientIP" in dict(report.facts)["affinity"]


async def test_a_service_that_does_not_exist_is_explained_as_always():
    report = await way("node/n1", *NODES_OF_TWO_ZONES)
    assert report.cause.code.value == "ServiceNotFound"


@pytest.mark.parametrize(
    ("port", "place", "words"),
    [
        (8080, "node/n1", ["8080 is where its Pods listen (targetPort)", "its ports are 80 and 30080"]),
        (80, "outside", ["80 is a port of its cluster IP, which is not for clients outside", "its ports are 30080"]),
        (443, "node/n1", ["port 443 from there; its ports are 80 and 30080"]),
    ],
)
async def test_a_wrong_port_is_named_for_what_it_is(port, place, words):
    objects = (
        service(type="NodePort", ports=[{"port": 80, "targetPort": 8080, "nodePort": 30080}]),
        slice_of(endpoint("10.1.0.1", "n1")),
        *NODES_OF_TWO_ZONES,
    )
    report = await way(place, *objects, port=port)
    assert report.cause.code.value == "PortNotOffered"
    for each in words:
        assert each in report.cause.cause


async def test_a_pod_on_the_network_of_its_node_is_the_node():
    objects = (
        service(internalTrafficPolicy="Local"),
        slice_of(endpoint("10.1.0.1", "n1")),
        pod("agent", "n2", hostNetwork=True),
        *NODES_OF_TWO_ZONES,
    )
    report = await way("pod/shop/agent", *objects)
    assert report.ways[0].verdict == "drop"
    assert report.cause.code.value == "InternalLocalWithoutEndpoint"


@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("pod/nosuch", "cannot read Pod nosuch in namespace shop"),
        ("pod/other/client", "cannot read Pod client in namespace other"),
        ("pod/waiting", "Pod waiting is not on a node yet"),
        ("node/nosuch", "there is no node nosuch"),
    ],
)
async def test_a_client_that_is_nowhere_cannot_be_looked_from(place, sentence):
    with pytest.raises(CannotLook, match=sentence):
        await way(place, service(), pod("waiting", ""), *NODES_OF_TWO_ZONES)


async def test_where_nodes_may_not_be_listed_nothing_is_claimed_about_them(monkeypatch):
    cluster = await cluster_of(service(), slice_of(endpoint("10.1.0.1", "n1")), pod("client", "n2"))
    real = cluster.list

    async def listed(resource, **more):
        if resource == NODES:
            raise Forbidden("nodes is forbidden")
        return await real(resource, **more)

    monkeypatch.setattr(cluster, "list", listed)
    report = await look_at_way(cluster, WEB, parse_place("pod/client"), clock=clock())
    assert report.ways[0].nodes == ("n2",)
    assert any("list nodes" in note for note in report.notes)
    world = await observe_service(cluster, WEB, clock=clock())
    outside = explain_way(world, WEB, Client("outside", "outside"))
    assert "cannot be listed" in dict(outside.facts)["meets"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("pod/web-0", Place("pod", "web-0")),
        ("po/shop/web-0", Place("pod", "web-0", "shop")),
        ("node/n1", Place("node", "n1")),
        ("outside", Place("outside")),
        ("203.0.113.7", Place("outside", address="203.0.113.7")),
        ("FD00::0001", Place("outside", address="fd00::1")),
    ],
)
def test_places(text, place):
    assert parse_place(text) == place


@pytest.mark.parametrize("text", ["", "pod/", "node/a/b", "web", "svc/web", "300.1.1.1"])
def test_no_places(text):
    with pytest.raises(ValueError, match="Say pod/NAME"):
        parse_place(text)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("svc/web", "--port", "80"), "--port goes with --from"),
        (("pod/web", "--from", "outside"), "--from is for connections to one Service"),
        (("svc/web", "--from", "outside", "--since", "1h"), "--from is for connections to one Service, now"),
        (("svc/web", "--from", "mars"), "from 'mars'? Say pod/NAME"),
        (("svc/web", "--from", "outside", "-f", "-"), "manifests have no"),
    ],
)
def test_mistakes_of_the_command_line(capsys, words, sentence):
    assert main(["why", *words]) == 2
    assert sentence in capsys.readouterr().err


async def test_a_service_can_be_asked_about_through_the_command_line(monkeypatch, capsys):
    from seamark.cli.asking import why

    cluster = await cluster_of(service(), slice_of(endpoint("10.1.0.1", "n1")), *NODES_OF_TWO_ZONES)
    options = why.parser().parse_args(["svc/web", "-n", "shop", "--from", "node/n2", "-o", "json"])
    options.place = why._place(options, "service", "web")
    assert await why._look(options, "service", "web", cluster, None) == 0
    assert '"verdict": "accept"' in capsys.readouterr().out
