"""Secret: validation of its keys, its size and what its type requires; ``stringData`` becomes ``data``."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.core.configmap import MAX_SIZE, decoded_size, key_mistakes
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import json_scan
from seamark.kinds.resource import SECRETS
from seamark.kinds.values import keys
from seamark.kinds.values.fields import Errors, forbidden, immutable, invalid, required, too_long
from seamark.kinds.values.times import age

_ACCOUNT = "kubernetes.io/service-account.name"
_JSON_KEYS = {"kubernetes.io/dockercfg": ".dockercfg", "kubernetes.io/dockerconfigjson": ".dockerconfigjson"}
# The type of a JSON text by its first character; empty for an object, and for null, which Go reads as an empty object.
_FIRST = {b"{": "", b"n": "", b"[": "array", b'"': "string", b"t": "bool", b"f": "bool"}
_IMMUTABLE = "field is immutable when `immutable` is set"


class SecretKind(Kind):
    resource = SECRETS
    singular = "secret"
    shape_name = "io.k8s.api.core.v1.Secret"
    columns = (Column("Name", format="name"), Column("Type"), Column("Data"), Column("Age"))
    field_names = ("type",)

    def default(self, obj: Object) -> None:
        if text := obj.pop("stringData", None):
            encoded = {key: b64encode(value.encode()).decode() for key, value in text.items()}
            obj["data"] = {**(obj.get("data") or {}), **encoded}
        if not obj.get("type"):
            obj["type"] = "Opaque"

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        data = obj.get("data") or {}
        # Sorted for a stable order; Kubernetes iterates over maps in random order.
        for key in sorted(data):
            errors += [invalid(f"data[{key}]", key, sentence) for sentence in key_mistakes(key)]
        if sum(map(decoded_size, data.values())) > MAX_SIZE:
            errors.append(too_long("data", MAX_SIZE))
        return errors + _type_mistakes(obj, data)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        if obj.get("type") != old.get("type"):
            errors.append(immutable("type", obj.get("type", "")))
        if old.get("immutable"):
            if not obj.get("immutable"):
                errors.append(forbidden("immutable", _IMMUTABLE))
            if obj.get("data") != old.get("data"):
                errors.append(forbidden("data", _IMMUTABLE))
        return errors + self.validate(obj)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        data = obj.get("data") or {}
        if obj.get("type") != "kubernetes.io/tls":
            return []
        sentence = _key_pair_mistake(b64decode(data.get("tls.crt", "")), b64decode(data.get("tls.key", "")))
        return [sentence] if sentence else []

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"type": obj.get("type", "")}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        name, made = meta.get("name", ""), meta.get("creationTimestamp")
        return [name, obj.get("type", ""), len(obj.get("data") or ()), age(now, made)]


def _type_mistakes(obj: Object, data: dict[str, str]) -> Errors:
    kind = obj.get("type", "")
    if kind in _JSON_KEYS:
        return _json_mistakes(data, _JSON_KEYS[kind])
    match kind:
        case "kubernetes.io/service-account-token":
            if not (obj["metadata"].get("annotations") or {}).get(_ACCOUNT):
                return [required(f"metadata.annotations[{_ACCOUNT}]")]
        case "kubernetes.io/basic-auth":
            if "username" not in data and "password" not in data:
                return [required("data[username]"), required("data[password]")]
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                return [required("data[ssh-privatekey]")]
        case "kubernetes.io/tls":
            return [required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _json_mistakes(data: dict[str, str], key: str) -> Errors:
    if key not in data:
        return [required(f"data[{key}]")]
    sentence = _object_mistake(b64decode(data[key]))
    return [invalid(f"data[{key}]", "<secret contents redacted>", sentence)] if sentence else []


def _object_mistake(text: bytes) -> str:
    """Why a text is not a JSON object, in Go's words; empty if it is one."""
    try:
        json_scan.check(text)
    except json_scan.SyntaxFault as fault:
        return str(fault)
    found = _FIRST.get(text.lstrip(b" \t\r\n")[:1], "number")
    return f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}" if found else ""


# --- TLS key pairs ------------------------------------------------------------------------------------

_block = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----")


def _key_pair_mistake(certificate: bytes, key: bytes) -> str:
    """Why a PEM certificate and a PEM key are not a pair, in Go's words; empty if they are, or cannot be read."""
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
    # Imported here, because it is slow and few Secrets need it.
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_private_key
    from cryptography.x509 import load_pem_x509_certificate

    try:
        signed = load_pem_x509_certificate(certificate).tbs_certificate_bytes
        # Whether its primes are primes is not asked: that would take a minute for a long key.
        private = load_der_private_key(keys.private_key(key), password=None, unsafe_skip_rsa_key_validation=True)
        public = private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return True
    return public in signed


SECRET = SecretKind()
