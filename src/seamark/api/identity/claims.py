"""The claims of a ServiceAccount's token, as Kubernetes writes them, and the user that they stand for.

There are two forms: the tokens of TokenRequests, whose claims name all objects below ``kubernetes.io``, and the older
ones kept in Secrets, which never expire.
"""

from __future__ import annotations

from math import inf

import msgspec

from seamark.api.authorization import AUTHENTICATED, User

LEGACY_ISSUER = "kubernetes/serviceaccount"
# How far clocks may differ (RFC 7519, section 4.1.4); deleted objects count as there for as long.
LEEWAY_SECONDS = 60.0
_LEGACY = "kubernetes.io/serviceaccount/"
_EXTRA = "authentication.kubernetes.io/"
CREDENTIAL_ID = f"{_EXTRA}credential-id"


class Reference(msgspec.Struct, frozen=True):
    name: str = ""
    uid: str = ""


class Kubernetes(msgspec.Struct, frozen=True):
    """The claim ``kubernetes.io``: the ServiceAccount, and the objects without which the token is worth nothing."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    node: Reference | None = None
    secret: Reference | None = None


class Claims(msgspec.Struct, frozen=True, rename={"kubernetes": "kubernetes.io"}):
    iss: str = ""
    sub: str = ""
    aud: str | list[str] = []
    exp: float | None = None
    nbf: float | None = None
    iat: float | None = None
    jti: str = ""
    kubernetes: Kubernetes = Kubernetes()

    @property
    def audiences(self) -> list[str]:
        return [self.aud] if isinstance(self.aud, str) else self.aud

    @property
    def lifetime(self) -> tuple[float, float]:
        """The first and the last moment at which the token is not :meth:`untimely`."""
        begin = max(moment for moment in (self.nbf, self.iat, -inf) if moment is not None)
        return begin - LEEWAY_SECONDS, inf if self.exp is None else self.exp + LEEWAY_SECONDS

    def untimely(self, now: float) -> str:
        """Why the token is not valid at this time; empty if it is."""
        if self.nbf is not None and now + LEEWAY_SECONDS < self.nbf:
            return "service account token is not valid yet"
        if self.exp is not None and now - LEEWAY_SECONDS > self.exp:
            return "service account token has expired"
        if self.iat is not None and now + LEEWAY_SECONDS < self.iat:
            return "service account token is issued in the future"
        return ""


class LegacyClaims(
    msgspec.Struct,
    frozen=True,
    rename={
        "namespace": f"{_LEGACY}namespace",
        "secret": f"{_LEGACY}secret.name",
        "account": f"{_LEGACY}service-account.name",
        "uid": f"{_LEGACY}service-account.uid",
    },
):
    """The claims of a token that is kept in a Secret."""

    iss: str = LEGACY_ISSUER
    sub: str = ""
    namespace: str = ""
    secret: str = ""
    account: str = ""
    uid: str = ""

    @property
    def mistake(self) -> str:
        """Why the claims make no sense; empty if they do."""
        for word, value in (
            ("sub", self.sub),
            ("namespace", self.namespace),
            ("secretName", self.secret),
            ("serviceAccountName", self.account),
            ("serviceAccountUID", self.uid),
        ):
            if not value:
                return f"{word} claim is missing"
        return "" if self.sub == user_name(self.namespace, self.account) else "sub claim is invalid"


def user_name(namespace: str, account: str) -> str:
    return f"system:serviceaccount:{namespace}:{account}"


def user_of(namespace: str, account: str, uid: str, claims: Claims | None = None) -> User:
    """The user that a ServiceAccount is; the claims of its token say by which credential, Pod and node."""
    extra: list[tuple[str, tuple[str, ...]]] = []
    if claims is not None:
        bound = claims.kubernetes
        named: list[tuple[str, str]] = []
        if claims.jti:
            named.append(("credential-id", f"JTI={claims.jti}"))
        if bound.node is not None:
            named += [("node-name", bound.node.name), ("node-uid", bound.node.uid)]
        if bound.pod is not None:
            named += [("pod-name", bound.pod.name), ("pod-uid", bound.pod.uid)]
        extra = [(f"{_EXTRA}{name}", (value,)) for name, value in named if value]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(user_name(namespace, account), groups, uid, tuple(extra))
