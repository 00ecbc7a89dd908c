"""Refuses to let users give away rights by RBAC that they do not have themselves.

A role may contain only what its writer may do already, unless he has the verb ``escalate`` on it; a binding needs the
rights of its role, or the verb ``bind`` on that.
"""

from __future__ import annotations

from seamark.api.authorization import Attributes, User
from seamark.api.rbac.authorizer import RbacAuthorizer
from seamark.api.rbac.policy import Place
from seamark.api.rbac.rules import ANY, Rule, quoted, texts, uncovered
from seamark.errors import NotFound, Object
from seamark.kinds.admission import Plugin, Request
from seamark.kinds.rbac.binding import GROUP
from seamark.kinds.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES
from seamark.kinds.values.fields import one_message, show
from seamark.kinds.values.refusals import named

_EVERYTHING = (Rule((ANY,), (ANY,), (ANY,)), Rule((ANY,), urls=(ANY,)))


class NoEscalation(Plugin):
    """Looks at every role and binding that is written."""

    resources = frozenset({ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS})
    operations = ("CREATE", "UPDATE")

    def __init__(self, authorizer: RbacAuthorizer) -> None:
        self._authorizer = authorizer

    def mutate(self, request: Request) -> None:
        user = request.user
        assert isinstance(user, User)
        if self._authorizer.trusts(user) or _only_cleaned(request):
            return
        if "roleRef" in request.obj:
            self._check_binding(request, user)
        else:
            self._check_role(request, user)

    def _check_role(self, request: Request, user: User) -> None:
        resource = request.kind.resource
        # The name is that of the path, which a creation does not have.
        name = "" if request.old is None else request.name
        if self._may(user, "escalate", resource.plural, request.namespace, name):
            return
        rules = tuple(Rule.of(rule) for rule in request.obj.get("rules") or ())
        self._check_held(request, user, rules)
        before = (request.old or {}).get("aggregationRule")
        if request.obj.get("aggregationRule") != before and self._missing(user, request.namespace, _EVERYTHING)[0]:
            raise request.forbidden("must have cluster-admin privileges to use the aggregationRule")

    def _check_binding(self, request: Request, user: User) -> None:
        role = request.obj["roleRef"]
        namespaced = role.get("kind") == "Role"
        name = role.get("name", "")
        if self._may(user, "bind", "roles" if namespaced else "clusterroles", request.namespace, name):
            return
        place: Place = (request.namespace if namespaced else "", name)
        rules = self._authorizer.policy.rules_of(place)
        if rules is None:
            resource = request.kind.resource
            raise NotFound(f'{resource.qualified} "{name}" not found', details=named(resource, name))
        self._check_held(request, user, rules)

    def _may(self, user: User, verb: str, resource: str, namespace: str, name: str) -> bool:
        asked = Attributes(verb, GROUP, "v1", resource, namespace=namespace, name=name)
        return self._authorizer.authorize(user, asked).allowed

    def _missing(self, user: User, namespace: str, rules: tuple[Rule, ...]) -> tuple[list[Rule], list[str]]:
        held, absences = self._authorizer.policy.rules_for(user, namespace)
        return uncovered(held, rules), absences

    def _check_held(self, request: Request, user: User, rules: tuple[Rule, ...]) -> None:
        missing, absences = self._missing(user, request.namespace, rules)
        if missing:
            lines = "\n".join(texts(missing))
            more = f"; resolution errors: [{one_message(absences)}]" if absences else ""
            raise request.forbidden(
                f"user {show(user.name)} (groups={quoted(user.groups)}) is attempting to grant RBAC permissions not "
                f"currently held:\n{lines}{more}"
            )


# What the garbage collector changes to remove an object, and what the server itself keeps.
_NO_RIGHTS = frozenset({"finalizers", "ownerReferences", "managedFields", "resourceVersion"})


def _only_cleaned(request: Request) -> bool:
    """Whether an update changes nothing but what keeps the object from being removed."""
    return request.old is not None and _compared(request.obj) == _compared(request.old)


def _compared(obj: Object) -> Object:
    meta = {name: value for name, value in obj["metadata"].items() if name not in _NO_RIGHTS}
    rest = {name: value for name, value in obj.items() if name not in ("apiVersion", "kind", "metadata") and value}
    return {"metadata": meta, **rest}
