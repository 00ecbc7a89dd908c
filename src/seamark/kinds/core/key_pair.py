"""A certificate and its private key as PEM: what keeps them from being a pair, in Go's words."""

from __future__ import annotations

import re

_block = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")


def key_pair_mistake(certificate: bytes, key: bytes) -> str:
    """Empty if they fit, or if they are of a sort we cannot read."""
    types = [found.decode() for found in _block.findall(certificate)]
    if "CERTIFICATE" not in types:
        return _missing_certificate(types)
    types = [found.decode() for found in _block.findall(key)]
    if not any(type_.endswith("PRIVATE KEY") for type_ in types):
        return _missing_key(types)
    return "" if _fit(certificate, key) else "tls: private key does not match public key"


def _missing_certificate(types: list[str]) -> str:
    if not types:
        return "tls: failed to find any PEM data in certificate input"
    if len(types) == 1 and types[0].endswith("PRIVATE KEY"):
        return (
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may "
            "have been switched"
        )
    return (
        'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following '
        f"types: [{' '.join(types)}]"
    )


def _missing_key(types: list[str]) -> str:
    if not types:
        return "tls: failed to find any PEM data in key input"
    if types == ["CERTIFICATE"]:
        return "tls: found a certificate rather than a key in the PEM for the private key"
    return (
        'tls: failed to find PEM block with type ending in "PRIVATE KEY" in key input after skipping PEM blocks of the '
        f"following types: [{' '.join(types)}]"
    )


def _fit(certificate: bytes, key: bytes) -> bool:
    # Heavy, and needed for few objects only.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        public = load_pem_x509_certificate(certificate).public_key()
        private = load_pem_private_key(key, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return True
    format_ = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return public.public_bytes(*format_) == private.public_key().public_bytes(*format_)
