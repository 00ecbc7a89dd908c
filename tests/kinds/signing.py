"""Certificate requests and certificates for tests."""

from __future__ import annotations

import datetime
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

KEY = ec.generate_private_key(ec.SECP256R1())
KEY_PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def pem(
    name: str = "ann",
    groups: Sequence[str] = (),
    *,
    dns: Sequence[str] = (),
    ip: Sequence[str] = (),
    email: Sequence[str] = (),
    uri: Sequence[str] = (),
) -> bytes:
    """A request for a certificate."""
    subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([*subject, x509.NameAttribute(NameOID.COMMON_NAME, name)])
    )
    names: list[x509.GeneralName] = [*map(x509.DNSName, dns), *(x509.IPAddress(ip_address(each)) for each in ip)]
    names += [*map(x509.RFC822Name, email), *map(x509.UniformResourceIdentifier, uri)]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)


def signing_request(request: bytes, signer: str, usages: Sequence[str], *, name: str = "r", **spec: Any) -> Any:
    """A CertificateSigningRequest."""
    encoded = b64encode(request).decode()
    return {
        "metadata": {"name": name},
        "spec": {"request": encoded, "signerName": signer, "usages": list(usages), **spec},
    }


@lru_cache
def certificate(name: str = "ca", *, authority: bool = True) -> str:
    """A certificate that signed itself; the same text each time."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = datetime.datetime(2026, 1, 1)
    made = (
        x509.CertificateBuilder(subject, subject, KEY.public_key(), 1, start, start + datetime.timedelta(days=9999))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM).decode()
