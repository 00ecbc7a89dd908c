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

import hashlib
import re
import secrets
import ssl
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from seamark.api.authorization import ADMIN, MASTERS
from seamark.api.identity.keys import new_key, public_pem
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.private_files import check_private, make_private_directory, remove_unfinished, write_private

if TYPE_CHECKING:
    from seamark.api.signing import Signer

CA_DAYS, SERVER_DAYS, RENEW_DAYS = 3650, 365, 30
SHORTEST_SECONDS = 600  # of a certificate that was asked for
DAY = 86400.0
# A clock that is behind, or is set back, must not find our certificates in its future.  A day is more than any mistake
# about time zones; their keys did not exist before, so it gives nothing away.
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
        remove_unfinished(self._directory)
        for path in (self.admin_token_path, self.admin_certificate_path, self.server_key_path, self.server_path):
            check_private(path)
        for path in (self.signing_key_path, self.verifying_keys_path):
            check_private(path)
        if not self.admin_token_path.exists():
            self.new_admin_token()
        if not (self.signing_key_path.exists() and self.verifying_keys_path.exists()):
            self.new_signing_key()
        # The note goes first, so that no certificate of a lost authority is served if this process ends in between.
        if not self._has_ca or self._is_cut_off():
            self._issued_path.unlink(missing_ok=True)
        self.prepare_ca()
        self.renew(names)

    def prepare_ca(self) -> None:
        """Make the CA if there is none."""
        make_private_directory(self._directory)
        for path in (self._ca_key_path, self.ca_path):
            check_private(path)
        if not self._has_ca:
            # A key without its certificate would be taken for that of the new one, if this process ends in between.
            self._ca_key_path.unlink(missing_ok=True)
            self._make_ca()

    @property
    def _has_ca(self) -> bool:
        return self.ca_path.exists() and self._ca_key_path.exists()

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
        context.verify_flags |= (
            ssl.VERIFY_X509_PARTIAL_CHAIN
        )  # an authority that another one issued is enough, as in Go
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
        found, signer = single(self.ca_pem), self._signer()
        kept = [each for each in found if signer.has_key_of(each)]
        if (issued := self._issued()) is not None:  # otherwise the next start, or the next look at the files, makes one
            self._make_server(issued.names)
        write_private(self.ca_path, b"".join(kept))
        return len(found) - len(kept)

    # --- making ------------------------------------------------------------------------------------

    def _still_good(self, names: Sequence[str]) -> bool:
        issued = self._issued()
        if issued is None or not (self.server_path.exists() and self.server_key_path.exists()):
            return False
        left = issued.until - self._clock.time()
        return (
            set(names) <= set(issued.names) and RENEW_DAYS * DAY < left < SERVER_DAYS * DAY + BACKDATED.total_seconds()
        )

    def _is_cut_off(self) -> bool:
        """Whether a process was killed after it wrote the server's new key, and before the certificate of that.

        Only a start may ask: while a server runs, another process may just be between the two.
        """
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(*self.serving)
        except ssl.SSLError as error:
            return error.reason == "KEY_VALUES_MISMATCH"
        except OSError:  # what is missing is made anyway
            pass
        return False

    def _issued(self) -> Issued | None:
        """What was issued; None if there is no note of it that can be read."""
        try:
            return msgspec.json.decode(self._issued_path.read_bytes(), type=Issued)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def _make_ca(self, earlier: bytes = b"") -> None:
        from seamark.api.signing import new_authority

        now = self._now()
        certificate, key = new_authority(
            f"seamark-{self._prefix}ca", begin=now - BACKDATED, end=now + timedelta(days=CA_DAYS)
        )
        # First, so that nothing is signed with a key that is not believed yet.
        write_private(self.ca_path, certificate + earlier)
        write_private(self._ca_key_path, key)

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
        certificate, key = self._signer().server("seamark-apiserver", names, timedelta(days=SERVER_DAYS))
        write_private(self.server_key_path, key)
        write_private(self.server_path, certificate)
        until = self._clock.time() + SERVER_DAYS * DAY
        write_private(self._issued_path, msgspec.json.encode(Issued(list(names), until)))

    def client(
        self, name: str, groups: Sequence[str] = (), *, life: int = SERVER_DAYS, kept: bool = False
    ) -> tuple[bytes, bytes]:
        """A client certificate for a user, good for ``life`` days, and its key, as PEM.

        One that is ``kept`` says so: it is refused unless it is in the file of the admin's certificate.
        """
        return self._signer().client(name, groups, timedelta(days=life), serial=KEPT if kept else "")

    def sign(self, request: bytes, usages: Sequence[str], seconds: int | None) -> bytes:
        """The certificate that a request (PEM, checked before) asks for, good for so long, at most for a year."""
        life = timedelta(seconds=max(SHORTEST_SECONDS, min(seconds or SERVER_DAYS * DAY, SERVER_DAYS * DAY)))
        return self._signer(BACKDATED_IF_ASKED_FOR).answer(request, usages, life)

    def _signer(self, backdated: timedelta = BACKDATED) -> Signer:
        from seamark.api.signing import Signer

        now = self._now()
        return Signer(self.ca_pem, self._ca_key_path.read_bytes(), now=now, begin=now - backdated)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock.time(), UTC)


def single(bundle: bytes) -> list[bytes]:
    """The certificates of a bundle one by one, PEM."""
    return [each + b"\n" for each in _CERTIFICATE.findall(bundle)]
