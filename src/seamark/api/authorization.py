"""Authorization: the :class:`Authorizer` that the server is built with decides about every call.

HTTP requests, components of this process and reviews (SelfSubjectAccessReview and others) all ask the same one.
"""

from __future__ import annotations

from typing import Protocol

import msgspec

from seamark.errors import Forbidden, Object

ADMIN = "kubernetes-admin"  # as kubeadm and kind call the user whose credentials they give out
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"

_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_DISCOVERY_PATHS = ("/api", "/apis", "/openapi", *_OPEN_PATHS)
_SELF_REVIEWS = frozenset({"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"})


class User(msgspec.Struct, frozen=True):
    """An authenticated user, or ``system:anonymous``.

    ``extra`` is what the credential says besides: names with their values, as pairs, so that users can be hashed.
    """

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def info(self) -> Object:
        """The user as a ``UserInfo``, without what is empty."""
        extra = {name: list(values) for name, values in self.extra}
        fields = {"username": self.name, "uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {name: value for name, value in fields.items() if value}


ANONYMOUS = User("system:anonymous", ("system:unauthenticated",))


def component(name: str) -> User:
    """The user of a component that the composition root trusts with everything."""
    return User(f"system:{name}", (MASTERS, AUTHENTICATED))


class Attributes(msgspec.Struct, frozen=True, gc=False):
    """The verb and its object.  For a path that is not a resource only ``verb`` and ``path`` are set."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Decision(msgspec.Struct, frozen=True):
    """``reason`` is a sentence for people; it may be empty."""

    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    """Decides; must not block."""

    def trusts(self, user: User) -> bool:
        """Whether the user may do everything; then callers need not ask about each thing."""
        ...

    def authorize(self, user: User, attributes: Attributes) -> Decision: ...

    def rules(self, user: User, namespace: str) -> Object:
        """Everything the user may do in a namespace, as the status of a SelfSubjectRulesReview."""
        ...


ALLOWED, DENIED = Decision(True), Decision(False)


class GroupAuthorizer:
    """Coarse on purpose: the user's groups decide.

    Members of ``system:masters`` may do everything, authenticated users may discover the API and ask about themselves,
    anonymous users may see health, version and readiness.
    """

    def trusts(self, user: User) -> bool:
        return MASTERS in user.groups

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if self.trusts(user):
            return ALLOWED
        known = AUTHENTICATED in user.groups
        if path := attributes.path:
            roots = _DISCOVERY_PATHS if known else _OPEN_PATHS
            served = any(path == root or path.startswith(f"{root}/") for root in roots)
            return ALLOWED if attributes.verb == "get" and served else DENIED
        asks = attributes.verb == "create" and attributes.resource in _SELF_REVIEWS
        return ALLOWED if known and asks else DENIED

    def rules(self, user: User, namespace: str) -> Object:
        if self.trusts(user):
            return {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        own = {"verbs": ["create"], "apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"]}
        return {
            "resourceRules": [own],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/api", "/apis", "/healthz", "/version"]}],
            "incomplete": False,
        }


def check(authorizer: Authorizer, user: User, attributes: Attributes) -> None:
    """Raises Forbidden unless the user may do this to this resource, or to this path that is none."""
    decision = authorizer.authorize(user, attributes)
    if decision.allowed:
        return
    why = f": {decision.reason}" if decision.reason else ""
    if attributes.path:
        sentence = f'forbidden: User "{user.name}" cannot {attributes.verb} path "{attributes.path}"{why}'
        raise Forbidden(sentence, details={})
    group, plural, name = attributes.group, attributes.resource, attributes.name
    qualified = f"{plural}.{group}" if group else plural
    subject = f'{qualified} "{name}"' if name else qualified
    path = f"{plural}/{attributes.subresource}" if attributes.subresource else plural
    place = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
    details = {"name": name, "group": group, "kind": plural}
    raise Forbidden(
        f'{subject} is forbidden: User "{user.name}" cannot {attributes.verb} resource "{path}" in API group '
        f'"{group}" {place}{why}',
        details={key: value for key, value in details.items() if value},
    )
