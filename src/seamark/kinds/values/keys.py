"""Which keys in users' certificates and Secrets are looked into: those that Go's library has types for.

OpenSSL checks the numbers of some others as it reads them.  Those of Diffie-Hellman take minutes if they have a few
kilobytes.  So what a key is for is read from its DER before OpenSSL sees it.
"""

from __future__ import annotations

import binascii
import re

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\s(.*?)-----END \1-----", re.DOTALL)
_SEQUENCE, _INTEGER, _OBJECT, _PARAMETERS = 0x30, 0x02, 0x06, 0xA0
_RSA = bytes.fromhex("2a864886f70d010101")
_ELLIPTIC = bytes.fromhex("2a8648ce3d0201")
_ED25519 = bytes.fromhex("2b6570")


class UnknownKey(ValueError):
    """The text has no key that is looked into."""


def private_key(pem: bytes) -> bytes:
    """The DER of the first private key in a PEM text; raises :class:`UnknownKey`."""
    for block in _BLOCK.finditer(pem):
        name = block[1]
        if name.endswith(b"PRIVATE KEY"):
            der = _decoded(block[2])
            if name == b"RSA PRIVATE KEY" or (name == b"EC PRIVATE KEY" and _is_named_curve(der)):
                return der
            if name == b"PRIVATE KEY":
                inside = _inside(der, 0, _SEQUENCE)
                _check_algorithm(der, _after(der, inside, _INTEGER))
                return der
            break
    raise UnknownKey("no private key of RSA or ECDSA, and none of Ed25519")


def request(pem: bytes) -> bytes:
    """The DER of a certificate request, the only block of a PEM text; raises :class:`UnknownKey`."""
    block = _BLOCK.fullmatch(pem)
    der = _decoded(block[2] if block is not None else b"")
    info = _inside(der, _inside(der, 0, _SEQUENCE), _SEQUENCE)
    name = _after(der, info, _INTEGER)
    key = _after(der, name, _SEQUENCE)
    _check_algorithm(der, _inside(der, key, _SEQUENCE))
    return der


def _decoded(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(b"".join(text.split()), strict_mode=True)
    except binascii.Error as error:
        raise UnknownKey(str(error)) from error


def _check_algorithm(der: bytes, at: int) -> None:
    """Raise unless an algorithm is one of the three, and its curve one that has a name."""
    algorithm = _inside(der, at, _SEQUENCE)
    parameters = _after(der, algorithm, _OBJECT)
    found = der[_inside(der, algorithm, _OBJECT) : parameters]
    if found not in (_RSA, _ELLIPTIC, _ED25519):
        raise UnknownKey("unknown public key algorithm")
    if found == _ELLIPTIC:
        _inside(der, parameters, _OBJECT)


def _is_named_curve(der: bytes) -> bool:
    key = _after(der, _inside(der, 0, _SEQUENCE), _INTEGER)
    curve = _after(der, key, 0x04)
    return der[_inside(der, curve, _PARAMETERS) :][:1] == bytes([_OBJECT])


def _inside(der: bytes, at: int, tag: int) -> int:
    """Where the content of an element begins, which has to be of this kind."""
    return _element(der, at, tag)[0]


def _after(der: bytes, at: int, tag: int) -> int:
    return _element(der, at, tag)[1]


def _element(der: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where the content of an element begins and ends."""
    if der[at : at + 1] != bytes([tag]) or at + 2 > len(der):
        raise UnknownKey(f"no element of kind {tag} at byte {at}")
    size, begin = der[at + 1], at + 2
    if size >= 0x80:  # so many bytes tell the size
        begin += size - 0x80
        size = int.from_bytes(der[at + 2 : begin], "big") if 0 < begin - at - 2 <= 4 else len(der)
    if begin + size > len(der):
        raise UnknownKey(f"the element at byte {at} is longer than the text")
    return begin, begin + size
