"""HTTPS servers that the API server calls: they show a certificate of an authority made for the test."""

from __future__ import annotations

import base64
import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from http_server import HttpServer

from seamark.api.certificates import Authority

NAMES = ("127.0.0.1", "hook.default.svc")


class Trusted:
    """An authority in a directory, and servers with its certificate."""

    def __init__(self, directory: Path, names: tuple[str, ...] = NAMES) -> None:
        self._authority = Authority(directory)
        self._authority.prepare(names)

    @property
    def pem(self) -> bytes:
        return self._authority.ca_pem

    @property
    def bundle(self) -> str:
        """As ``caBundle`` has it."""
        return base64.b64encode(self.pem).decode()

    def server(self, handler: object, host: str = "127.0.0.1") -> HttpServer:
        """To be entered; ``handler(exchange)`` answers."""
        return HttpServer(handler, ssl=self._authority.tls(), host=host)  # type: ignore[no-untyped-call]


def issue_authority(directory: Path, *subject: str) -> None:
    """Make an authority in the directory.  Another authority, which is in no file, issued its certificate.

    Without a ``subject`` it does not say whom it is for; some programs make such authorities for their webhooks.
    """
    own, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(_name("elsewhere"), _name(*subject), own.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=365))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=False)
        .sign(other, hashes.SHA256())
    )
    directory.mkdir(mode=0o700, exist_ok=True)
    certificate_file = directory / "ca.crt"
    certificate_file.touch(mode=0o600)
    certificate_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    pem, plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8), serialization.NoEncryption()
    key_file = directory / "ca.key"
    key_file.touch(mode=0o600)
    key_file.write_bytes(own.private_bytes(*pem, plain))


def _name(*common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, each) for each in common])


def service(name: str = "hook", port: int = 443, **spec: object) -> dict[str, object]:
    """A Service without a selector; its slice is made by hand."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": ports, **spec},
    }


def endpoint_slice(port: int, *ready: bool, name: str = "hook", address: str = "127.0.0.1") -> dict[str, object]:
    """The endpoints of that Service, one for each word whether it is ready."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": each}} for each in ready or (True,)],
    }
