"""Keys in PEM that users send: those that OpenSSL would check for minutes are told before it sees them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa, x25519
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from seamark.kinds.certificates import pkcs10
from seamark.kinds.core.secret import SECRET
from seamark.kinds.values import keys
from seamark.kinds.values.keys import UnknownKey

RSA = rsa.generate_private_key(65537, 2048)
ELLIPTIC = [ec.generate_private_key(curve) for curve in (ec.SECP256R1(), ec.SECP521R1())]
EDWARDS = ed25519.Ed25519PrivateKey.generate()
DIFFIE_HELLMAN = "2a864886f70d010301", "2a8648ce3e0201"


def element(tag: int, *parts: bytes) -> bytes:
    content = b"".join(parts)
    size = len(content)
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    head = bytes([size]) if size < 128 else bytes([0x80 | len(length)]) + length
    return bytes([tag]) + head + content


def integer(number: int) -> bytes:
    return element(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def pem(name: str, der: bytes) -> bytes:
    return f"-----BEGIN {name}-----\n{base64.encodebytes(der).decode()}-----END {name}-----\n".encode()


def algorithm(oid: str, *parameters: bytes) -> bytes:
    return element(0x30, element(6, bytes.fromhex(oid)), *parameters)


def numbers(*each: int) -> bytes:
    return element(0x30, *map(integer, each))


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("key", [RSA, *ELLIPTIC, EDWARDS], ids=["RSA", "P-256", "P-521", "Ed25519"])
def test_private_keys_of_every_day(key: rsa.RSAPrivateKey, form: PrivateFormat) -> None:
    if key is EDWARDS and form is PrivateFormat.TraditionalOpenSSL:
        form = PrivateFormat.PKCS8
    assert keys.private_key(key.private_bytes(Encoding.PEM, form, NoEncryption())) == key.private_bytes(
        Encoding.DER, form, NoEncryption()
    )


def request_of(key: rsa.RSAPrivateKey) -> bytes:
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    return builder.sign(key, None if key is EDWARDS else SHA256()).public_bytes(Encoding.PEM)  # type: ignore[arg-type]


@pytest.mark.parametrize("key", [RSA, *ELLIPTIC, EDWARDS], ids=["RSA", "P-256", "P-521", "Ed25519"])
def test_requests_of_every_day(key: rsa.RSAPrivateKey) -> None:
    assert pkcs10.parsed(request_of(key)).is_signature_valid


# No check of OpenSSL is waited for here: with these numbers it would take longer than a test may.
LONG = (1 << 30_000) - 1


def odd_private_keys() -> dict[str, bytes]:
    private = element(4, integer(LONG))
    other = x25519.X25519PrivateKey.generate().private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    signing = dsa.generate_private_key(1024).private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
    )
    explicit = algorithm("2a8648ce3d0201", numbers(1, LONG))
    return {
        **{
            f"Diffie-Hellman {oid}": pem(
                "PRIVATE KEY", element(0x30, integer(0), algorithm(oid, numbers(LONG, 2, LONG // 2)), private)
            )
            for oid in DIFFIE_HELLMAN
        },
        "a curve without a name": pem("PRIVATE KEY", element(0x30, integer(0), explicit, private)),
        "the same, older": pem("EC PRIVATE KEY", element(0x30, integer(1), private, element(0xA0, numbers(1, LONG)))),
        "another form": pem("DH PRIVATE KEY", numbers(LONG, 2)),
        "X25519": pem("PRIVATE KEY", other),
        "DSA": signing,
        "encrypted": pem("ENCRYPTED PRIVATE KEY", numbers(1)),
        "no base64": b"-----BEGIN PRIVATE KEY-----\n????\n-----END PRIVATE KEY-----\n",
        "no key": pem("CERTIFICATE", numbers(1)),
        "endless": pem("PRIVATE KEY", b"\x30\x80\x02\x01\x00"),
        "nothing": b"",
    }


@pytest.mark.parametrize("name", odd_private_keys())
def test_other_private_keys_are_not_looked_into(name: str) -> None:
    with pytest.raises(UnknownKey):
        keys.private_key(odd_private_keys()[name])


@pytest.mark.parametrize("oid", DIFFIE_HELLMAN)
def test_requests_for_other_keys_are_refused(oid: str) -> None:
    public = element(0x30, algorithm(oid, numbers(LONG, 2, LONG // 2)), element(3, b"\0", integer(LONG)))
    info = element(0x30, integer(0), element(0x30), public, element(0xA0))
    signature = (algorithm("2a864886f70d01010b", element(5)), element(3, b"\0x"))
    with pytest.raises(pkcs10.RequestError, match="unknown public key algorithm"):
        pkcs10.parsed(pem("CERTIFICATE REQUEST", element(0x30, info, *signature)))


@pytest.mark.parametrize("read", [keys.private_key, keys.request])
@given(data=st.binary(max_size=60), name=st.sampled_from(["PRIVATE KEY", "EC PRIVATE KEY", "CERTIFICATE REQUEST"]))
def test_anything_else_is_one_fault(read: Callable[[bytes], bytes], data: bytes, name: str) -> None:
    for text in (data, pem(name, data), pem(name, b"\x30" + bytes([len(data)]) + data)):
        try:
            assert read(text) in (data, b"\x30" + bytes([len(data)]) + data)
        except UnknownKey:
            continue


def test_primes_of_a_private_key_are_not_checked() -> None:
    """These are none, so a key with them is refused by who checks; it is only compared with the certificate."""
    made = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(x509.Name([])).public_key(RSA.public_key())
    times = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))
    signed = made.serial_number(1).not_valid_before(times[0]).not_valid_after(times[1]).sign(RSA, SHA256())
    one, two = 3 * ((1 << 1000) + 1), 5 * ((1 << 1000) + 3)
    private = pow(65537, -1, (one - 1) * (two - 1))
    rest = private % (one - 1), private % (two - 1), pow(two, -1, one)
    key = pem("RSA PRIVATE KEY", numbers(0, one * two, 65537, private, one, two, *rest))
    data = {
        "tls.crt": base64.b64encode(signed.public_bytes(Encoding.PEM)).decode(),
        "tls.key": base64.b64encode(key).decode(),
    }
    secret = {"metadata": {"name": "a"}, "type": "kubernetes.io/tls", "data": data}
    assert SECRET.warnings(secret, None) == ["tls: private key does not match public key"]
