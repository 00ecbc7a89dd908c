"""Signs tokens for ServiceAccounts, and finds the user of a token.

A signature is verified once per token: what was proven is kept with the very entries of the cache (the ServiceAccount,
the Pod, …) that it was checked against.  As long as those are still the current ones, a request with the token costs a
few look-ups; if one changed, only the check of the objects is repeated.

Proven tokens are the keys of a dict.  Python hashes strings with a secret of the process, and only compares those whose
hashes are equal, so how long a look-up takes says nothing about the tokens that are kept.
"""

from __future__ import annotations

from base64 import b64decode, urlsafe_b64decode
from collections.abc import Sequence
from hmac import compare_digest
from math import inf
from typing import Any
from uuid import uuid4

import msgspec

from seamark.api.authorization import User
from seamark.api.identity.claims import LEEWAY_SECONDS, LEGACY_ISSUER, Claims, LegacyClaims, user_name, user_of
from seamark.api.identity.keys import KeyRing
from seamark.api.settings import TokenSettings
from seamark.api.state.cache import Cache
from seamark.api.state.collection import Collection
from seamark.api.state.entries import Entry
from seamark.clock import Clock
from seamark.errors import Object
from seamark.kinds.language import inner_json
from seamark.kinds.resource import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from seamark.kinds.values import times

KEPT = 10_000  # proven tokens; each takes about 3 kB
_INVALID_SINCE = "kubernetes.io/legacy-token-invalid-since"  # a label of the Secret
_INVALIDATED = "service account token has been invalidated"


class BadToken(Exception):
    """A token that claims to be ours is not good; the message says why."""


class _Meta(msgspec.Struct, gc=False):
    uid: str = ""
    deletion_timestamp: str | None = msgspec.field(default=None, name="deletionTimestamp")
    labels: dict[str, str] | None = None


class _Bare(msgspec.Struct, gc=False):
    metadata: _Meta
    data: dict[str, str] | None = None


class _Issuer(msgspec.Struct):
    iss: str = ""


_decode = msgspec.json.Decoder(_Bare).decode

# An object that a token was checked against, and where it is.
Basis = tuple[Collection, str, Entry]


class Found(msgspec.Struct):
    """An object that a token depends on."""

    basis: Basis
    object: _Bare

    @property
    def uid(self) -> str:
        return self.object.metadata.uid

    @property
    def deleted(self) -> float:
        """When its deletion began; never, if it is to stay."""
        moment = self.object.metadata.deletion_timestamp
        return inf if moment is None else times.parse(moment)


class Proven(msgspec.Struct):
    """A token whose signature is right.  If it is known to be good, ``basis`` are the objects that say so."""

    claims: Claims | LegacyClaims
    user: User
    serves: bool  # whether it is meant for the API
    begin: float = -inf
    end: float = inf
    basis: tuple[Basis, ...] = ()

    def good(self, now: float) -> bool:
        """Whether what was found still holds, and the API takes the token at this time."""
        if not self.basis or not self.begin <= now <= self.end:
            return False
        for collection, path, entry in self.basis:
            if collection.entries.get(path) is not entry:
                return False
        return self.serves


class ServiceAccountTokens:
    """The tokens of one server's ServiceAccounts."""

    def __init__(self, cache: Cache, keys: KeyRing, settings: TokenSettings, clock: Clock) -> None:
        self._cache = cache
        self.keys = keys
        self.settings = settings
        self._clock = clock
        self._proven: dict[str, Proven] = {}
        self._version = 0  # of the keys that these were proven with

    # --- making --------------------------------------------------------------------------------------

    def issue(self, claims: Object) -> str:
        """A token with these claims, in our name."""
        return self._sign({"iss": self.settings.issuers[0], "jti": str(uuid4()), **claims})

    def issue_legacy(self, namespace: str, secret: str, account: str, uid: str) -> str:
        """The token to keep in a Secret; ``uid`` is that of the ServiceAccount."""
        sub = user_name(namespace, account)
        claims = LegacyClaims(sub=sub, namespace=namespace, secret=secret, account=account, uid=uid)
        return self._sign(msgspec.to_builtins(claims))

    def _sign(self, claims: Object) -> str:
        from jwt import PyJWS

        key = self.keys.signing
        payload = msgspec.json.encode(claims)
        return PyJWS().encode(payload, key.private, key.algorithm, {"kid": key.id, "typ": None})

    # --- believing -----------------------------------------------------------------------------------

    def known(self, token: str) -> User | None:
        """The user of a token that was examined before and is still good for the API; None if it must be examined."""
        proven = self._proven.get(token)
        if proven is None:
            return None
        self.keys.look_now_and_then()
        current = self.keys.version == self._version and proven.good(self._clock.time())
        return proven.user if current else None

    def user_of(self, token: str) -> User | None:
        """The user of a request with this token; None if it is not one of ours, or not good for the API."""
        try:
            found = self.examine(token, self.settings.audiences)
        except BadToken:
            return None
        return None if found is None else found[0]

    def examine(self, token: str, wanted: Sequence[str]) -> tuple[User, list[str]] | None:
        """The user of a token, and those of the ``wanted`` audiences that it is for.

        None if it is not a token of this issuer; raises BadToken if it is one that is not good.
        """
        keys = self.keys
        keys.look_now_and_then()
        if keys.version != self._version:
            self._proven.clear()
            self._version = keys.version
        proven = self._proven.get(token)
        if proven is None:
            proven = self._prove(token)
            if proven is None:
                return None
        claims = proven.claims
        now = self._clock.time()
        audiences = self._audiences(claims)
        meant = [audience for audience in audiences if audience in wanted]
        if not meant:
            raise BadToken(
                f"token audiences {_quoted(audiences)} is invalid for the target audiences {_quoted(wanted)}"
            )
        if isinstance(claims, Claims) and (untimely := claims.untimely(now)):
            self._proven.pop(token, None)
            raise BadToken(untimely)
        if not proven.good(now):
            proven.basis = self._checked(claims, token, now)
            self._keep(token, proven)
        return proven.user, meant

    def _keep(self, token: str, proven: Proven) -> None:
        if len(self._proven) >= KEPT and token not in self._proven:
            del self._proven[next(iter(self._proven))]
        self._proven[token] = proven

    def _prove(self, token: str) -> Proven | None:
        """Verify the signature; None for what is no token of these issuers."""
        parts = token.split(".")
        if len(parts) != 3:
            return None
        try:
            issuer = inner_json.read(_unpadded(parts[1]), _Issuer).iss
        except ValueError:
            return None
        if issuer != LEGACY_ISSUER and issuer not in self.settings.issuers:
            return None
        payload = self._verified(token)
        if payload is None:
            return None
        try:
            if issuer == LEGACY_ISSUER:
                legacy = inner_json.read(payload, LegacyClaims)
                return Proven(legacy, user_of(legacy.namespace, legacy.account, legacy.uid), serves=True)
            claims = inner_json.read(payload, Claims)
        except inner_json.Unreadable:
            return None
        of = claims.kubernetes
        account = of.serviceaccount
        user = user_of(of.namespace, account.name, account.uid, claims)
        serves = any(audience in self.settings.audiences for audience in self._audiences(claims))
        return Proven(claims, user, serves, *claims.lifetime)

    def _audiences(self, claims: Claims | LegacyClaims) -> Sequence[str]:
        return (claims.audiences if isinstance(claims, Claims) else ()) or self.settings.audiences

    def _verified(self, token: str) -> bytes | None:
        """The payload of a token that one of our keys signed; None if it is malformed."""
        import jwt

        try:
            header = jwt.get_unverified_header(token)
        except jwt.InvalidTokenError:
            return None
        keys = self.keys.verifying(str(header.get("kid", "")))
        if not keys:
            raise BadToken("invalid signature, no keys found")
        if header.get("alg") not in [key.algorithm for key in self.keys.all]:  # it may be of any type
            return None
        for key in keys:
            try:
                # Only the algorithm of the key itself: a token cannot choose a weaker one, or none.
                payload: bytes = jwt.PyJWS().decode(token, key.public, algorithms=[key.algorithm])
                return payload
            except jwt.InvalidTokenError:
                continue
        raise BadToken("go-jose/go-jose: error in cryptographic primitive")

    # --- the objects behind it -------------------------------------------------------------------------

    def _checked(self, claims: Claims | LegacyClaims, token: str, now: float) -> tuple[Basis, ...]:
        """The objects that the token depends on; raises BadToken if one is gone or is another one."""
        found = self._legacy(claims, token) if isinstance(claims, LegacyClaims) else self._bound(claims, now)
        if any(each.object.metadata.deletion_timestamp for each in found):
            return ()  # so that it is checked again with every request
        return tuple(each.basis for each in found)

    def _bound(self, claims: Claims, now: float) -> list[Found]:
        """What a token of a TokenRequest depends on.  What is being deleted counts as there for a moment."""
        of, before = claims.kubernetes, now - LEEWAY_SECONDS
        account = self._account(of.namespace, of.serviceaccount.name)
        if account.uid != of.serviceaccount.uid:
            raise BadToken(f"service account UID ({account.uid}) does not match claim ({of.serviceaccount.uid})")
        if account.deleted < before:
            raise BadToken("service account has been deleted")
        found = [account]
        node = of.node if of.pod is None else None  # a Pod's node is told, but the token does not depend on it
        for word, resource, reference in (("secret", SECRETS, of.secret), ("pod", PODS, of.pod), ("node", NODES, node)):
            if reference is None:
                continue
            each = self._find(resource, reference.name, "" if resource is NODES else of.namespace)
            if each is None or each.deleted < before:
                raise BadToken(_INVALIDATED)
            if each.uid != reference.uid:
                sentence = f"does not match service account {word} ref claim ({reference.uid})"
                raise BadToken(f"{word} UID ({each.uid}) {sentence}")
            found.append(each)
        return found

    def _legacy(self, claims: LegacyClaims, token: str) -> list[Found]:
        """What a token that is kept in a Secret depends on: that it still is, word for word, and its ServiceAccount."""
        if claims.mistake:
            raise BadToken(claims.mistake)
        secret = self._find(SECRETS, claims.secret, claims.namespace)
        if secret is None or secret.object.metadata.deletion_timestamp is not None:
            raise BadToken(_INVALIDATED)
        if not compare_digest(b64decode((secret.object.data or {}).get("token", "")), token.encode()):
            raise BadToken("token does not match server's copy")
        account = self._account(claims.namespace, claims.account)
        if account.object.metadata.deletion_timestamp is not None:
            raise BadToken(f"ServiceAccount {claims.namespace}/{claims.account} has been deleted")
        if account.uid != claims.uid:
            raise BadToken(f"ServiceAccount UID ({account.uid}) does not match claim ({claims.uid})")
        if (secret.object.metadata.labels or {}).get(_INVALID_SINCE):
            raise BadToken(
                f"the token in secret {claims.namespace}/{claims.secret} for service account "
                f"{claims.namespace}/{claims.account} has been marked invalid. Use tokens from the TokenRequest API or "
                f"manually created secret-based tokens, or remove the '{_INVALID_SINCE}' label from the secret to "
                "temporarily allow use of this token"
            )
        return [secret, account]

    def _account(self, namespace: str, name: str) -> Found:
        found = self._find(SERVICE_ACCOUNTS, name, namespace)
        if found is None:
            raise BadToken(f'serviceaccounts "{name}" not found')
        return found

    def _find(self, resource: Resource, name: str, namespace: str) -> Found | None:
        collection = self._cache.of(resource)
        path = f"{namespace}/{name}" if namespace else name
        entry = collection.get(path)
        return None if entry is None else Found((collection, path, entry), _decode(b"{" + entry.tail))


def _unpadded(part: str) -> bytes:
    return urlsafe_b64decode(part + "=" * (-len(part) % 4))


def _quoted(words: Sequence[Any]) -> str:
    """A list as Go's ``%q`` shows it."""
    return f"[{' '.join(msgspec.json.encode(word).decode() for word in words)}]"
