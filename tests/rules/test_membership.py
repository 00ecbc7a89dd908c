"""Verdicts: every rule by which a Pod is or is not an endpoint of a Service."""

import msgspec
import pytest
from worlds import node, pod, service

from seamark.rules.membership import Port, Reason, Standing, WrongLabel, judge, parse_ip, same, selects
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.pod import Container, ContainerPort, ContainerStatus, Pod
from seamark.rules.objects.service import Service

NODE = node()
HTTP = {"name": "http", "containerPort": 8080, "protocol": "TCP"}
NAMED = [{"name": "web", "port": 80, "targetPort": "http", "protocol": "TCP", "appProtocol": "h2c"}]


def test_a_ready_pod():
    verdict = judge(service(), pod(), NODE)
    assert (verdict.standing, verdict.reason, verdict.in_slices, verdict.in_endpoints) == (
        Standing.READY,
        None,
        True,
        True,
    )
    assert (verdict.ready, verdict.serving, verdict.terminating) == (True, True, False)
    assert (verdict.ipv4, verdict.ipv6, verdict.endpoints_address) == (("10.1.0.1",), (), "10.1.0.1")
    assert verdict.ports == (Port("", 8080, "TCP"),)
    assert (verdict.node, verdict.zone) == ("node-a", "zone-a")


@pytest.mark.parametrize(
    ("changes", "standing", "in_endpoints", "conditions"),
    [
        ({"ready": False}, Standing.NOT_READY, True, (False, False, False)),
        ({"ready": None}, Standing.NOT_READY, True, (False, False, False)),
        ({"terminating": True}, Standing.SERVING, False, (False, True, True)),
        ({"terminating": True, "ready": False}, Standing.TERMINATING, False, (False, False, True)),
    ],
)
def test_what_a_listed_pod_is(changes, standing, in_endpoints, conditions):
    verdict = judge(service(), pod(**changes), NODE)
    assert (verdict.standing, verdict.in_endpoints) == (standing, in_endpoints)
    assert (verdict.ready, verdict.serving, verdict.terminating) == conditions


@pytest.mark.parametrize("changes", [{"ready": False}, {"terminating": True}, {"terminating": True, "ready": False}])
def test_published_though_not_ready(changes):
    verdict = judge(service(publishNotReadyAddresses=True), pod(**changes), NODE)
    assert verdict.standing is Standing.READY
    assert verdict.ready
    assert verdict.in_endpoints
    assert Reason.PUBLISHED_ANYWAY in verdict.reasons


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_is_out_whatever_is_published(phase):
    verdict = judge(service(publishNotReadyAddresses=True), pod(phase=phase), NODE)
    assert (verdict.standing, verdict.reason, verdict.phase) == (Standing.EXCLUDED, Reason.FINISHED, phase)


def test_a_pod_without_an_address():
    assert judge(service(), pod(ips=()), NODE).reason is Reason.NO_ADDRESS


def test_the_old_field_serves_where_the_new_one_is_missing():
    raw = {"metadata": {"name": "a", "namespace": "default", "labels": {"app": "web"}}, "status": {"podIP": "10.0.0.9"}}
    assert judge(service(), msgspec.convert(raw, Pod), NODE).ipv4 == ("10.0.0.9",)


def test_a_pod_without_an_address_of_the_family():
    verdict = judge(service(ipFamilies=["IPv6"]), pod(), NODE)
    assert (verdict.standing, verdict.reason) == (Standing.EXCLUDED, Reason.NO_ADDRESS_OF_FAMILY)
    assert not verdict.in_endpoints
    assert verdict.ipv4 == ("10.1.0.1",)


def test_both_families():
    dual = pod(ips=("fd00::1", "10.1.0.1", "fd00::2"))
    verdict = judge(service(ipFamilies=["IPv4", "IPv6"]), dual, NODE)
    assert verdict.addresses("IPv6") == ("fd00::1", "fd00::2")
    assert verdict.endpoints_address == "10.1.0.1"
    assert judge(service(ipFamilies=["IPv6", "IPv4"]), dual, NODE).endpoints_address == "fd00::1"


@pytest.mark.parametrize(
    ("cluster_ip", "families", "address"),
    [
        ("10.96.0.1", ("IPv4",), "10.1.0.1"),
        ("fd00:96::1", ("IPv6",), "fd00::1"),
        ("None", ("IPv4", "IPv6"), "fd00::1"),  # headless: left to the Pod
        ("", ("IPv4", "IPv6"), "fd00::1"),
    ],
)
def test_families_of_a_service_that_does_not_name_them(cluster_ip, families, address):
    old = service(clusterIP=cluster_ip, ipFamilies=[])
    assert old.families == families
    assert judge(old, pod(ips=("fd00::1", "10.1.0.1")), NODE).endpoints_address == address


def test_a_missing_node_keeps_a_pod_out_of_slices_only():
    verdict = judge(service(), pod(node="ghost"), None)
    assert (verdict.standing, verdict.reason, verdict.node) == (Standing.EXCLUDED, Reason.NODE_MISSING, "ghost")
    assert verdict.in_endpoints
    assert judge(service(publishNotReadyAddresses=True), pod(node="ghost"), None).in_slices


def test_labels_that_do_not_match_are_named():
    web = service(selector={"app": "web", "tier": "front", "env": "prod"})
    verdict = judge(web, pod(labels={"app": "web", "tier": "back"}), NODE)
    assert verdict.reason is Reason.LABEL_MISMATCH
    assert set(verdict.wrong_labels) == {WrongLabel("tier", "front", "back"), WrongLabel("env", "prod", None)}


@pytest.mark.parametrize(
    ("web", "reason"),
    [
        (service(selector={}), Reason.NO_SELECTOR),
        (service(type="ExternalName"), Reason.EXTERNAL_NAME),
    ],
)
def test_services_that_select_nothing(web, reason):
    verdict = judge(web, pod(), NODE)
    assert (verdict.standing, verdict.reason) == (Standing.EXCLUDED, reason)
    assert not web.managed


def test_a_pod_of_another_namespace():
    web = service()
    elsewhere = msgspec.structs.replace(web, metadata=msgspec.structs.replace(web.metadata, namespace="other"))
    assert judge(elsewhere, pod(), NODE).reason is Reason.OTHER_NAMESPACE
    assert not selects(elsewhere, pod())


def test_a_number_needs_no_declaration_and_a_name_does():
    verdict = judge(service(ports=NAMED), pod(ports=[HTTP]), NODE)
    assert verdict.ports == (Port("web", 8080, "TCP", "h2c"),)
    verdict = judge(service(ports=NAMED), pod(ports=[{**HTTP, "name": "other"}]), NODE)
    assert verdict.ports == ()
    assert Reason.PORT_UNRESOLVED in verdict.reasons
    [missing] = verdict.unresolved
    assert (missing.target, missing.protocol, [p.name for p in missing.declared]) == ("http", "TCP", ["other"])
    assert verdict.in_slices  # with no ports
    assert not verdict.in_endpoints


def test_the_protocol_must_match_too():
    assert judge(service(ports=NAMED), pod(ports=[{**HTTP, "protocol": "UDP"}]), NODE).ports == ()


def test_the_first_declaration_wins_and_sidecars_come_last():
    sidecar = {"restartPolicy": "Always", "ports": [{**HTTP, "containerPort": 1}]}
    once = {"ports": [{**HTTP, "containerPort": 2}]}
    both = pod(ports=[HTTP, {**HTTP, "containerPort": 9}], init_containers=[sidecar])
    assert judge(service(ports=NAMED), both, NODE).ports[0].port == 8080
    assert judge(service(ports=NAMED), pod(init_containers=[once, sidecar]), NODE).ports[0].port == 1
    assert judge(service(ports=NAMED), pod(init_containers=[once]), NODE).ports == ()


def test_a_service_without_ports():
    assert judge(service(ports=[], clusterIP="None"), pod(), NODE).in_endpoints
    verdict = judge(service(ports=[]), pod(), NODE)
    assert not verdict.in_endpoints
    assert verdict.in_slices
    assert Reason.NO_PORTS in verdict.reasons


def test_a_hostname_counts_only_under_the_services_own_subdomain():
    assert judge(service(), pod(hostname="h", subdomain="web"), NODE).hostname == "h"
    assert judge(service(), pod(hostname="h", subdomain="other"), NODE).hostname == ""
    assert judge(service(), pod(hostname="", subdomain="web"), NODE).hostname == ""


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("10.1.2.3", ("IPv4", "10.1.2.3")),
        ("010.001.000.002", ("IPv4", "10.1.0.2")),
        ("::ffff:10.1.0.2", ("IPv4", "10.1.0.2")),
        ("FD00:0::1", ("IPv6", "fd00::1")),
        ("256.1.1.1", None),
        ("fe80::1%eth0", None),
        ("", None),
    ],
)
def test_addresses_are_read_leniently_and_printed_canonically(text, parsed):
    assert parse_ip(text) == parsed


def test_views_read_what_the_api_writes():
    raw = b"""{"kind":"Service","apiVersion":"v1","metadata":{"name":"a","namespace":"b","managedFields":[{}]},
        "spec":{"clusterIP":"None","clusterIPs":["None"],"type":"ClusterIP","sessionAffinity":"None",
        "ports":[{"port":80,"protocol":"TCP","targetPort":"http","nodePort":30000}]},"status":{"loadBalancer":{}}}"""
    web = msgspec.json.decode(raw, type=Service)
    assert web.headless
    assert web.spec.ports[0].target_port == "http"


# --- changes that matter -----------------------------------------------------------------------------


def changed(made, part, **fields):
    inner = msgspec.structs.replace(getattr(made, part), **fields)
    return msgspec.structs.replace(made, **{part: inner})


OTHER_CONDITION = Condition("ContainersReady", "False")


@pytest.mark.parametrize(
    ("part", "fields"),
    [
        ("metadata", {"resource_version": "7"}),
        ("metadata", {"annotations": {"a": "b"}}),
        ("status", {"container_statuses": (ContainerStatus("c", restart_count=3),)}),
        ("status", {"conditions": (*pod().status.conditions, OTHER_CONDITION)}),
    ],
)
def test_most_changes_of_a_pod_do_not_matter(part, fields):
    assert same(pod(), changed(pod(), part, **fields))


@pytest.mark.parametrize(
    "other",
    [
        pod(ready=False),
        pod(terminating=True),
        pod(phase="Failed"),
        pod(ips=("10.1.0.9",)),
        changed(pod(), "metadata", uid="another"),
        changed(pod(), "metadata", labels={"app": "other"}),
        changed(pod(), "spec", node_name="node-b"),
        changed(pod(), "spec", hostname="a", subdomain="web"),
        changed(pod(), "spec", containers=(Container("c", ports=(ContainerPort(8080, "http"),)),)),
        changed(pod(), "status", conditions=(Condition("Ready", "True", "2026-01-03T00:00:00Z"),)),
    ],
)
def test_changes_of_a_pod_that_matter(other):
    assert not same(pod(), other)
    assert same(other, other)
