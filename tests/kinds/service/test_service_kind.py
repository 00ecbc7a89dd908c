"""Rules of Services beyond what is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from seamark.errors import Object
from seamark.kinds.service.service import SERVICE


def service(annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """A Service as it is after allocation."""
    spec.setdefault("ports", [{"port": 80}])
    if spec.get("type") != "ExternalName":
        spec.setdefault("clusterIP", "10.96.0.9")
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("ipFamilies", ["IPv4"])
    obj: Object = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec, "status": {"loadBalancer": {}}}
    if annotations:
        obj["metadata"]["annotations"] = annotations
    SERVICE.default(obj)
    SERVICE.prepare_create(obj)
    return obj


def updated(old: Object, *, annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """What becomes of a merge patch of the spec."""
    merged = {key: value for key, value in {**old["spec"], **spec}.items() if value is not None}
    merged["ports"] = [dict(port) for port in merged.get("ports", [])]
    obj: Object = {"metadata": dict(old["metadata"]), "spec": merged, "status": {"loadBalancer": {}}}
    if annotations is not None:
        obj["metadata"]["annotations"] = annotations
    SERVICE.default(obj)
    SERVICE.prepare_update(obj, old)
    return obj


def said(obj: Object, old: Object | None = None) -> list[str]:
    errors = SERVICE.validate(obj) if old is None else SERVICE.validate_update(obj, old)
    return [f"{error.field}: {error.message}" for error in errors]


# --- what may not be -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        (
            {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 86401}}},
            "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less "
            "than 86400",
        ),
        (
            {"loadBalancerSourceRanges": ["10.0.0.0/8"]},
            "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'",
        ),
        (
            {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.1/8 "]},
            'spec.LoadBalancerSourceRanges[0]: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix '
            "length",
        ),
        ({"ipFamilyPolicy": ""}, 'spec.ipFamilyPolicy: Unsupported value: "": supported values: "PreferDualStack"'),
        (
            {"type": "LoadBalancer", "loadBalancerClass": "a b"},
            'spec.loadBalancerClass: Invalid value: "a b": name part',
        ),
        (
            {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 70000},
            "spec.healthCheckNodePort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ({"type": "LoadBalancer", "externalTrafficPolicy": "Local"}, "spec.healthCheckNodePort: Required value"),
        (
            {"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]},
            'spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":1,"TargetPort":0,'
            '"NodePort":0}',
        ),
        (
            {"type": "NodePort", "ports": [{"name": n, "port": i, "nodePort": 30001} for i, n in ((1, "a"), (2, "b"))]},
            "spec.ports[1].nodePort: Duplicate value: 30001",
        ),
        ({"type": "ExternalName", "externalName": "."}, "spec.externalName: Required value"),
        (
            {"type": "ExternalName", "externalName": "x.example.com", "internalTrafficPolicy": "Node"},
            'spec.internalTrafficPolicy: Unsupported value: "Node": supported values: "Cluster", "Local"',
        ),
        (
            {"externalIPs": ["010.0.0.1"]},
            'spec.externalIPs[0]: Invalid value: "010.0.0.1": must not have leading 0s',
        ),
        ({"clusterIPs": ["10.96.0.9", "x"]}, 'spec.clusterIPs[1]: Invalid value: "x": must be a valid IP address'),
    ],
)
def test_one_mistake(spec: Object, complaint: str) -> None:
    (found,) = said(service(**spec))
    assert found.startswith(complaint)


@pytest.mark.parametrize("name", ["-a", "a-", "a--b", "1", "", "a" * 16, "A"])
def test_target_port_names(name: str) -> None:
    obj = service(ports=[{"port": 80}])
    obj["spec"]["ports"][0]["targetPort"] = name
    assert all(text.startswith(f'spec.ports[0].targetPort: Invalid value: "{name}": must ') for text in said(obj))
    assert said(obj)


def test_topology_annotations_must_agree() -> None:
    keys = ("service.kubernetes.io/topology-mode", "service.kubernetes.io/topology-aware-hints")
    assert said(service(dict.fromkeys(keys, "Auto"))) == []
    assert said(service({keys[0]: "Auto", keys[1]: "Off"})) == [
        f'metadata.annotations[{keys[0]}]: Invalid value: "Auto": must match annotations[{keys[1]}] when both are '
        "specified"
    ]


def test_source_ranges_in_an_annotation() -> None:
    key = "service.beta.kubernetes.io/load-balancer-source-ranges"
    assert said(service({key: ""}, type="LoadBalancer")) == []
    assert said(service({key: " 10.0.0.0/8, 10.1.0.0/16 "}, type="LoadBalancer")) == []
    bad = service({key: "10.0.0.0/8,x"}, type="LoadBalancer")
    (found,) = said(bad)
    assert found.startswith(f'metadata.annotations[{key}]: Invalid value: "x": must be a valid CIDR value')
    assert said(updated(bad), bad) == []
    (found,) = said(service({key: ""}))
    assert found == f"metadata.annotations[{key}]: Forbidden: may only be used when `type` is 'LoadBalancer'"


def test_odd_values_may_stay_but_not_come() -> None:
    old = service(type="LoadBalancer", externalIPs=["010.0.0.1"], loadBalancerSourceRanges=[" 10.0.0.1/8"])
    old["spec"]["clusterIP"] = "010.96.0.9"
    old["spec"]["clusterIPs"] = ["010.96.0.9"]
    assert len(said(old)) == 3
    assert said(updated(old, selector={"a": "b"}), old) == []
    assert len(said(updated(old, externalIPs=["010.0.0.1", "010.0.0.2"]), old)) == 1


# --- what may not change ---------------------------------------------------------------------------


def test_a_second_address_may_not_be_replaced_or_dropped() -> None:
    both = {"clusterIPs": ["10.96.0.9", "fd00:96::9"], "ipFamilies": ["IPv4", "IPv6"]}
    old = service(**both, ipFamilyPolicy="RequireDualStack")
    assert said(updated(old, clusterIPs=["10.96.0.9", "fd00:96::8"]), old) == [
        'spec.clusterIPs[1]: Invalid value: ["10.96.0.9","fd00:96::8"]: may not change once set'
    ]
    assert said(updated(old, clusterIPs=["10.96.0.9"], ipFamilies=["IPv4"]), old) == [
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be set to 'SingleStack' when releasing the "
        "secondary clusterIP",
        "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": must be set to 'SingleStack' when releasing the "
        "secondary ipFamily",
    ]
    assert said(updated(old, clusterIPs=["10.96.0.9"], ipFamilies=["IPv4"], ipFamilyPolicy="SingleStack"), old) == []


def test_headless_services_may_change_their_families() -> None:
    old = service(clusterIP="None")
    assert said(updated(old, ipFamilies=["IPv6"]), old) == []


def test_a_balancer_class_may_come_and_go_only_with_the_type() -> None:
    old = service(type="LoadBalancer")
    assert said(updated(old, loadBalancerClass="a/b"), old) == [
        'spec.loadBalancerClass: Invalid value: "a/b": may not change once set'
    ]
    away = updated(old, type="ClusterIP")
    assert said(updated(away, type="LoadBalancer", loadBalancerClass="a/b"), away) == []


# --- what is dropped with a type -------------------------------------------------------------------


def balancer() -> Object:
    obj = service(
        type="LoadBalancer",
        externalTrafficPolicy="Local",
        healthCheckNodePort=30009,
        loadBalancerClass="a/b",
        ports=[{"port": 80, "nodePort": 30001}],
    )
    obj["status"] = {"loadBalancer": {"ingress": [{"ip": "192.0.2.1", "ipMode": "VIP"}]}, "conditions": []}
    return obj


def test_everything_of_a_balancer_goes_with_it() -> None:
    old = balancer()
    new = updated(old, type="ClusterIP")
    assert said(new, old) == []
    assert new["status"] == {"loadBalancer": {}, "conditions": []}
    assert old["status"]["loadBalancer"]
    gone = {"externalTrafficPolicy", "healthCheckNodePort", "loadBalancerClass", "allocateLoadBalancerNodePorts"}
    assert set(old["spec"]) - set(new["spec"]) == gone


def test_what_was_changed_together_with_the_type_is_refused() -> None:
    old = balancer()
    new = updated(
        old,
        type="ClusterIP",
        externalTrafficPolicy="Cluster",
        healthCheckNodePort=30010,
        loadBalancerClass="c/d",
        allocateLoadBalancerNodePorts=False,
        ports=[{"port": 80, "nodePort": 30002}],
    )
    assert {text.partition(":")[0] for text in said(new, old)} == {
        "spec.externalTrafficPolicy",
        "spec.healthCheckNodePort",
        "spec.loadBalancerClass",
        "spec.allocateLoadBalancerNodePorts",
        "spec.ports[0].nodePort",
    }


def test_external_addresses_keep_the_policy() -> None:
    old = service(type="NodePort", externalIPs=["192.0.2.1"])
    new = updated(old, type="ClusterIP")
    assert new["spec"]["externalTrafficPolicy"] == "Cluster"
    assert "externalTrafficPolicy" not in updated(new, externalIPs=None)["spec"]


def test_selectors_are_never_dropped() -> None:
    old = service(selector={"a": "b"})
    assert updated(old, type="ExternalName", externalName="x.example.com")["spec"]["selector"] == {"a": "b"}


def test_nothing_of_the_old_object_is_edited() -> None:
    old = balancer()
    before = repr(old)
    updated(old, type="ExternalName", externalName="x.example.com")
    updated(old, clusterIP=None, clusterIPs=None, ports=[{"port": 80}])
    assert repr(old) == before


# --- status ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ingress", "complaint"),
    [
        ({"hostname": "lb.example.com"}, ""),
        ({"ip": "192.0.2.1", "ipMode": "Proxy"}, ""),
        ({"ip": "192.0.2.1"}, "ipMode: Required value: must be specified when `ip` is set"),
        ({"hostname": "a.b", "ipMode": "VIP"}, "ipMode: Forbidden: may not be specified when `ip` is not set"),
        ({"ip": "192.0.2.1", "ipMode": "X"}, 'ipMode: Unsupported value: "X": supported values: "Proxy", "VIP"'),
        ({"hostname": "192.0.2.1"}, 'hostname: Invalid value: "192.0.2.1": must be a DNS name, not an IP address'),
    ],
)
def test_ingress(ingress: Object, complaint: str) -> None:
    old = service(type="LoadBalancer")
    new = {**old, "status": {"loadBalancer": {"ingress": [ingress]}}}
    found = [f"{error.field}: {error.message}" for error in SERVICE.validate_status(new, old)]
    assert found == ([f"status.loadBalancer.ingress[0].{complaint}"] if complaint else [])


# --- what people see -------------------------------------------------------------------------------


def test_warnings() -> None:
    def warned(annotations: dict[str, str] | None = None, **spec: Any) -> list[str]:
        return SERVICE.warnings(service(annotations, **spec), None)

    assert warned() == []
    hints = "service.kubernetes.io/topology-aware-hints"
    assert warned({hints: "auto"}) == [
        f"annotation {hints} is deprecated, please use service.kubernetes.io/topology-mode instead"
    ]
    assert warned(clusterIP="None", loadBalancerIP="x", externalIPs=["192.0.2.1"], sessionAffinity="ClientIP") == [
        "spec.loadBalancerIP is ignored for headless services",
        "spec.externalIPs is ignored for headless services",
        "spec.SessionAffinity is ignored for headless services",
    ]
    assert warned(type="ExternalName", externalName="a.b", externalIPs=["192.0.2.1"]) == [
        'spec.externalIPs is ignored when spec.type is "ExternalName"'
    ]
    assert warned(externalName="a.b") == ['spec.externalName is ignored when spec.type is not "ExternalName"']
    odd = warned(
        clusterIP="FD00:96::9", type="LoadBalancer", loadBalancerIP="FD00::1", loadBalancerSourceRanges=["FD00::/8"]
    )
    assert [text.partition(":")[0] for text in odd] == [
        "spec.clusterIPs[0]",
        "spec.loadBalancerIP",
        "spec.loadBalancerSourceRanges[0]",
    ]


def test_external_addresses_in_a_row() -> None:
    def cell(obj: Object) -> str:
        return str(SERVICE.row(obj, 0.0)[3])

    assert cell(service(type="LoadBalancer")) == "<pending>"
    assert cell(service(type="LoadBalancer", externalIPs=["192.0.2.9"])) == "192.0.2.9"
    assert cell(balancer()) == "192.0.2.1"
    assert cell(service(type="NodePort", externalIPs=["192.0.2.9", "192.0.2.8"])) == "192.0.2.9,192.0.2.8"
    assert cell(service(type="Odd")) == "<unknown>"


def test_fields() -> None:
    assert SERVICE.fields(service()) == {"spec.clusterIP": "10.96.0.9", "spec.type": "ClusterIP"}
    external = service(type="ExternalName", externalName="a.b")
    assert SERVICE.fields(external) == {"spec.clusterIP": "", "spec.type": "ExternalName"}
    assert set(SERVICE.fields(external)) == set(SERVICE.field_names)
