"""Who a request comes from, and what they may do.

Bearer tokens and client certificates; no credentials at all means ``system:anonymous``.  Rights are coarse on purpose:
members of ``system:masters`` may do everything, everybody known may discover the API and ask about themselves, and
anonymous requests may see health, version and readiness only.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from seamark import errors
from seamark.api.context import User
from seamark.api.http.protocol import Request
from seamark.api.http.target import Target
from seamark.api.state.read import named

ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
IMPERSONATE = "impersonate-"
_SERVICE_ACCOUNT = re.compile("system:serviceaccount:(?P<namespace>[^:]+):[^:]+")

_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY_PATHS = ("/api", "/apis", "/openapi", *_OPEN_PATHS)
_SELF_REVIEWS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})


def read_token_file(path: Path) -> dict[str, User]:
    """Kubernetes' static token file: ``token,user,uid,"group1,group2"`` per line."""
    users: dict[str, User] = {}
    with path.open(newline="") as lines:
        for number, row in enumerate(csv.reader(lines), 1):
            if not row or row[0].startswith("#"):
                continue
            if len(row) < 3:
                raise ValueError(f"{path}:{number}: a line needs token,user,uid; found {len(row)} column(s)")
            groups = tuple(g.strip() for g in row[3].split(",") if g.strip()) if len(row) > 3 else ()
            users[row[0]] = User(row[1], (*groups, AUTHENTICATED), row[2])
    return users


@lru_cache(maxsize=1024)
def _of_certificate(der: bytes) -> User:
    """The user a client certificate names: CN is the name, each O a group."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    subject = x509.load_der_x509_certificate(der).subject
    names = [str(a.value) for a in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = [str(a.value) for a in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    return User(names[0] if names else "", (*groups, AUTHENTICATED))


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


class Authenticator:
    """Finds out who asks."""

    def __init__(self, tokens: dict[str, User]) -> None:
        # Kept and looked up by digest, so that how long a look-up takes says nothing about the token.
        self._users = {_digest(token): user for token, user in tokens.items()}

    def user_of_token(self, token: str) -> User | None:
        return self._users.get(_digest(token))

    def user(self, request: Request) -> User:
        """Who the request is to be taken for: whoever sent it, or whom they ask to be."""
        user = self._sender(request)
        if any(name.startswith(IMPERSONATE) for name in request.headers):
            return acting_as(user, request.headers)
        return user

    def _sender(self, request: Request) -> User:
        """Raises Unauthorized for a token that is none; other schemes are as good as no credentials."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            user = self.user_of_token(token.strip())
            if user is None:
                raise errors.Unauthorized
            return user
        if request.certificate is not None:
            return _of_certificate(request.certificate)
        return ANONYMOUS


def acting_as(user: User, headers: Mapping[str, str]) -> User:
    """Whom the ``Impersonate-*`` headers name; only those who may do everything may be somebody else."""
    name = headers.get(f"{IMPERSONATE}user", "")
    if not name:
        raise errors.BadRequest("requested groups, uid or extra without impersonating a user")
    if MASTERS not in user.groups:
        raise errors.Forbidden(
            f'users "{name}" is forbidden: User "{user.name}" cannot impersonate resource "users" in API group "" at '
            "the cluster scope",
            details={"name": name, "kind": "users"},
        )
    groups = [group.strip() for group in headers.get(f"{IMPERSONATE}group", "").split(",") if group.strip()]
    if not groups and (account := _SERVICE_ACCOUNT.fullmatch(name)):
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{account['namespace']}"]
    everybody = "system:unauthenticated" if name == ANONYMOUS.name else AUTHENTICATED
    if everybody not in groups:
        groups.append(everybody)
    return User(name, tuple(groups), headers.get(f"{IMPERSONATE}uid", ""))


def may(user: User, verb: str, *, group: str = "", resource: str = "", path: str = "") -> bool:
    """Whether the user may do it: ``path`` for what is no resource, else group and resource."""
    if MASTERS in user.groups:
        return True
    known = AUTHENTICATED in user.groups
    if path:
        roots = _DISCOVERY_PATHS if known else _OPEN_PATHS
        return verb == "get" and any(path == root or path.startswith(f"{root}/") for root in roots)
    return known and verb == "create" and resource in _SELF_REVIEWS


def forbid_path(user: User, method: str, path: str) -> errors.Forbidden:
    return errors.Forbidden(f'forbidden: User "{user.name}" cannot {method.lower()} path "{path}"', details={})


def forbid(user: User, verb: str, target: Target) -> errors.Forbidden:
    """The 403 that says who may not do what where."""
    resource = target.kind.resource
    plural = resource.plural + (f"/{target.subresource.name}" if target.subresource else "")
    place = f'in the namespace "{target.namespace}"' if target.namespace else "at the cluster scope"
    subject = f'{resource.qualified} "{target.name}"' if target.name else resource.qualified
    details = named(resource, target.name)
    if not target.name:
        del details["name"]
    return errors.Forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {verb} resource "{plural}" in API group '
        f'"{resource.group}" {place}',
        details=details,
    )
