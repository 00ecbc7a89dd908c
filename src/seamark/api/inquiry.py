"""What reviews and TokenRequests ask (:class:`seamark.kinds.inquiry.Inquiry`), on behalf of one user."""

from __future__ import annotations

from collections.abc import Sequence

from seamark.api.admission import Others
from seamark.api.authentication import Authenticator
from seamark.api.authorization import Attributes, Authorizer, User
from seamark.errors import Object
from seamark.kinds.resource import Resource


class Inquiry:
    """Answers the questions of one request."""

    def __init__(
        self, authorizer: Authorizer, authenticator: Authenticator, others: Others, asking: User, now: str
    ) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator
        self._others = others
        self._asking = asking
        self.user = asking.info
        self.now = now
        self.sign = authenticator.accounts.issue
        self.audiences = authenticator.accounts.settings.audiences
        self.longest_token = authenticator.accounts.settings.longest_seconds
        self.extends = authenticator.accounts.settings.extend

    def examine_token(self, token: str, audiences: Sequence[str]) -> Object:
        return self._authenticator.review(token, audiences)

    def find(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        return self._others.get(resource, name, namespace)

    def access(self, spec: Object, user: str | None = None, groups: Sequence[str] = ()) -> Object:
        asked = spec.get("resourceAttributes") or {}
        if asked:
            words = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
            attributes = Attributes(**{word: asked.get(word, "") for word in words})
        else:
            asked = spec["nonResourceAttributes"]
            attributes = Attributes(asked.get("verb", ""), path=asked.get("path", "") or "/")
        decision = self._authorizer.authorize(self._asking if user is None else User(user, tuple(groups)), attributes)
        return {"allowed": decision.allowed, **({"reason": decision.reason} if decision.reason else {})}

    def rules(self, namespace: str) -> Object:
        return self._authorizer.rules(self._asking, namespace)
