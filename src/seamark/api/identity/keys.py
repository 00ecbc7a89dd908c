"""The keys of tokens: one signs, and all of them verify.

They are read from PEM files, which may change while the server runs: a new key is taken up and a removed one is no
longer believed within :data:`LOOK_SECONDS`, or at once when a token names a key that is not known yet.  The files are
parsed when the first token comes, because the libraries for that are slow to import.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from seamark.clock import SYSTEM_CLOCK, Clock
from seamark.errors import Object

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

LOOK_SECONDS = 10.0
_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.+?-----END \1-----", re.DOTALL)
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}


class KeyFileError(ValueError):
    """A file has no key that tokens can be signed or verified with; the message is one line."""


class Key(msgspec.Struct, frozen=True, eq=False):
    """One key.  ``id`` is its name in the tokens it signed, ``private`` is None if it can only verify."""

    id: str
    algorithm: str
    public: Any
    private: Any = None

    @property
    def published(self) -> Object:
        """The public key as a JSON Web Key."""
        from jwt.algorithms import get_default_algorithms

        written: Object = get_default_algorithms()[self.algorithm].to_jwk(self.public, as_dict=True)
        written.pop("key_ops", None)
        return {"use": "sig", "kty": written.pop("kty"), "kid": self.id, "alg": self.algorithm, **written}


class KeyRing:
    """The keys of some files: the first file has the key that signs.  Without files, a key is made that is not kept."""

    def __init__(self, files: Sequence[Path] = (), clock: Clock = SYSTEM_CLOCK) -> None:
        self._files = files
        self._clock = clock
        self._keys: dict[str, Key] = {}
        self._seen: object = None  # the state of the files that were read last
        self._next_look = 0.0
        self.version = 0  # grows whenever the keys change

    @property
    def signing(self) -> Key:
        """The key for new tokens."""
        self.look()
        return next(iter(self._keys.values()))

    @property
    def all(self) -> Sequence[Key]:
        self.look()
        return tuple(self._keys.values())

    def verifying(self, id: str) -> Sequence[Key]:
        """The keys that a token may be signed with, which names one (or none: then it may be any)."""
        if id and id not in self._keys:
            self.look()
        if not id:
            return tuple(self._keys.values())
        return (self._keys[id],) if id in self._keys else ()

    def look_now_and_then(self) -> None:
        """Read the files again if they changed; looks only every few seconds."""
        if self._clock.monotonic() >= self._next_look:
            self.look()

    def look(self) -> None:
        """Read the files again if they changed.  If they cannot be used now, the known keys stay."""
        self._next_look = self._clock.monotonic() + LOOK_SECONDS
        if not self._files:
            if not self._keys:
                self._take(_parsed(new_key()))
            return
        try:
            seen = [(s.st_mtime_ns, s.st_size, s.st_ino) for s in map(Path.stat, self._files)]
            if seen == self._seen:
                return
            found = [key for path in self._files for key in _read(path)]
            if found[0].private is None:
                raise KeyFileError(f"{self._files[0]}: a private key is needed to sign tokens")
        except (OSError, KeyFileError):
            if not self._keys:
                raise
            return  # a file is being replaced: look again later
        self._seen = seen
        self._take(found)

    def _take(self, found: Sequence[Key]) -> None:
        # The first of two with the same id stays: that is the one that can sign.
        self._keys = {key.id: key for key in reversed(found)}
        self._keys = {key.id: self._keys[key.id] for key in found}
        self.version += 1


def _read(path: Path) -> Sequence[Key]:
    try:
        found = _parsed(path.read_bytes())
    except (ValueError, TypeError) as error:
        raise KeyFileError(f"{path}: {' '.join(str(error).split())}") from error
    if not found:
        raise KeyFileError(f"{path}: there is no RSA or ECDSA key in it, in PEM form")
    return found


def _parsed(pem: bytes) -> list[Key]:
    """The keys in a PEM text, which may be private, public or those of certificates."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
    from cryptography.x509 import load_pem_x509_certificate

    keys = []
    for block in _BLOCK.finditer(pem):
        name, text = block[1], block[0]
        if name.endswith(b"PRIVATE KEY"):
            private: Any = load_pem_private_key(text, password=None)
            keys.append(_key(private.public_key(), private))
        elif name.endswith(b"PUBLIC KEY"):
            keys.append(_key(load_pem_public_key(text)))
        elif name == b"CERTIFICATE":
            keys.append(_key(load_pem_x509_certificate(text).public_key()))
    return keys


def _key(public: PublicKeyTypes, private: Any = None) -> Key:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    algorithm = None
    if isinstance(public, RSAPublicKey):
        algorithm = "RS256"
    elif isinstance(public, EllipticCurvePublicKey):
        algorithm = _CURVES.get(public.curve.name)
    if algorithm is None:
        raise ValueError("only RSA keys and ECDSA keys of the curves P-256, P-384 and P-521 can be used")
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return Key(urlsafe_b64encode(sha256(der).digest()).rstrip(b"=").decode(), algorithm, public, private)


def new_key() -> bytes:
    """A new private key, PEM."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def public_pem(private: bytes) -> bytes:
    """The public key of a private one, both PEM."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    (key,) = _parsed(private)
    written: bytes = key.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return written
