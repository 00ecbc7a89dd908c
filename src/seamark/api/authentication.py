"""Authentication: a bearer token or a client certificate names the user; without either it is ``system:anonymous``.

Bearer tokens are the fixed ones of the admin and of a token file, and those of ServiceAccounts (``identity``).
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from seamark import errors
from seamark.api.authorization import ANONYMOUS, AUTHENTICATED, User
from seamark.api.certificates import KEPT, single
from seamark.api.identity.claims import CREDENTIAL_ID
from seamark.api.identity.keys import LOOK_SECONDS
from seamark.api.identity.tokens import BadToken, ServiceAccountTokens
from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import Object

# A browser cannot set headers on a WebSocket: its token comes as a subprotocol that begins like this.
BEARER_PROTOCOL = "base64url.bearer.authorization.k8s.io."


def read_token_file(path: Path) -> dict[str, User]:
    """Kubernetes' static token file: ``token,user,uid,"group1,group2"`` per line."""
    users: dict[str, User] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3:
                raise ValueError(f"{path}:{number}: a line needs token,user,uid; found {len(row)} column(s)")
            groups = tuple(g.strip() for g in row[3].split(",") if g.strip()) if len(row) > 3 else ()
            users[row[0]] = User(row[1], (*groups, AUTHENTICATED), row[2])
    return users


@lru_cache(maxsize=1024)
def _of_certificate(der: bytes) -> tuple[User, bool]:
    """The user that a client certificate names (anonymous if it has no name), and whether it must be kept in its file.

    CN is the name, and each O a group.
    """
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.load_der_x509_certificate(der).subject
    names = [str(a.value) for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(a.value) for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    kept = any(a.value == KEPT for a in subject.get_attributes_for_oid(NameOID.SERIAL_NUMBER))
    if not names or not names[-1]:
        return ANONYMOUS, kept
    credential = (CREDENTIAL_ID, (f"X509SHA256={hashlib.sha256(der).hexdigest()}",))
    return User(names[-1], (*groups, AUTHENTICATED), extra=(credential,)), kept


@lru_cache(maxsize=1024)
def _signed_by_one_of(authorities: tuple[bytes, ...], der: bytes) -> bool:
    """Whether one of these authorities (PEM) signed the certificate itself."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    certificate = x509.load_der_x509_certificate(der)
    for pem in authorities:
        try:
            certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(pem))
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def subprotocols(headers: Mapping[str, str]) -> list[str]:
    """What a client that asks for a WebSocket offers to speak."""
    return [name for part in headers.get("sec-websocket-protocol", "").split(",") if (name := part.strip())]


def _offered_token(headers: Mapping[str, str]) -> str:
    offered = subprotocols(headers)
    tokens = [name.removeprefix(BEARER_PROTOCOL) for name in offered if name.startswith(BEARER_PROTOCOL)]
    if not tokens:
        return ""
    # The answer must choose one of the protocols, and never the token.
    if len(tokens) > 1 or len(offered) == 1:
        raise errors.Unauthorized
    try:
        return base64.b64decode(tokens[0] + "=" * (-len(tokens[0]) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise errors.Unauthorized from None


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class FixedTokens:
    """The tokens that are written down in files, which may change while the server runs.

    A new token is good at once, and one that was taken out ends within :data:`LOOK_SECONDS`.  A file that cannot be
    read, because it is just being replaced, leaves the tokens as they were.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, User]], files: Sequence[Path] = (), clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self._read = read
        self._files = files
        self._clock = clock
        self._seen = self._state()
        self._next_look = 0.0
        self._take()

    def user(self, digest: bytes) -> User | None:
        if self._files and self._clock.monotonic() >= self._next_look:
            self.look()
        return self._users.get(digest)

    def look(self) -> None:
        """Read the files again if they changed."""
        self._next_look = self._clock.monotonic() + LOOK_SECONDS
        try:
            if (seen := self._state()) != self._seen:
                self._take()
                self._seen = seen
        except (OSError, ValueError):
            return

    def _state(self) -> list[tuple[int, int, int]]:
        return [(found.st_mtime_ns, found.st_size, found.st_ino) for found in map(Path.stat, self._files)]

    def _take(self) -> None:
        # Kept and looked up by digest, so that how long a look-up takes says nothing about the token.
        self._users = {_digest(token): user for token, user in self._read().items()}


class KeptCertificate:
    """The admin's certificates in their file, which may be replaced or removed while the server runs.

    As with tokens, a new one is good at once, and one that was taken out ends within :data:`LOOK_SECONDS`.
    """

    def __init__(self, path: Path, clock: Clock = SYSTEM_CLOCK) -> None:
        self._path = path
        self._clock = clock
        self._next_look = 0.0
        self._held: frozenset[bytes] = frozenset()

    def holds(self, der: bytes) -> bool:
        if self._clock.monotonic() >= self._next_look or der not in self._held:
            self._look()
        return der in self._held

    def _look(self) -> None:
        self._next_look = self._clock.monotonic() + LOOK_SECONDS
        try:
            self._held = frozenset(ssl.PEM_cert_to_DER_cert(each.decode()) for each in single(self._path.read_bytes()))
        except FileNotFoundError:
            self._held = frozenset()
        except (OSError, ValueError):  # what cannot be read ends nothing
            return


class Authenticator:
    """Finds the user of a request."""

    def __init__(
        self, tokens: FixedTokens, accounts: ServiceAccountTokens, admin: KeptCertificate | None = None
    ) -> None:
        self._tokens = tokens
        self._admin = admin
        self.accounts = accounts
        self.dropped: tuple[bytes, ...] = ()  # authorities (PEM) no longer believed, which TLS may still know

    def user_of_token(self, token: str) -> User | None:
        if (found := self.accounts.known(token)) is not None:
            return found
        digest = _digest(token)
        found = self._tokens.user(digest) or self.accounts.user_of(token)
        if found is None:
            self._tokens.look()
            found = self._tokens.user(digest)
        return found

    def review(self, token: str, audiences: Sequence[str]) -> Object:
        """Whose a token is, and for which of the audiences it is good: the status of a TokenReview."""
        unknown = "invalid bearer token"
        own = [audience for audience in self.accounts.settings.audiences if audience in audiences]
        if own and (user := self._tokens.user(_digest(token))):
            return {"authenticated": True, "user": user.info, "audiences": own}
        try:
            found = self.accounts.examine(token, audiences)
        except BadToken as refused:
            return {"user": {}, "error": f"[{unknown}, {refused}]"}
        if found is None:
            return {"user": {}, "error": unknown}
        return {"authenticated": True, "user": found[0].info, "audiences": found[1]}

    def user(self, headers: Mapping[str, str], certificate: bytes | None) -> User:
        """The sender of a request.  Raises Unauthorized for an unknown token; other schemes count as no credentials."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if not scheme and "sec-websocket-protocol" in headers:
            scheme, token = "bearer", _offered_token(headers)
        if scheme.lower() == "bearer" and token.strip():
            user = self.user_of_token(token.strip())
            if user is None:
                raise errors.Unauthorized
            return user
        if certificate is None:
            return ANONYMOUS
        if self.dropped and _signed_by_one_of(self.dropped, certificate):
            raise errors.Unauthorized
        user, kept = _of_certificate(certificate)
        if kept and (self._admin is None or not self._admin.holds(certificate)):
            raise errors.Unauthorized
        return user
