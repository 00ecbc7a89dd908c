"""What the API server tells a document that asks something (a review, a TokenRequest): about users, rights, objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seamark.errors import Object
from seamark.kinds.resource import Resource


class Inquiry(Protocol):
    """Answers about users.  A user is given as its ``userInfo``: username, uid, groups, extra."""

    now: str  # the moment of the request, RFC 3339
    user: Object  # the userInfo of the user who makes the request
    audiences: tuple[str, ...]  # the names of this API in tokens
    longest_token: int  # the seconds that a token may be good for; 0: no limit
    extends: bool  # whether the tokens of kubelets live longer than they ask for

    def examine_token(self, token: str, audiences: Sequence[str]) -> Object:
        """Whose a bearer token is, and for which of these audiences: the status of a TokenReview."""
        ...

    def sign(self, claims: Object) -> str:
        """A token of ours with these claims."""
        ...

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """An object as it is now; None if there is none."""
        ...

    def access(self, spec: Object, user: str | None = None, groups: Sequence[str] = ()) -> Object:
        """The status of an access review with this spec, for the named user, else for the user of the request."""
        ...

    def rules(self, namespace: str) -> Object:
        """All that the user of the request may do in a namespace: the status of a SelfSubjectRulesReview."""
        ...
