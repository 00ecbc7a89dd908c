"""Which certificate requests our signers accept, and what is wrong with others."""

from __future__ import annotations

import pytest
from signing import pem

from seamark.kinds.certificates import pkcs10, signers
from seamark.kinds.certificates.signing_request import signer_mistakes, state

CLIENT = ("digital signature", "key encipherment", "client auth")
SERVER = ("digital signature", "key encipherment", "server auth")
NODE = ("system:node:a", ["system:nodes"])


@pytest.mark.parametrize(
    ("signer", "request_", "usages", "sentence"),
    [
        (signers.CLIENT, pem("ann", ["x"]), ["client auth"], ""),
        (signers.CLIENT, pem(), CLIENT, ""),
        (signers.CLIENT, pem(), ["digital signature"], "missing required usage for client certificate: client auth"),
        (signers.CLIENT, pem(), SERVER, "invalid usage for client certificate: server auth"),
        (signers.KUBELET_CLIENT, pem(*NODE), CLIENT, ""),
        (signers.KUBELET_CLIENT, pem(*NODE), ["client auth", "digital signature"], ""),
        (signers.KUBELET_CLIENT, pem("ann"), CLIENT, "subject organization is not system:nodes"),
        (
            signers.KUBELET_CLIENT,
            pem("system:node:a", ["system:nodes", "system:masters"]),
            CLIENT,
            "subject organization is not system:nodes",
        ),
        (
            signers.KUBELET_CLIENT,
            pem("ann", ["system:nodes"]),
            CLIENT,
            "subject common name does not begin with system:node:",
        ),
        (signers.KUBELET_CLIENT, pem(*NODE, dns=["a"]), CLIENT, "DNS subjectAltNames are not allowed"),
        (signers.KUBELET_CLIENT, pem(*NODE, ip=["10.0.0.1"]), CLIENT, "IP subjectAltNames are not allowed"),
        (signers.KUBELET_CLIENT, pem(*NODE, email=["a@b.c"]), CLIENT, "Email subjectAltNames are not allowed"),
        (signers.KUBELET_CLIENT, pem(*NODE, uri=["a://b"]), CLIENT, "URI subjectAltNames are not allowed"),
        (
            signers.KUBELET_CLIENT,
            pem(*NODE),
            SERVER,
            "usages did not match [client auth digital signature key encipherment]",
        ),
        (signers.KUBELET_SERVING, pem(*NODE, dns=["a"]), SERVER, ""),
        (signers.KUBELET_SERVING, pem(*NODE, ip=["10.0.0.1"]), SERVER, ""),
        (signers.KUBELET_SERVING, pem(*NODE), SERVER, "DNS or IP subjectAltName is required"),
        (
            signers.KUBELET_SERVING,
            pem(*NODE, dns=["a"], email=["a@b.c"]),
            SERVER,
            "Email subjectAltNames are not allowed",
        ),
        (signers.KUBELET_SERVING, pem(*NODE, dns=["a"], uri=["a://b"]), SERVER, "URI subjectAltNames are not allowed"),
        (
            signers.KUBELET_SERVING,
            pem(*NODE, dns=["a"]),
            CLIENT,
            "usages did not match [digital signature key encipherment server auth]",
        ),
        (signers.LEGACY, pem(), ["any"], ""),
    ],
)
def test_what_is_signed(signer, request_, usages, sentence):
    assert signers.mistake(signer, pkcs10.wanted(pkcs10.parsed(request_)), usages) == sentence


def changed(request: bytes) -> bytes:
    """The request with another name in it, so that its signature is wrong."""
    from base64 import b64decode, b64encode

    body = b"".join(request.splitlines()[1:-1])
    forged = b64encode(b64decode(body).replace(b"ann", b"bob"))
    return b"-----BEGIN CERTIFICATE REQUEST-----\n" + forged + b"\n-----END CERTIFICATE REQUEST-----\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"", "PEM block type must be CERTIFICATE REQUEST"),
        (b"not pem", "PEM block type must be CERTIFICATE REQUEST"),
        (pem().replace(b"CERTIFICATE REQUEST", b"CERTIFICATE"), "PEM block type must be CERTIFICATE REQUEST"),
        (b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "asn1: structure error"),
        (changed(pem()), "signature"),
    ],
)
def test_what_is_no_request(text, sentence):
    with pytest.raises(pkcs10.RequestError, match=sentence):
        pkcs10.parsed(text)


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("example.com/signer", []),
        ("example.com/a.b", []),
        ("", ["Required value"]),
        ("a/b/c", ["must be a fully qualified domain and path of the form 'example.com/signer-name'"]),
        ("example/x", ["should be a domain with at least two segments separated by dots"]),
        ("Example.com/x", ['validating label "Example": a lowercase RFC 1123 label must consist']),
        ("example.com/X", ['validating label "X": a lowercase RFC 1123 subdomain must consist']),
        (f"{'a' * 250}.com/x", ["may not be more than 253 bytes", 'validating label "aaa']),
    ],
)
def test_names_of_signers(name, sentences):
    found = [error.message for error in signer_mistakes(name, "spec.signerName")]
    assert len(found) == len(sentences)
    for message, sentence in zip(found, sentences, strict=True):
        assert sentence in message


def test_what_became_of_a_request():
    approved, failed = {"type": "Approved"}, {"type": "Failed"}
    assert state({}) == "Pending"
    assert state({"conditions": [{"type": "Denied"}]}) == "Denied"
    assert state({"conditions": [approved], "certificate": "x"}) == "Approved,Issued"
    assert state({"conditions": [approved, failed]}) == "Approved,Failed"


def test_chains_of_certificates(tmp_path):
    from seamark.api.certificates import Authority

    authority = Authority(tmp_path)
    authority.prepare(["x"])
    good = authority.ca_pem
    assert pkcs10.certificate_mistake(b"") == ""
    assert pkcs10.certificate_mistake(good + good) == ""
    assert pkcs10.certificate_mistake(b"x") == "must contain at least one CERTIFICATE PEM block"
    assert pkcs10.certificate_mistake(pem()) == 'only CERTIFICATE PEM blocks are allowed, found "CERTIFICATE REQUEST"'
    headed = good.replace(b"-----\n", b"-----\nA: b\n\n", 1)
    assert pkcs10.certificate_mistake(headed) == "no PEM block headers are permitted"
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert pkcs10.certificate_mistake(broken) == "x509: malformed certificate"
