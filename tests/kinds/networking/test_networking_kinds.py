"""Ingress, IngressClass and NetworkPolicy."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import Recorded, check, recorded_creations
from neighbours import Neighbours, concerned, request
from refusing import change_refusals, made, patched, refusals

from seamark.errors import Object
from seamark.kinds.networking.ingress import CLASS_ANNOTATION, INGRESS
from seamark.kinds.networking.ingressclass import DEFAULT_ANNOTATION, INGRESS_CLASS
from seamark.kinds.networking.networkpolicy import NETWORK_POLICY
from seamark.kinds.resource import INGRESS_CLASSES


@pytest.mark.parametrize("recorded", recorded_creations("ingresses", "ingressclasses", "networkpolicies"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


SERVICE = {"service": {"name": "s", "port": {"number": 80}}}
BACKEND: Object = {"defaultBackend": SERVICE}


def paths(*entries: Object, host: str = "") -> Object:
    rule: Object = {"http": {"paths": list(entries)}}
    return {"rules": [{"host": host, **rule} if host else rule]}


# --- Ingress --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/a/./b", "must not contain '/./'"),
        ("/a%2Fb", "must not contain '%2F'"),
        ("/a/..", "cannot end with '/..'"),
        ("/a/.", "cannot end with '/.'"),
    ],
)
def test_paths_that_could_mean_another(path: str, sentence: str) -> None:
    spec = paths({"path": path, "pathType": "Exact", "backend": SERVICE})
    assert refusals(INGRESS, spec=spec) == [f'spec.rules[0].http.paths[0].path: Invalid value: "{path}": {sentence}']
    loose = paths({"path": path, "pathType": "ImplementationSpecific", "backend": SERVICE})
    assert made(INGRESS, spec=loose)["spec"] == loose


def test_a_path_of_its_implementation_may_be_absent_but_not_relative() -> None:
    spec = paths({"path": "x", "pathType": "ImplementationSpecific", "backend": SERVICE})
    assert refusals(INGRESS, spec=spec) == [
        'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path'
    ]


def test_backends() -> None:
    named = {"service": {"port": {"number": 80}}}
    assert refusals(INGRESS, spec={"defaultBackend": named}) == ["spec.defaultBackend.service.name: Required value"]
    resource = {"resource": {"apiGroup": "A_", "kind": "a/b", "name": ".."}}
    wrong = refusals(INGRESS, spec={"defaultBackend": resource})
    assert wrong[0].startswith('spec.defaultBackend.resource.apiGroup: Invalid value: "A_": a lowercase RFC 1123')
    assert wrong[1:] == [
        "spec.defaultBackend.resource.kind: Invalid value: \"a/b\": may not contain '/'",
        "spec.defaultBackend.resource.name: Invalid value: \"..\": may not be '..'",
    ]


def test_the_two_ways_to_name_the_class_must_agree_at_first() -> None:
    old_way = {"annotations": {CLASS_ANNOTATION: "a"}}
    assert refusals(INGRESS, metadata=old_way, spec={**BACKEND, "ingressClassName": "b"}) == [
        f'annotations.{CLASS_ANNOTATION}: Invalid value: "a": must match `ingressClassName` when both are specified'
    ]
    both = made(INGRESS, metadata=old_way, spec={**BACKEND, "ingressClassName": "a"})
    assert patched(INGRESS, both, {"spec": {"ingressClassName": "b"}})["spec"]["ingressClassName"] == "b"
    assert INGRESS.warnings(both, both) == []


def test_what_was_accepted_before_may_stay() -> None:
    old = made(INGRESS, spec={**BACKEND, "tls": [{"secretName": "t"}]})
    old["spec"]["tls"][0]["secretName"] = "A_B"
    assert patched(INGRESS, old, {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}
    wild = made(INGRESS, spec=paths({"path": "/", "pathType": "Prefix", "backend": SERVICE}, host="*.example.com"))
    wild["spec"]["rules"][0]["http"]["paths"] = []
    assert patched(INGRESS, wild, {"metadata": {"labels": {"a": "b"}}})["metadata"]["labels"] == {"a": "b"}


def test_a_wildcard_stands_alone_and_first() -> None:
    for host in ("a.*.com", "*.", "x" * 250 + ".*.com"):
        (*length, pattern) = refusals(INGRESS, spec=paths(host=host) | {"defaultBackend": SERVICE})[:-1]
        assert "a wildcard DNS-1123 subdomain must start with '*.'" in pattern
        assert length == (
            [f'spec.rules[0].host: Invalid value: "{host}": must be no more than 253 characters'] * (len(host) > 253)
        )


def class_of(name: str, when: str, *, default: bool = True) -> Object:
    annotations = {DEFAULT_ANNOTATION: "true"} if default else {}
    return {"metadata": {"name": name, "creationTimestamp": when, "annotations": annotations}, "spec": {}}


@pytest.mark.parametrize(
    ("classes", "chosen"),
    [
        ([], None),
        ([class_of("a", "2030-01-01T00:00:00Z", default=False)], None),
        ([class_of("a", "2030-01-01T00:00:00Z"), class_of("b", "2031-01-01T00:00:00Z")], "b"),
        ([class_of("b", "2030-01-01T00:00:00Z"), class_of("a", "2030-01-01T00:00:00Z")], "a"),
    ],
)
def test_the_default_class(classes: list[Object], chosen: str | None) -> None:
    def admitted(ingress: Object) -> Any:
        asked = request(INGRESS, ingress, neighbours=Neighbours({INGRESS_CLASSES: classes}))
        for plugin in concerned(asked):
            plugin.mutate(asked)
        return ingress["spec"].get("ingressClassName")

    assert admitted({"metadata": {"name": "x"}, "spec": {}}) == chosen
    assert admitted({"metadata": {"name": "x"}, "spec": {"ingressClassName": "mine"}}) == "mine"
    assert admitted({"metadata": {"name": "x", "annotations": {CLASS_ANNOTATION: "old"}}, "spec": {}}) is None


# --- IngressClass ---------------------------------------------------------------------------------------------------


def test_a_controller_is_a_path_below_a_domain() -> None:
    assert refusals(INGRESS_CLASS, spec={"controller": f"a.b/{'c' * 250}"}) == [
        "spec.controller: Too long: may not be more than 250 bytes"
    ]
    wrong = refusals(INGRESS_CLASS, spec={"controller": "A.b/c d"})
    assert wrong[0].startswith('spec.controller: Invalid value: "A.b": a lowercase RFC 1123 subdomain')
    assert wrong[1].startswith('spec.controller: Invalid value: "c d": Invalid path (regex used for validation is')
    assert "must be a domain-prefixed path" in refusals(INGRESS_CLASS, spec={"controller": "/x"})[0]


def test_a_class_keeps_its_controller() -> None:
    old = made(INGRESS_CLASS, spec={"controller": "a.b/c"})
    assert change_refusals(INGRESS_CLASS, old, {"spec": {"controller": "a.b/d"}}) == [
        'spec.controller: Invalid value: "a.b/d": field is immutable'
    ]
    changed = patched(INGRESS_CLASS, old, {"spec": {"parameters": {"kind": "K", "name": "n"}}})
    assert changed["metadata"]["generation"] == 2


def test_parameters_in_a_namespace() -> None:
    parameters = {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "A"}
    assert refusals(INGRESS_CLASS, spec={"controller": "a.b/c", "parameters": parameters})[0].startswith(
        'spec.parameters.namespace: Invalid value: "A": a lowercase RFC 1123 label'
    )


# --- NetworkPolicy --------------------------------------------------------------------------------------------------


def block(cidr: str, *excepted: str) -> Object:
    return {"podSelector": {}, "egress": [{"to": [{"ipBlock": {"cidr": cidr, "except": list(excepted)}}]}]}


def test_ip_blocks() -> None:
    at = "spec.egress[0].to[0].ipBlock"
    assert refusals(NETWORK_POLICY, spec=block("")) == [f"{at}.cidr: Required value"]
    assert refusals(NETWORK_POLICY, spec=block("10.0.0.1/8")) == [
        f'{at}.cidr: Invalid value: "10.0.0.1/8": must not have bits set beyond the prefix length'
    ]
    assert refusals(NETWORK_POLICY, spec=block("10.0.0.0/8", "10.0.0.0/8", "fd00::/64", "x")) == [
        f'{at}.except[0]: Invalid value: "10.0.0.0/8": must be a strict subset of `cidr`',
        f'{at}.except[1]: Invalid value: "fd00::/64": must be a strict subset of `cidr`',
        f'{at}.except[2]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ]
    odd = made(NETWORK_POLICY, spec=block("fd00:0::/64"))
    assert "should be in RFC 5952 canonical format" in NETWORK_POLICY.warnings(odd, None)[0]


def test_cidrs_that_were_there_may_stay() -> None:
    old = made(NETWORK_POLICY, spec=block("10.0.0.0/8"))
    old["spec"]["egress"][0]["to"][0]["ipBlock"]["cidr"] = "010.0.0.0/8"
    assert patched(NETWORK_POLICY, old, {"spec": {"policyTypes": ["Egress"]}})["metadata"]["generation"] == 2


def test_ranges_of_ports() -> None:
    spec = {"podSelector": {}, "ingress": [{"ports": [{"port": 1, "endPort": 70000}]}]}
    assert refusals(NETWORK_POLICY, spec=spec) == [
        "spec.ingress[0].ports[0].endPort: Invalid value: 70000: must be between 1 and 65535, inclusive"
    ]


@pytest.mark.parametrize(
    ("hosts", "cell"),
    [
        ([], "*"),
        (["", ""], "*"),
        (["", "a", "b", "c"], "a,b,c"),
        (["a", "b", "c", ""], "a,b,c + 1 more..."),
        (["", "a", "b", "c", "d"], "a,b,c + 2 more..."),
    ],
)
def test_hosts_in_tables(hosts: list[str], cell: str) -> None:
    rules = [{"host": host} if host else {} for host in hosts]
    ingress = made(INGRESS, spec={**BACKEND, **({"rules": rules} if rules else {})})
    assert INGRESS.row(ingress, 0.0)[2] == cell


def test_a_policy_for_a_selector_that_cannot_be_read_says_so() -> None:
    policy = made(NETWORK_POLICY, spec={"podSelector": {}})
    policy["spec"]["podSelector"] = {"matchExpressions": [{"key": "a", "operator": "Odd"}]}
    assert NETWORK_POLICY.row(policy, 0.0)[1] == "<error>"
