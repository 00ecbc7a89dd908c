"""ConfigMap, Secret, ServiceAccount, Lease, Namespace and Node."""

from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from kind_rules import NOW, Recorded, change, check, create, recorded_creations, sentences
from merge_patch import merged

from seamark.errors import Forbidden, Invalid, Object
from seamark.kinds.core.configmap import CONFIG_MAP, MAX_SIZE, decoded_size
from seamark.kinds.core.lease import LEASE
from seamark.kinds.core.namespace import NAMESPACE
from seamark.kinds.core.node import NODE
from seamark.kinds.core.secret import SECRET
from seamark.kinds.core.serviceaccount import SERVICE_ACCOUNT
from seamark.kinds.kind import Kind
from seamark.kinds.values.times import parse

PLURALS = ("configmaps", "secrets", "serviceaccounts", "leases", "namespaces", "nodes")


@pytest.mark.parametrize("recorded", recorded_creations(*PLURALS), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def made(kind: Kind, **more: Any) -> Object:
    return create(kind, {"metadata": {"name": "x"}, **more})


def refusals(kind: Kind, **more: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        made(kind, **more)
    return sentences(refused.value)


def change_refusals(kind: Kind, old: Object, patch: Object, subresource: str = "") -> list[str]:
    with pytest.raises(Invalid) as refused:
        change(kind, old, merged(old, patch), subresource)
    return sentences(refused.value)


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


# --- ConfigMap and Secret ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 255])
def test_decoded_size(size: int) -> None:
    assert decoded_size(b64encode(b"x" * size).decode()) == size


def test_config_maps_have_a_size() -> None:
    made(CONFIG_MAP, data={"a": "x" * MAX_SIZE})
    assert refusals(
        CONFIG_MAP, data={"a": "x" * (MAX_SIZE // 2)}, binaryData={"b": encoded("x" * (MAX_SIZE // 2 + 1))}
    ) == ["[]: Too long: may not be more than 1048576 bytes"]
    assert refusals(SECRET, data={"a": encoded("x" * (MAX_SIZE + 1))}) == [
        "data: Too long: may not be more than 1048576 bytes"
    ]


@pytest.mark.parametrize(
    ("key", "sentence"),
    [(".", "must not be '.'"), ("..", "must not be '..'"), ("..a", "must not start with '..'")],
)
def test_keys_are_file_names(key: str, sentence: str) -> None:
    expected = [f'data[{key}]: Invalid value: "{key}": {sentence}']
    assert refusals(CONFIG_MAP, data={key: "x"}) == expected
    assert refusals(SECRET, stringData={key: "x"}) == expected


@pytest.mark.parametrize(
    ("kind", "value", "other", "parts"),
    [(CONFIG_MAP, "x", "y", ("data", "binaryData")), (SECRET, encoded("x"), encoded("y"), ("data",))],
)
def test_what_is_immutable_stays(kind: Kind, value: str, other: str, parts: tuple[str, ...]) -> None:
    old = made(kind, immutable=True, data={"a": value})
    assert change(kind, old, merged(old, {"metadata": {"labels": {"a": "b"}}}))
    for part in parts:
        patch = {part: {"b": encoded("y") if part == "binaryData" else other}}
        assert change_refusals(kind, old, patch) == [f"{part}: Forbidden: field is immutable when `immutable` is set"]
    assert change_refusals(kind, old, {"immutable": None}) == [
        "immutable: Forbidden: field is immutable when `immutable` is set"
    ]


def test_string_data_is_written_only() -> None:
    secret = made(SECRET, data={"a": encoded("1"), "b": encoded("2")}, stringData={"b": "3", "c": "ü"})
    assert secret["data"] == {"a": encoded("1"), "b": encoded("3"), "c": encoded("ü")}
    assert "stringData" not in secret
    assert secret["type"] == "Opaque"
    assert SECRET.fields(secret) == {"type": "Opaque"}


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        ("kubernetes.io/tls", {}, ["data[tls.crt]: Required value", "data[tls.key]: Required value"]),
        ("kubernetes.io/tls", {"tls.crt": ""}, ["data[tls.key]: Required value"]),
        ("kubernetes.io/basic-auth", {}, ["data[username]: Required value", "data[password]: Required value"]),
        ("kubernetes.io/ssh-auth", {}, ["data[ssh-privatekey]: Required value"]),
        ("kubernetes.io/dockerconfigjson", {}, ["data[.dockerconfigjson]: Required value"]),
        (
            "kubernetes.io/dockercfg",
            {".dockercfg": encoded("[]")},
            [
                'data[.dockercfg]: Invalid value: "<secret contents redacted>": json: cannot unmarshal array into Go '
                "value of type map[string]interface {}"
            ],
        ),
        (
            "kubernetes.io/dockerconfigjson",
            {".dockerconfigjson": encoded("a")},
            [
                "data[.dockerconfigjson]: Invalid value: \"<secret contents redacted>\": invalid character 'a' looking "
                "for beginning of value"
            ],
        ),
        (
            "kubernetes.io/service-account-token",
            {},
            ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
        ),
    ],
)
def test_types_of_secrets_demand_keys(kind: str, data: Object, expected: list[str]) -> None:
    assert refusals(SECRET, type=kind, data=data) == expected


def key_pair(name: str) -> tuple[str, str]:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    then = datetime(2030, 1, 1, tzinfo=UTC)
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), 1, then, then + timedelta(days=1))
    certificate = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return b64encode(certificate).decode(), b64encode(pem).decode()


def test_certificates_and_keys_should_fit() -> None:
    certificate, key = key_pair("a")
    _, other = key_pair("b")
    nothing = encoded("nothing")

    def warnings(certificate: str, key: str) -> list[str]:
        secret = made(SECRET, type="kubernetes.io/tls", data={"tls.crt": certificate, "tls.key": key})
        return SECRET.warnings(secret, None)

    assert warnings(certificate, key) == []
    assert warnings(certificate, other) == ["tls: private key does not match public key"]
    assert warnings(nothing, key) == ["tls: failed to find any PEM data in certificate input"]
    assert warnings(certificate, nothing) == ["tls: failed to find any PEM data in key input"]
    assert warnings(key, certificate)[0].endswith("PEM inputs may have been switched")
    assert warnings(certificate, certificate) == [
        "tls: found a certificate rather than a key in the PEM for the private key"
    ]


def test_the_type_of_a_secret_stays() -> None:
    assert change_refusals(SECRET, made(SECRET), {"type": "example.com/x"}) == [
        'type: Invalid value: "example.com/x": field is immutable'
    ]


# --- ServiceAccount and Lease ------------------------------------------------------------------------------


def test_accounts_list_secrets_by_name_only() -> None:
    account = made(SERVICE_ACCOUNT, secrets=[{"name": "s", "namespace": "other", "kind": "Secret"}])
    assert account["secrets"] == [{"name": "s"}]
    assert list(SERVICE_ACCOUNT.row(account, parse(NOW))) == ["x", "0s"]
    annotated = merged(account, {"metadata": {"annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}})
    assert len(SERVICE_ACCOUNT.warnings(annotated, account)) == 1
    assert SERVICE_ACCOUNT.warnings(annotated, annotated) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"leaseDurationSeconds": 0}, "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"),
        ({"leaseTransitions": -1}, "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"),
        (
            {"strategy": "Random"},
            'spec.strategy.strategy: Unsupported value: "Random": supported values: "OldestEmulationVersion"',
        ),
        ({"preferredHolder": "me"}, "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined"),
    ],
)
def test_leases_refused(spec: Object, expected: str) -> None:
    assert refusals(LEASE, spec=spec) == [expected]


def test_leases_show_their_holder() -> None:
    assert list(LEASE.row(made(LEASE, spec={"holderIdentity": "me"}), parse(NOW)))[:2] == ["x", "me"]
    assert list(LEASE.row(made(LEASE), parse(NOW)))[1] == ""


# --- Namespace ---------------------------------------------------------------------------------------------


def test_a_namespace_keeps_its_name_label_and_its_finalizers() -> None:
    old = made(NAMESPACE, spec={"finalizers": ["example.com/x"]})
    assert old["spec"]["finalizers"] == ["example.com/x", "kubernetes"]
    new = change(NAMESPACE, old, {"metadata": {"name": "x", "labels": {"kubernetes.io/metadata.name": "lie"}}})
    assert new == old
    finalized = change(NAMESPACE, old, merged(old, {"spec": {"finalizers": None}}), "finalize")
    assert finalized["spec"] == {}
    assert change(NAMESPACE, finalized, finalized)["spec"] == {}


def test_namespaces_end_in_order() -> None:
    namespace = made(NAMESPACE)
    assert NAMESPACE.held(namespace)
    NAMESPACE.begin_deletion(namespace)
    assert namespace["status"]["phase"] == "Terminating"
    assert NAMESPACE.fields(namespace) == {"status.phase": "Terminating"}
    del namespace["spec"]["finalizers"]
    assert not NAMESPACE.held(namespace)
    assert NAMESPACE.held(merged(namespace, {"metadata": {"finalizers": ["example.com/x"]}}))
    for name in ("default", "kube-system", "kube-public"):
        with pytest.raises(Forbidden, match="this namespace may not be deleted"):
            NAMESPACE.check_deletion(name)
    NAMESPACE.check_deletion("x")


def test_the_phase_follows_the_deletion() -> None:
    old = made(NAMESPACE)
    assert change_refusals(NAMESPACE, old, {"status": {"phase": "Terminating"}}, "status") == [
        "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
    ]
    going = merged(old, {"metadata": {"deletionTimestamp": NOW}, "status": {"phase": "Terminating"}})
    assert change_refusals(NAMESPACE, going, {"status": {"phase": "Active"}}, "status") == [
        "status.Phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"
    ]


# --- Node --------------------------------------------------------------------------------------------------


def test_new_nodes_take_no_pods_yet() -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    own = {"key": "a", "effect": "NoExecute"}
    assert made(NODE, spec={"taints": [own]})["spec"]["taints"] == [own, taint]
    assert made(NODE, spec={"taints": [taint]})["spec"]["taints"] == [taint]


def test_what_a_kubelet_said_of_its_configuration_is_dropped() -> None:
    told = {"status": {"config": {"error": "x"}}}
    node = made(NODE, **told)
    assert "config" not in node["status"]
    assert "config" not in change(NODE, node, {**node, **told}, "status")["status"]


@pytest.mark.parametrize(
    ("spec", "ranges"),
    [
        ({"podCIDR": "10.0.0.0/24"}, ("10.0.0.0/24", ["10.0.0.0/24"])),
        ({"podCIDRs": ["10.0.0.0/24", "fd00::/64"]}, ("10.0.0.0/24", ["10.0.0.0/24", "fd00::/64"])),
        ({"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.0.0/24"]}, ("10.0.1.0/24", ["10.0.1.0/24"])),
    ],
)
def test_pod_ranges_agree(spec: Object, ranges: tuple[str, list[str]]) -> None:
    node = made(NODE, spec=spec)
    assert (node["spec"]["podCIDR"], node["spec"]["podCIDRs"]) == ranges


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        ({"spec": {"podCIDR": "x"}}, ["spec.podCIDRs[0]"]),
        ({"spec": {"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}}, ["spec.podCIDRs"]),
        ({"spec": {"taints": [{"key": "a", "effect": "Sometimes"}]}}, ["metadata.taints[0].effect"]),
        ({"spec": {"taints": [{"key": "a"}]}}, ["metadata.taints[0].effect"]),
        ({"spec": {"taints": [{"key": "a", "effect": "NoExecute"}] * 2}}, ["metadata.taints[1]"]),
        ({"status": {"capacity": {"cpu": "-1"}}}, ["status.capacity.cpu", "status.allocatable.cpu"]),
        ({"status": {"capacity": {"pods": "1.5"}, "allocatable": {"pods": "1"}}}, ["status.capacity.pods"]),
    ],
)
def test_nodes_refused(more: Object, fields: list[str]) -> None:
    with pytest.raises(Invalid) as refused:
        made(NODE, **more)
    assert [cause.field for cause in refused.value.causes] == fields


def test_taints_are_unique() -> None:
    assert refusals(
        NODE, spec={"taints": [{"key": "a", "effect": "NoExecute"}, {"effect": "NoExecute", "key": "a"}]}
    ) == [
        'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"","Effect":"NoExecute","TimeAdded":null}: taints '
        "must be unique by key and effect pair"
    ]


def test_nodes_keep_their_range_and_their_provider() -> None:
    old = made(NODE, spec={"podCIDR": "10.0.0.0/24", "providerID": "a"})
    patch = {"spec": {"podCIDR": "10.0.1.0/24", "podCIDRs": ["10.0.1.0/24"], "providerID": "b"}}
    assert change_refusals(NODE, old, patch) == [
        'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
        'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
    ]
    fresh = made(NODE)
    assert change(NODE, fresh, merged(fresh, {"spec": {"podCIDR": "10.0.0.0/24", "providerID": "a"}}))
    assert change_refusals(NODE, fresh, {"spec": {"externalID": "x"}}) == [
        "spec.externalID: Forbidden: may not be updated"
    ]


def test_old_fields_of_nodes_are_warned_about() -> None:
    assert NODE.warnings(made(NODE, spec={"externalID": "x"}), None) == [
        "spec.externalID: this field is deprecated, and is unused by Kubernetes"
    ]
    assert NODE.warnings(made(NODE), None) == []


def test_node_addresses_are_said_once() -> None:
    address = {"type": "InternalIP", "address": "10.0.0.1"}
    assert change_refusals(NODE, made(NODE), {"status": {"addresses": [address, address]}}, "status") == [
        'status.addresses[1]: Duplicate value: {"Type":"InternalIP","Address":"10.0.0.1"}'
    ]


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ({}, "Unknown"),
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, "Ready"),
        ({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, "NotReady"),
        (
            {"spec": {"unschedulable": True}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}},
            "Ready,SchedulingDisabled",
        ),
    ],
)
def test_node_states(more: Object, state: str) -> None:
    node = made(NODE, **more)
    row = list(NODE.row(node, parse(NOW)))
    assert row[1:3] == [state, "<none>"]
    assert row[5:] == ["<none>", "<none>", "<unknown>", "<unknown>", "<unknown>"]
    unschedulable = "true" if "spec" in more else "false"
    assert NODE.fields(node) == {"spec.unschedulable": unschedulable}
