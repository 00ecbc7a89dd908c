"""X.509: the certificates that an authority signs, and what is in them.

``cryptography`` takes long to import, so this module is imported where a certificate is made.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Extension = tuple[x509.ExtensionType, bool]  # and whether it is critical
Pair = tuple[bytes, bytes]  # a certificate and its key, PEM

_KEY_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)

# Extended usages by their name in a CertificateSigningRequest; 1.3.6.1.5.5.7.3 is PKIX's own branch.
_PURPOSES = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}


def new_authority(common_name: str, *, begin: datetime, end: datetime) -> Pair:
    """An authority that signs itself."""
    key, name = _new_key(), _name(common_name)
    public = key.public_key()
    extensions: list[Extension] = [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (_usage("digital_signature", "key_cert_sign", "crl_sign"), True),
        (x509.SubjectKeyIdentifier.from_public_key(public), False),
    ]
    return _certificate(name, name, public, begin, end, extensions, key), _key_pem(key)


class Signer:
    """An authority's certificate and key, PEM, which sign others.  What is signed is good from ``begin`` on."""

    def __init__(self, certificate: bytes, key: bytes, *, now: datetime, begin: datetime) -> None:
        self._ca = x509.load_pem_x509_certificate(certificate)
        private = serialization.load_pem_private_key(key, password=None)
        assert isinstance(private, ec.EllipticCurvePrivateKey), "this CA was made here, with this kind of key"
        self._key = private
        self._now = now
        self._begin = begin

    def has_key_of(self, certificate: bytes) -> bool:
        """Whether the certificate of an authority is about the key that signs here."""
        return x509.load_pem_x509_certificate(certificate).public_key() == self._key.public_key()

    def server(self, common_name: str, names: Sequence[str], life: timedelta) -> Pair:
        """A certificate for a server with these host names and addresses."""
        alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
        return self._pair(_name(common_name), ExtendedKeyUsageOID.SERVER_AUTH, life, (alternatives, False))

    def client(self, name: str, groups: Sequence[str], life: timedelta, *, serial: str = "") -> Pair:
        """A certificate for a user; ``serial`` is the serialNumber of the subject."""
        return self._pair(_name(name, groups, serial), ExtendedKeyUsageOID.CLIENT_AUTH, life)

    def answer(self, request: bytes, usages: Sequence[str], life: timedelta) -> bytes:
        """The certificate that a request (PEM, checked before) asks for."""
        asked = x509.load_pem_x509_csr(request)
        alternatives: list[Extension] = [
            (each.value, each.critical) for each in asked.extensions if each.oid == x509.SubjectAlternativeName.oid
        ]
        return self._sign(asked.subject, asked.public_key(), life, [*_usages(usages), self._issuer(), *alternatives])

    def _pair(self, subject: x509.Name, purpose: x509.ObjectIdentifier, life: timedelta, *more: Extension) -> Pair:
        key = _new_key()
        usages: list[Extension] = [(_usage("digital_signature"), True), (x509.ExtendedKeyUsage([purpose]), False)]
        return self._sign(subject, key.public_key(), life, [*usages, self._issuer(), *more]), _key_pem(key)

    def _issuer(self) -> Extension:
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False

    def _sign(
        self, subject: x509.Name, public: CertificatePublicKeyTypes, life: timedelta, extensions: Sequence[Extension]
    ) -> bytes:
        """A certificate that is good for so long, but not longer than its issuer.

        If the issuer has ended, by a clock that may be wrong, there is nothing to keep within.
        """
        end, until = self._now + life, self._ca.not_valid_after_utc
        if until > self._now:
            end = min(end, until)
        no_authority = x509.BasicConstraints(ca=False, path_length=None), True
        return _certificate(subject, self._ca.subject, public, self._begin, end, [no_authority, *extensions], self._key)


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public: CertificatePublicKeyTypes,
    begin: datetime,
    end: datetime,
    extensions: Sequence[Extension],
    key: ec.EllipticCurvePrivateKey,
) -> bytes:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(public)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(begin).not_valid_after(end)
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical=critical)
    return builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(common: str, groups: Sequence[str] = (), serial: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes += [x509.NameAttribute(NameOID.SERIAL_NUMBER, serial)] if serial else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*names: str) -> x509.KeyUsage:
    return x509.KeyUsage(**{name: name in names for name in _KEY_USAGES})


def _usages(usages: Sequence[str]) -> list[Extension]:
    """The extensions for the usages of a CertificateSigningRequest."""
    extensions: list[Extension] = []
    words = {"signing": "digital_signature", "cert sign": "key_cert_sign"}
    names = {words.get(usage, usage.replace(" ", "_")) for usage in usages} & set(_KEY_USAGES)
    if names & {"encipher_only", "decipher_only"}:
        names.add("key_agreement")  # these two say something about it only
    if names:
        extensions.append((_usage(*names), True))
    purposes = dict.fromkeys(_PURPOSES[usage] for usage in usages if usage in _PURPOSES)
    if purposes:
        extensions.append((x509.ExtendedKeyUsage([x509.ObjectIdentifier(each) for each in purposes]), False))
    return extensions
