"""The authorizer of a server with RBAC: its policy follows the roles and bindings in the server's cache."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import msgspec

from seamark.api.authorization import MASTERS, Attributes, Decision, User
from seamark.api.rbac.nodes import NodeRights
from seamark.api.rbac.policy import Binding, Place, Policy, Subject
from seamark.api.rbac.rules import Rule
from seamark.api.state.cache import Cache
from seamark.api.state.entries import Entry, Event
from seamark.errors import Object
from seamark.kinds.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from seamark.kinds.values.fields import one_message

log = logging.getLogger(__name__)


class _Role(msgspec.Struct):
    rules: tuple[Rule, ...] | None = None


class _RoleRef(msgspec.Struct):
    kind: str
    name: str


class _Binding(msgspec.Struct, rename="camel"):
    role_ref: _RoleRef
    subjects: tuple[Subject, ...] | None = None


_role = msgspec.json.Decoder(_Role)
_binding = msgspec.json.Decoder(_Binding)


class RbacAuthorizer:
    """Allows what roles say, a node's user what its Pods need, and members of ``system:masters`` everything."""

    def __init__(self, cache: Cache) -> None:
        self.policy = Policy()
        self._cache = cache
        self._nodes = NodeRights(cache)

    def load(self) -> None:
        """Take in the objects that the cache has now, and follow it from here on."""
        self._follow(CLUSTER_ROLES, _role, self._put_role)
        self._follow(ROLES, _role, self._put_role)
        self._follow(CLUSTER_ROLE_BINDINGS, _binding, self._put_binding)
        self._follow(ROLE_BINDINGS, _binding, self._put_binding)

    def _follow(self, resource: Any, decoder: Any, put: Callable[[Place, Any], None]) -> None:
        collection = self._cache.of(resource)
        follower = _Follower(decoder, put)
        for entry in collection.of_namespace(""):
            follower.take(entry)
        collection.subscribe(follower, "", "")

    def _put_role(self, place: Place, role: _Role | None) -> None:
        self.policy.put_role(place, None if role is None else role.rules or ())

    def _put_binding(self, place: Place, found: _Binding | None) -> None:
        if found is None:
            self.policy.put_binding(place, None)
            return
        role = (place[0] if found.role_ref.kind == "Role" else "", found.role_ref.name)
        self.policy.put_binding(place, Binding(place, role, found.subjects or ()))

    # --- decisions ---------------------------------------------------------------------------------

    def trusts(self, user: User) -> bool:
        return MASTERS in user.groups

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        decision = self.policy.decide(user, attributes)
        if decision.allowed or not (node := self._nodes.name_of(user)):
            return decision
        own = self._nodes.decide(node, attributes)
        if own.allowed or not decision.reason:
            return own
        return Decision(False, "\n".join(filter(None, (own.reason, decision.reason))))

    def rules(self, user: User, namespace: str) -> Object:
        rules, absences = self.policy.rules_for(user, namespace)
        status: Object = {
            "resourceRules": [msgspec.to_builtins(_about_resources(rule)) for rule in rules if rule.resources],
            "nonResourceRules": [
                {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)} for rule in rules if rule.urls
            ],
            "incomplete": False,
        }
        wrong = [one_message(absences)] if absences else []
        if self._nodes.name_of(user):
            status["incomplete"] = True
            wrong.insert(0, "node authorizer does not support user rule resolution")
        if wrong:
            status["evaluationError"] = one_message(wrong)
        return status


def _about_resources(rule: Rule) -> Object:
    shown: Object = {"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources}
    return shown | ({"resourceNames": rule.resource_names} if rule.resource_names else {})


class _Follower:
    """Takes the changes of one kind into the policy at the moment the cache sees them (a cache's ``Watcher``)."""

    def __init__(self, decoder: Any, put: Callable[[Place, Any], None]) -> None:
        self._decoder = decoder
        self._put = put

    def take(self, entry: Entry) -> None:
        try:
            found = self._decoder.decode(b"{" + entry.tail)
        except msgspec.DecodeError as error:
            log.warning("%s cannot be read and gives no rights: %s", entry.path, error)
            found = None
        self._put((entry.namespace, entry.name), found)

    def offer(self, event: Event) -> None:
        if event.type == "DELETED":
            self._put((event.entry.namespace, event.entry.name), None)
        else:
            self.take(event.entry)

    def flush(self, revision: int) -> None:
        pass

    def end(self) -> None:
        pass
