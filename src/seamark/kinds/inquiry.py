"""What a review may ask the API server: who somebody is, and what they may do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from seamark.errors import Object


class Inquiry(Protocol):
    """Answers about users.  A user is given as its ``userInfo``: username, uid, groups."""

    now: str  # the moment of the request, RFC 3339
    user: Object  # the userInfo of whoever asks

    def user_of_token(self, token: str) -> Object | None:
        """The userInfo of a bearer token's user; None if it is nobody's."""
        ...

    def access(self, spec: Object, user: str | None = None, groups: Sequence[str] = ()) -> Object:
        """The status of an access review with this spec: for a named user, or for whoever asks."""
        ...

    def rules(self, namespace: str) -> Object:
        """All that whoever asks may do in a namespace, as the status of a SelfSubjectRulesReview."""
        ...
