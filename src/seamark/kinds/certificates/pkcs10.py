"""What a certificate request (PKCS #10, PEM) asks for, and what is wrong with certificates."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.kinds.values import keys

if TYPE_CHECKING:
    from cryptography.x509 import CertificateSigningRequest

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s.*?-----END \1-----", re.DOTALL)


class RequestError(ValueError):
    """The text is no certificate request; the message says why."""


class WantedCertificate(msgspec.Struct, frozen=True):
    """What a request asks for: a subject and other names for it."""

    common_name: str = ""
    organizations: tuple[str, ...] = ()
    dns_names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()


def parsed(pem: bytes) -> CertificateSigningRequest:
    """The request in a PEM text, whose signature is right; raises RequestError."""
    # Imported here, because it is slow and few servers need it.
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
    from cryptography.x509 import load_der_x509_csr

    block = _BLOCK.search(pem)
    if block is None or block[1] != b"CERTIFICATE REQUEST":
        raise RequestError("PEM block type must be CERTIFICATE REQUEST")
    try:
        request = load_der_x509_csr(keys.request(block[0]))
        request.public_key()
        good = request.is_signature_valid
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm) as error:
        raise RequestError(f"asn1: structure error: {' '.join(str(error).split())}") from error
    if not good:
        raise RequestError("x509: signature does not match the request's key")
    return request


def wanted(request: CertificateSigningRequest) -> WantedCertificate:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    def subject(oid: Any) -> tuple[str, ...]:
        return tuple(str(each.value) for each in request.subject.get_attributes_for_oid(oid))

    try:
        names = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    return WantedCertificate(
        common_name=(subject(NameOID.COMMON_NAME) or ("",))[-1],
        organizations=subject(NameOID.ORGANIZATION_NAME),
        dns_names=tuple(names.get_values_for_type(x509.DNSName)),
        addresses=tuple(map(str, names.get_values_for_type(x509.IPAddress))),
        emails=tuple(names.get_values_for_type(x509.RFC822Name)),
        uris=tuple(names.get_values_for_type(x509.UniformResourceIdentifier)),
    )


def certificate_mistake(pem: bytes) -> str:
    """Why a text is not a chain of certificates; empty if it is one, or is empty."""
    from cryptography.x509 import load_pem_x509_certificate

    blocks = list(_BLOCK.finditer(pem))
    if not blocks:
        return "must contain at least one CERTIFICATE PEM block" if pem else ""
    for block in blocks:
        if block[1] != b"CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{block[1].decode()}"'
        if b":" in block[0]:
            return "no PEM block headers are permitted"
        try:
            load_pem_x509_certificate(block[0])
        except ValueError:
            return "x509: malformed certificate"
    return ""


def anchor_mistakes(bundle: str) -> list[str]:
    """What is wrong with the certificates of authorities in a text; text between them does not count."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    wrong: list[str] = []
    found: dict[bytes, list[int]] = {}
    for i, block in enumerate(_BLOCK.finditer(bundle.encode())):
        if block[1] != b"CERTIFICATE":
            wrong.append(f"entry {i} has bad block type: {block[1].decode()}")
            continue
        if b":" in block[0]:
            wrong.append(f"entry {i} has PEM block headers")
            continue
        try:
            certificate = x509.load_pem_x509_certificate(block[0])
            constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        except x509.ExtensionNotFound:
            wrong.append(f"entry {i} does not have the CA bit set")
        except ValueError:
            wrong.append(f"entry {i} does not parse as X.509")
        else:
            if not constraints.ca:
                wrong.append(f"entry {i} does not have the CA bit set")
            else:
                found.setdefault(certificate.public_bytes(Encoding.DER), []).append(i)
    if not found:
        wrong.append("at least one trust anchor must be provided")
    repeated = [indices for indices in found.values() if len(indices) > 1]
    return wrong + [f"duplicate trust anchor (indices [{' '.join(map(str, indices))}])" for indices in repeated]
