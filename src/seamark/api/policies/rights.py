"""Who may name parameters in admission policies: those who may read them.

What a policy says to others may quote its parameters.  So a policy with a kind of parameters needs the right to get all
objects of that kind, and a binding the right to get the object that it names, or to list those that it selects.
"""

from __future__ import annotations

from seamark.api.authorization import Attributes, Authorizer, User
from seamark.errors import Object
from seamark.kinds.admission import Plugin, Request
from seamark.kinds.resource import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    Resource,
)
from seamark.kinds.table import Kinds
from seamark.kinds.values.fields import forbidden, refuse

_ALL = "*"
_POLICIES_OF = {VALIDATING_POLICY_BINDINGS: VALIDATING_POLICIES, MUTATING_POLICY_BINDINGS: MUTATING_POLICIES}


class ParameterRights(Plugin):
    """Refuses policies and bindings of users who may not read their parameters."""

    resources = frozenset({*_POLICIES_OF, *_POLICIES_OF.values()})
    operations = ("CREATE", "UPDATE")

    def __init__(self, kinds: Kinds, authorizer: Authorizer) -> None:
        self._kinds = kinds
        self._authorizer = authorizer

    def validate(self, request: Request) -> None:
        user, spec = request.user, request.obj["spec"]
        before = None if request.old is None else request.old["spec"]
        assert isinstance(user, User)
        if self._authorizer.trusts(user):
            return
        policies = _POLICIES_OF.get(request.kind.resource)
        field, fixed = ("paramKind", ("paramKind",)) if policies is None else ("paramRef", ("paramRef", "policyName"))
        wanted = spec.get(field)
        if wanted is None or (before is not None and all(spec.get(name) == before.get(name) for name in fixed)):
            return
        if policies is None:
            said = self._kind_refusal(user, wanted)
        else:
            said = self._reference_refusal(request, user, policies, wanted)
        if said:
            raise refuse(request.kind.resource, request.name, [forbidden(f"spec.{field}", said)])

    def _kind_refusal(self, user: User, kind: Object) -> str:
        if self._may(user, "get", kind, namespace=_ALL, name=_ALL):
            return ""
        shown = f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
        return f'user {_printed(user)} must have "get" permission on all objects of the referenced paramKind {shown}'

    def _reference_refusal(self, request: Request, user: User, policies: Resource, reference: Object) -> str:
        name = request.obj["spec"].get("policyName", "")
        policy = request.others.get(policies, name)
        kind = None if policy is None else policy["spec"].get("paramKind")
        wanted = reference.get("name", "")
        verb = "get" if wanted else "list"
        if self._may(user, verb, kind, namespace=reference.get("namespace", ""), name=wanted):
            return ""
        lacking = f'user {_printed(user)} does not have "{verb}" permission'
        if policy is None:
            unknown = f"get policy {name}"
        elif kind is not None and self._kinds.by_kind(kind["apiVersion"], kind["kind"]) is None:
            unknown = f"resolve paramKind &{{{kind['apiVersion']} {kind['kind']}}}"
        else:
            return f"{lacking} on the object referenced by paramRef"
        everywhere = f"{lacking} for all groups, versions and resources"
        return f"unable to {unknown} to determine minimum required permissions and {everywhere}"

    def _may(self, user: User, verb: str, kind: Object | None, *, namespace: str, name: str) -> bool:
        """Whether a user may read parameters; for a kind that is not known he needs the right to read all kinds."""
        group, version, resource = _ALL, _ALL, _ALL
        if kind is not None:
            group, _, version = kind.get("apiVersion", "").rpartition("/")
            if (known := self._kinds.by_kind(kind.get("apiVersion", ""), kind.get("kind", ""))) is not None:
                resource = known.resource.plural
        asked = Attributes(verb, group, version, resource, namespace=namespace, name=name)
        return self._authorizer.authorize(user, asked).allowed


def _printed(user: User) -> str:
    """A user as Go prints him."""
    extra = " ".join(f"{name}:[{' '.join(values)}]" for name, values in sorted(user.extra))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
