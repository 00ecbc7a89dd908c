"""ClusterTrustBundles and PodCertificateRequests: what is right and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest
from signing import certificate

from seamark.kinds.certificates.pod_certificate_request import POD_CERTIFICATE_REQUEST
from seamark.kinds.certificates.trust_bundle import TRUST_BUNDLE

Object = dict[str, Any]


def bundle(trusted: str, name: str = "b", signer: str = "") -> Object:
    return {"metadata": {"name": name}, "spec": {"signerName": signer, "trustBundle": trusted}}


def sentences(found: Any) -> list[str]:
    return [f"{each.field}: {each.message}" for each in found]


HIDDEN = 'spec.trustBundle: Invalid value: "<value omitted>": '


@pytest.mark.parametrize(
    ("obj", "wrong"),
    [
        (bundle(certificate()), []),
        (bundle(certificate() + "between\n" + certificate("other")), []),
        (bundle(certificate(), "example.com:s:b", "example.com/s"), []),
        (bundle(""), [HIDDEN + "at least one trust anchor must be provided"]),
        (bundle(certificate() * 2), [HIDDEN + "duplicate trust anchor (indices [0 1])"]),
        (
            bundle(certificate(authority=False) + certificate()),
            [HIDDEN + "entry 0 does not have the CA bit set"],
        ),
        (
            bundle(certificate() + certificate("x").replace("CERTIFICATE", "PUBLIC KEY")),
            [HIDDEN + "entry 1 has bad block type: PUBLIC KEY"],
        ),
        (
            bundle(certificate() + "-----BEGIN CERTIFICATE-----\nMAAA\n-----END CERTIFICATE-----\n"),
            [HIDDEN + "entry 1 does not parse as X.509"],
        ),
        (
            bundle(certificate(), "a:b"),
            [
                'metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its '
                "name"
            ],
        ),
        (
            bundle(certificate(), "b", "example.com/s"),
            [
                'metadata.name: Invalid value: "b": ClusterTrustBundle for signerName example.com/s must be named with '
                "prefix example.com:s:"
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_bundle(obj: Object, wrong: list[str]) -> None:
    assert sentences(TRUST_BUNDLE.validate(obj)) == wrong


def test_a_bundle_keeps_its_signer() -> None:
    old = bundle(certificate(), "example.com:s:b", "example.com/s")
    assert TRUST_BUNDLE.validate_update(old, old) == []
    [wrong] = TRUST_BUNDLE.validate_update(bundle(certificate(), "b"), bundle(certificate(), "b", "example.com/s"))
    assert wrong.field == "spec.signerName"
    assert TRUST_BUNDLE.row(old, 0.0)[:2] == ["example.com:s:b", "example.com/s"]


def request(**changed: Any) -> Object:
    spec = {
        "signerName": "example.com/s",
        "podName": "p",
        "podUID": "1",
        "serviceAccountName": "default",
        "serviceAccountUID": "2",
        "nodeName": "n",
        "nodeUID": "3",
        "maxExpirationSeconds": 86400,
        **changed,
    }
    return {"metadata": {"name": "r", "namespace": "default"}, "spec": spec, "status": {}}


@pytest.mark.parametrize(
    ("changed", "fields"),
    [
        ({}, []),
        ({"signerName": "s"}, ["spec.signerName"]),
        ({"podName": "P"}, ["spec.podName"]),
        ({"nodeUID": ""}, ["spec.nodeUID"]),
        ({"maxExpirationSeconds": None}, ["spec.maxExpirationSeconds"]),
        ({"maxExpirationSeconds": 60}, ["spec.maxExpirationSeconds"]),
    ],
)
def test_what_is_wrong_with_a_request_for_a_pod(changed: Object, fields: list[str]) -> None:
    assert [each.field for each in POD_CERTIFICATE_REQUEST.validate(request(**changed))] == fields


def test_a_request_for_a_pod_never_changes() -> None:
    kind = POD_CERTIFICATE_REQUEST
    assert kind.validate_update(request(), request()) == []
    assert [each.field for each in kind.validate_update(request(podName="q"), request())] == ["spec"]
    issued = {**request(), "status": {"conditions": [{"type": "Issued", "status": "True"}]}}
    assert kind.row(issued, 0.0)[5] == "Issued"
