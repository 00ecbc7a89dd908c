"""In tests of controllers: Seamark's own parts have only the rights of their roles, all other users have all rights.

A part that calls what its role does not say is refused as in a real cluster.  Give it the right in
``seamark.api.rbac.components``.
"""

from __future__ import annotations

import functools

from seamark.api.authorization import Attributes, Decision, User
from seamark.api.rbac import components, roles
from seamark.api.rbac.policy import Binding, Policy, Subject
from seamark.api.rbac.rules import Rule
from seamark.errors import Object


@functools.cache
def _policy() -> Policy:
    """The same for every test: what follows from tables is only read."""
    policy = Policy()
    for role in roles.cluster_roles() + components.cluster_roles():
        policy.put_role(("", role["metadata"]["name"]), tuple(map(Rule.of, role["rules"] or ())))
    for bound in roles.cluster_role_bindings() + components.cluster_role_bindings():
        place = ("", bound["metadata"]["name"])
        subjects = (Subject(s["kind"], s["name"], s.get("namespace", "")) for s in bound.get("subjects", ()))
        policy.put_binding(place, Binding(place, ("", bound["roleRef"]["name"]), tuple(subjects)))
    return policy


class OwnRights:
    """An authorizer.  The user of a part is known by its name, ``system:PART``.

    Parts may list and watch everything, because they read through shared informers, which have a role of their own.
    """

    def __init__(self) -> None:
        self._policy = _policy()
        self.refused: set[str] = set()

    def check(self) -> None:
        """Fail if a part was refused anything; worlds call this while they wait, which would never end otherwise."""
        assert not self.refused, f"rights are missing in seamark.api.rbac.components: {sorted(self.refused)}"

    def _part(self, user: User) -> str:
        name = user.name.removeprefix("system:")
        return name if name in components.PARTS or name in roles.CONTROLLERS else ""

    def trusts(self, user: User) -> bool:
        return not self._part(user)

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        part = self._part(user)
        if not part or attributes.verb in ("list", "watch"):
            return Decision(True)
        decision = self._policy.decide(components.user_of(part), attributes)
        if not decision.allowed:
            what = f"{attributes.resource}/{attributes.subresource}".rstrip("/")
            self.refused.add(f"{part}: {attributes.verb} {attributes.group} {what}")
        return decision

    def rules(self, user: User, namespace: str) -> Object:
        raise NotImplementedError
