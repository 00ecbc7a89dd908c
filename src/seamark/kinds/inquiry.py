"""What the API server tells a review about users: their identity and their rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seamark.errors import Object


class Inquiry(Protocol):
    """Answers about users.  A user is given as its ``userInfo``: username, uid, groups."""

    now: str  # the moment of the request, RFC 3339
    user: Object  # the userInfo of the user who makes the request

    def user_of_token(self, token: str) -> Object | None:
        """The userInfo of the user with this bearer token; None if the token is unknown."""
        ...

    def access(self, spec: Object, user: str | None = None, groups: Sequence[str] = ()) -> Object:
        """The status of an access review with this spec, for the named user, else for the user of the request."""
        ...

    def rules(self, namespace: str) -> Object:
        """All that the user of the request may do in a namespace: the status of a SelfSubjectRulesReview."""
        ...
