"""The server's own authority: a CA, a serving certificate and the admin's credentials, made at first start and kept.

    DIR/ca.crt  DIR/ca.key       signs the others; valid for ten years.  Earlier authorities may follow in ca.crt: they
                                 are believed, but sign no more
    DIR/server.crt  server.key   what clients see; valid for one year, renewed in its last month or for a new address
    DIR/admin.token              the bearer token of the admin
    DIR/admin.pem                the certificate of the admin and its key, for clients that know no tokens; certificates
                                 of earlier authorities may follow.  It is good only as long as this file holds it
    DIR/sa.key  DIR/sa.pub       the key that signs the tokens of ServiceAccounts, and all keys that verify them
    DIR/issued.json              what was issued and until when, so that a start need not parse certificates

Keys and tokens are readable by their owner only.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import os
import re
import secrets
import ssl
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.api.authorization import ADMIN, MASTERS
from seamark.api.identity.keys import new_key, public_pem
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.private_files import check_private, make_private_directory

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

CA_DAYS, SERVER_DAYS, RENEW_DAYS = 3650, 365, 30
SHORTEST_SECONDS = 600  # of a certificate that was asked for
DAY = 86400.0
# A clock that is behind, or is set back, must not find our certificates in its future.  A day is more than any mistake
# about time zones; as nobody had the keys before, it gives nothing away.
BACKDATED = timedelta(days=1)
# Those that users ask for begin so long ago, as in Kubernetes.
BACKDATED_IF_ASKED_FOR = timedelta(minutes=5)
# The admin's certificate has this serialNumber in its subject: it is good only as long as the file holds it.
ADMIN_FILE = "admin.pem"
KEPT = f"kept in {ADMIN_FILE}"
_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_KEY = re.compile(rb"-----BEGIN PRIVATE KEY-----.+?-----END PRIVATE KEY-----", re.DOTALL)


class Issued(msgspec.Struct):
    """The names that ``server.crt`` covers, and until when it is valid."""

    names: list[str]
    until: float


class Authority:
    """The files of one directory."""

    def __init__(self, directory: Path, clock: Clock = SYSTEM_CLOCK, prefix: str = "") -> None:
        """``prefix`` begins the names of the CA's files, where a directory holds several."""
        self._directory = directory
        self._clock = clock
        self._prefix = prefix
        self.ca_path = directory / f"{prefix}ca.crt"
        self.server_path = directory / "server.crt"
        self.server_key_path = directory / "server.key"
        self._ca_key_path = directory / f"{prefix}ca.key"
        self.admin_token_path = directory / "admin.token"
        self.admin_certificate_path = directory / ADMIN_FILE
        self.signing_key_path = directory / "sa.key"
        self.verifying_keys_path = directory / "sa.pub"
        self._issued_path = directory / "issued.json"

    def prepare(self, names: Sequence[str]) -> None:
        """Make what is missing, renew what is old or does not cover ``names`` (host names and addresses)."""
        make_private_directory(self._directory)
        for path in (self.admin_token_path, self.admin_certificate_path, self.server_key_path, self.server_path):
            check_private(path)
        for path in (self.signing_key_path, self.verifying_keys_path):
            check_private(path)
        if not self.admin_token_path.exists():
            self.new_admin_token()
        if not (self.signing_key_path.exists() and self.verifying_keys_path.exists()):
            self.new_signing_key()
        if self.prepare_ca():
            self._issued_path.unlink(missing_ok=True)
        self.renew(names)

    def prepare_ca(self) -> bool:
        """Make the CA if there is none; returns whether that was so."""
        make_private_directory(self._directory)
        for path in (self._ca_key_path, self.ca_path):
            check_private(path)
        if self.ca_path.exists() and self._ca_key_path.exists():
            return False
        self._make_ca()
        return True

    @property
    def admin_token(self) -> str:
        return self.admin_token_path.read_text().strip()

    @property
    def ca_pem(self) -> bytes:
        return self.ca_path.read_bytes()

    def tls(self, serving: tuple[str, str] | None = None) -> ssl.SSLContext:
        """The server's TLS settings: its certificate, and optional client certificates if this CA signed them.

        ``serving`` names the files of another certificate and its key.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(*(serving or self.serving))
        context.load_verify_locations(self.ca_path)
        context.verify_mode = ssl.CERT_OPTIONAL
        context.set_alpn_protocols(["http/1.1"])
        return context

    @property
    def serving(self) -> tuple[Path, Path]:
        """The files of the certificate that clients see, and of its key."""
        return self.server_path, self.server_key_path

    def renew(self, names: Sequence[str]) -> None:
        """Make a new serving certificate if that of now is in its last month, or does not cover these names.

        So it is with one of the future, which a clock leaves behind that was ahead for a while.
        """
        if not self._still_good(names):
            self._make_server(names)

    # --- another authority ---------------------------------------------------------------------------

    def new_ca(self) -> None:
        """Sign with a new authority from now on; earlier ones stay believed.

        The server goes on with its certificate, so that clients that know only the earlier authority still trust it.
        """
        self._make_ca(earlier=self.ca_pem)

    def drop_earlier_cas(self) -> int:
        """Believe only the authority that signs; returns how many were dropped.  The server gets a new certificate."""
        from cryptography import x509

        key = self._ca()[1].public_key()
        found = single(self.ca_pem)
        kept = [each for each in found if x509.load_pem_x509_certificate(each).public_key() == key]
        issued = msgspec.json.decode(self._issued_path.read_bytes(), type=Issued)
        self._make_server(issued.names)
        write_private(self.ca_path, b"".join(kept))
        return len(found) - len(kept)

    # --- making ------------------------------------------------------------------------------------

    def _still_good(self, names: Sequence[str]) -> bool:
        if not (self._issued_path.exists() and self.server_path.exists() and self.server_key_path.exists()):
            return False
        try:
            issued = msgspec.json.decode(self._issued_path.read_bytes(), type=Issued)
        except msgspec.DecodeError:
            return False
        left = issued.until - self._clock.time()
        return (
            set(names) <= set(issued.names) and RENEW_DAYS * DAY < left < SERVER_DAYS * DAY + BACKDATED.total_seconds()
        )

    def _make_ca(self, earlier: bytes = b"") -> None:
        from cryptography import x509

        key = _new_key()
        name = _name(f"seamark-{self._prefix}ca", ())
        builder = self._builder(name, name, key.public_key(), timedelta(days=CA_DAYS))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(_usage("digital_signature", "key_cert_sign", "crl_sign"), critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        # First, so that nothing is signed with a key that is not believed yet.
        self._write_certificate(self.ca_path, builder, key, earlier)
        write_private(self._ca_key_path, _key_pem(key))

    def new_admin_token(self) -> None:
        """Let the admin be known by a new token; the earlier one ends, and the admin's certificate."""
        self.admin_certificate_path.unlink(missing_ok=True)
        write_private(self.admin_token_path, secrets.token_hex(32).encode())

    def admin_certificate(self) -> tuple[bytes, bytes]:
        """The admin's certificate and its key, PEM; made if there is none of the authority that signs now.

        It is good for as long as its authority: who shows an expired certificate is cut off in TLS, with a good token
        too.  What ends it before is a new token.  Certificates of earlier authorities stay good as long as those.
        """
        path = self.admin_certificate_path
        text = path.read_bytes() if path.exists() else b""
        mark = f"{ADMIN} of {hashlib.sha256(single(self.ca_pem)[0]).hexdigest()}\n".encode()
        certificates, key = single(text), _KEY.search(text)
        if text.startswith(mark) and certificates and key:
            return certificates[0], key[0] + b"\n"
        made = self.client(ADMIN, (MASTERS,), life=CA_DAYS, kept=True)
        write_private(path, b"".join((mark, *made, *certificates)))
        return made

    def new_signing_key(self, *, revoke: bool = False) -> None:
        """Sign tokens with a new key from now on.  Older tokens stay good, unless they are to be revoked."""
        private = new_key()
        older = b"" if revoke or not self.verifying_keys_path.exists() else self.verifying_keys_path.read_bytes()
        # First, so that no token is signed with a key that is not known yet.
        write_private(self.verifying_keys_path, public_pem(private) + older)
        write_private(self.signing_key_path, private)

    def _make_server(self, names: Sequence[str]) -> None:
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        name = _name("seamark-apiserver", ())
        builder, ca_key = self._signed(name, key, SERVER_DAYS, ExtendedKeyUsageOID.SERVER_AUTH)
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(n) for n in names]), critical=False)
        write_private(self.server_key_path, _key_pem(key))
        self._write_certificate(self.server_path, builder, ca_key)
        until = self._clock.time() + SERVER_DAYS * DAY
        write_private(self._issued_path, msgspec.json.encode(Issued(list(names), until)))

    def client(
        self, name: str, groups: Sequence[str] = (), *, life: int = SERVER_DAYS, kept: bool = False
    ) -> tuple[bytes, bytes]:
        """A client certificate for a user, good for ``life`` days, and its key, as PEM.

        One that is ``kept`` says so: it is refused unless it is in the file of the admin's certificate.
        """
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.x509.oid import ExtendedKeyUsageOID

        key = _new_key()
        subject = _name(name, groups, KEPT if kept else "")
        builder, ca_key = self._signed(subject, key, life, ExtendedKeyUsageOID.CLIENT_AUTH)
        certificate = builder.sign(ca_key, hashes.SHA256())
        return certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key)

    def sign(self, request: bytes, usages: Sequence[str], seconds: int | None) -> bytes:
        """The certificate that a request (PEM, checked before) asks for, good for so long, at most for a year."""
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization

        ca, ca_key = self._ca()
        asked = x509.load_pem_x509_csr(request)
        life = timedelta(seconds=max(SHORTEST_SECONDS, min(seconds or SERVER_DAYS * DAY, SERVER_DAYS * DAY)))
        builder = self._builder(
            asked.subject,
            ca.subject,
            asked.public_key(),
            life,
            until=ca.not_valid_after_utc,
            backdated=BACKDATED_IF_ASKED_FOR,
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        for usage, critical in _usages(usages):
            builder = builder.add_extension(usage, critical=critical)
        builder = builder.add_extension(_issuer(ca_key), critical=False)
        try:
            names = asked.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            builder = builder.add_extension(names.value, critical=names.critical)
        except x509.ExtensionNotFound:
            pass
        return builder.sign(ca_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def _ca(self) -> tuple[x509.Certificate, EllipticCurvePrivateKey]:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as Key

        key = serialization.load_pem_private_key(self._ca_key_path.read_bytes(), password=None)
        assert isinstance(key, Key), "this CA was made here, with this kind of key"
        return x509.load_pem_x509_certificate(self.ca_pem), key

    def _signed(
        self, subject: x509.Name, key: EllipticCurvePrivateKey, days: int, purpose: Any
    ) -> tuple[x509.CertificateBuilder, EllipticCurvePrivateKey]:
        from cryptography import x509

        ca, ca_key = self._ca()
        life, until = timedelta(days=days), ca.not_valid_after_utc
        builder = self._builder(subject, ca.subject, key.public_key(), life, until=until)
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(_usage("digital_signature"), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        return builder.add_extension(_issuer(ca_key), critical=False), ca_key

    def _builder(
        self,
        subject: x509.Name,
        issuer: x509.Name,
        public_key: Any,
        life: timedelta,
        *,
        until: datetime | None = None,
        backdated: timedelta = BACKDATED,
    ) -> x509.CertificateBuilder:
        """A certificate that is good for so long, but not longer than its issuer (``until``).

        If the issuer has ended, by a clock that may be wrong, there is nothing to keep within.
        """
        from cryptography import x509

        now = datetime.fromtimestamp(self._clock.time(), UTC)
        end = now + life
        if until is not None and until > now:
            end = min(end, until)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(issuer)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - backdated)
            .not_valid_after(end)
        )

    @staticmethod
    def _write_certificate(
        path: Path, builder: x509.CertificateBuilder, key: EllipticCurvePrivateKey, more: bytes = b""
    ) -> None:
        from cryptography.hazmat.primitives import hashes, serialization

        certificate = builder.sign(key, hashes.SHA256())
        write_private(path, certificate.public_bytes(serialization.Encoding.PEM) + more)


def single(bundle: bytes) -> list[bytes]:
    """The certificates of a bundle one by one, PEM."""
    return [each + b"\n" for each in _CERTIFICATE.findall(bundle)]


def _new_key() -> EllipticCurvePrivateKey:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _key_pem(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(common: str, groups: Sequence[str], serial: str = "") -> x509.Name:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    attributes += [x509.NameAttribute(NameOID.SERIAL_NUMBER, serial)] if serial else []
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _issuer(ca_key: EllipticCurvePrivateKey) -> x509.AuthorityKeyIdentifier:
    from cryptography import x509

    return x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())


_KEY_USAGES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)


def _usage(*names: str) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(**{name: name in names for name in _KEY_USAGES})


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


def _usages(usages: Sequence[str]) -> list[tuple[x509.ExtensionType, bool]]:
    """The extensions for the usages of a CertificateSigningRequest, and whether each is critical."""
    from cryptography import x509

    extensions: list[tuple[x509.ExtensionType, bool]] = []
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


def write_private(path: Path, data: bytes) -> None:
    """Replace a file in one step, so that it is never seen half written; only its owner may read it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def kubeconfig(
    *, server: str, ca: bytes | None, token: str, name: str = "seamark", certificate: tuple[bytes, bytes] | None = None
) -> str:
    """A kubeconfig with everything inline, for one cluster and its admin, who may have a certificate and its key."""
    # By hand, because every start writes one, and importing yaml would take a tenth of the start.
    authority = "" if ca is None else f"\n    certificate-authority-data: {in_base64(ca)}"
    shown = ""
    if certificate is not None:
        shown = "client-certificate-data: {}\n    client-key-data: {}\n    ".format(*map(in_base64, certificate))
    return f"""\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}{authority}
users:
- name: {name}-admin
  user:
    {shown}token: {msgspec.json.encode(token).decode()}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}-admin
    namespace: default
current-context: {name}
"""


def in_base64(data: bytes) -> str:
    """As a kubeconfig has certificates and keys."""
    return base64.b64encode(data).decode()
