"""Roles and bindings, indexed for decisions.  Pure: objects are put in and taken out, requests are decided.

A decision looks only at the bindings of the user and of its groups, at the cluster scope and in the namespace of the
request.  The rules of one subject in one scope are compiled into a :class:`Table` when they are first needed, and a
change drops the tables of the subjects it concerns.  Verdicts are kept until the next change, for all names of objects
together, so that a decision usually costs one look-up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import msgspec

from seamark.api.authorization import ALLOWED, DENIED, MASTERS, Attributes, Decision, User
from seamark.api.rbac.rules import ANY, Rule, names_of
from seamark.kinds.values.fields import one_message

MOST_VERDICTS = 20_000

K = TypeVar("K")
V = TypeVar("V")

Place = tuple[str, str]  # namespace and name; the namespace of a ClusterRole or ClusterRoleBinding is ""


class Subject(msgspec.Struct, frozen=True):
    """A user, a group or a ServiceAccount that a binding names."""

    kind: str
    name: str
    namespace: str = ""

    def key(self, namespace: str) -> str:
        """What a user or group is indexed under; ``namespace`` is that of the binding."""
        if self.kind == "ServiceAccount":
            return f"User system:serviceaccount:{self.namespace or namespace}:{self.name}"
        return f"{self.kind} {self.name}"

    def __str__(self) -> str:
        return f'{self.kind} "{self.name}/{self.namespace}"' if self.namespace else f'{self.kind} "{self.name}"'


class Binding(msgspec.Struct, frozen=True):
    """A role and its subjects."""

    place: Place
    role: Place
    subjects: tuple[Subject, ...]

    @property
    def role_text(self) -> str:
        return f'{"Role" if self.role[0] else "ClusterRole"} "{self.role[1]}"'

    def reason(self, subject: Subject) -> str:
        namespace, name = self.place
        binding = f'RoleBinding "{name}/{namespace}"' if namespace else f'ClusterRoleBinding "{name}"'
        return f"RBAC: allowed by {binding} of {self.role_text} to {subject}"

    @property
    def absence(self) -> str:
        """The sentence about its role where that is missing."""
        kind = "role" if self.role[0] else "clusterrole"
        return f'{kind}.rbac.authorization.k8s.io "{self.role[1]}" not found'


class Grant(msgspec.Struct, frozen=True):
    """One rule of a table: the verbs, the names (empty: all of them), and the reason.  Earlier bindings come first."""

    order: tuple[str, str, int]
    groups: frozenset[str]
    verbs: frozenset[str]
    names: frozenset[str]
    reason: str

    def has(self, verb: str) -> bool:
        return verb in self.verbs or ANY in self.verbs

    def is_about(self, group: str) -> bool:
        return group in self.groups or ANY in self.groups


class Table(msgspec.Struct):
    """All that one subject may do in one scope: by resource, and by URL.

    Not by group and resource: a short rule that names a thousand of each would make a million entries.
    """

    resources: dict[str, list[Grant]] = {}
    urls: list[tuple[Rule, Grant]] = []
    absences: list[str] = []


class Verdict(msgspec.Struct, frozen=True):
    """The decision about a request for any object, and those about objects of certain names."""

    decision: Decision
    named: dict[str, Decision] = {}


class Policy:
    """The roles and bindings of a cluster."""

    def __init__(self) -> None:
        self._roles: dict[Place, tuple[Rule, ...]] = {}
        self._bindings: dict[Place, Binding] = {}
        self._bound: dict[Place, dict[Place, None]] = {}  # the bindings of a role
        self._in_scope: dict[str, dict[Place, None]] = {}  # the bindings of a namespace; of the cluster: ""
        self._by_subject: dict[str, dict[str, dict[Place, Subject]]] = {}  # by subject and scope
        self._tables: dict[tuple[str, str], Table] = {}
        self._verdicts: dict[tuple[object, ...], Verdict] = {}

    # --- changes -----------------------------------------------------------------------------------

    def put_role(self, place: Place, rules: tuple[Rule, ...] | None) -> None:
        """The rules of a Role, or of a ClusterRole if its namespace is ""; None if there is none any more."""
        if rules is None:
            self._roles.pop(place, None)
        else:
            self._roles[place] = rules
        for bound in self._bound.get(place, ()):
            self._forget(self._bindings[bound])

    def put_binding(self, place: Place, binding: Binding | None) -> None:
        """A RoleBinding, or a ClusterRoleBinding if its namespace is ""; None if there is none any more."""
        scope = place[0]
        old = self._bindings.pop(place, None)
        if old is not None:
            self._forget(old)
            _discard(self._bound, old.role, place)
            _discard(self._in_scope, scope, place)
            for subject in old.subjects:
                scopes = self._by_subject.get(subject.key(scope), {})
                _discard(scopes, scope, place)
                if not scopes:
                    self._by_subject.pop(subject.key(scope), None)
        if binding is not None:
            self._bindings[place] = binding
            self._bound.setdefault(binding.role, {})[place] = None
            self._in_scope.setdefault(scope, {})[place] = None
            for subject in binding.subjects:
                scopes = self._by_subject.setdefault(subject.key(scope), {})
                scopes.setdefault(scope, {}).setdefault(place, subject)
            self._forget(binding)

    def _forget(self, binding: Binding) -> None:
        """Drop what was compiled from a binding or its role."""
        scope = binding.place[0]
        for subject in binding.subjects:
            self._tables.pop((subject.key(scope), scope), None)
        self._verdicts.clear()

    # --- decisions ---------------------------------------------------------------------------------

    def decide(self, user: User, asked: Attributes) -> Decision:
        if MASTERS in user.groups:
            return ALLOWED
        resource = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
        # All namespaces without bindings have the same verdicts, so that those which come and go leave none behind.
        namespace = asked.namespace if asked.namespace in self._in_scope else ""
        key = (user.name, user.groups, asked.verb, asked.group, resource, namespace, asked.path)
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) >= MOST_VERDICTS:
                self._verdicts.clear()
            verdict = self._verdict(user, asked.verb, asked.group, resource, namespace, asked.path)
            self._verdicts[key] = verdict
        if verdict.named:
            return verdict.named.get(asked.name, verdict.decision)
        return verdict.decision

    def _verdict(self, user: User, verb: str, group: str, resource: str, namespace: str, path: str) -> Verdict:
        tables = list(self._tables_of(user, "" if path else namespace))
        if path:
            found = [
                grant for table in tables for rule, grant in table.urls if grant.has(verb) and rule.covers_url(path)
            ]
        else:
            names = names_of(resource)
            found = [
                grant
                for table in tables
                for name in names
                for grant in table.resources.get(name, ())
                if grant.has(verb) and grant.is_about(group)
            ]
        found.sort(key=lambda grant: grant.order)
        for grant in found:
            if not grant.names:
                return Verdict(Decision(True, grant.reason))
        absences = list(dict.fromkeys(absence for table in tables for absence in table.absences))
        decision = Decision(False, f"rbac: RBAC: {one_message(absences)}") if absences else DENIED
        named: dict[str, Decision] = {}
        for grant in found:
            for name in grant.names:
                named.setdefault(name, Decision(True, grant.reason))
        return Verdict(decision, named)

    def _tables_of(self, user: User, namespace: str) -> Iterator[Table]:
        keys = [key for key in _keys(user) if key in self._by_subject]
        for scope in ("", namespace) if namespace else ("",):
            for key in keys:
                if scope in self._by_subject[key]:
                    yield self._tables.get((key, scope)) or self._compile(key, scope)

    def _compile(self, key: str, scope: str) -> Table:
        table = self._tables[key, scope] = Table({}, [], [])
        for place, subject in sorted(self._by_subject[key][scope].items()):
            binding = self._bindings[place]
            rules = self._roles.get(binding.role)
            if rules is None:
                table.absences.append(binding.absence)
                continue
            reason = binding.reason(subject)
            for at, rule in enumerate(rules):
                groups, verbs, names = map(frozenset, (rule.api_groups, rule.verbs, rule.resource_names))
                grant = Grant((scope, place[1], at), groups, verbs, names, reason)
                for resource in dict.fromkeys(rule.resources):
                    table.resources.setdefault(resource, []).append(grant)
                if rule.urls:
                    table.urls.append((rule, grant))
        return table

    # --- all rules of a user -----------------------------------------------------------------------

    def rules_for(self, user: User, namespace: str) -> tuple[list[Rule], list[str]]:
        """All rules that apply to a user in a namespace ("": at the cluster scope), and which roles are missing."""
        places: set[Place] = set()
        for key in _keys(user):
            scopes = self._by_subject.get(key, {})
            for scope in {"", namespace}:
                places.update(scopes.get(scope, ()))
        rules: list[Rule] = []
        absences: list[str] = []
        for place in sorted(places):
            found = self._roles.get(self._bindings[place].role)
            if found is None:
                absences.append(self._bindings[place].absence)
            else:
                rules += found
        return rules, absences

    def rules_of(self, role: Place) -> tuple[Rule, ...] | None:
        """The rules of a role; None if there is none."""
        return self._roles.get(role)


def _keys(user: User) -> Iterator[str]:
    if user.name:
        yield f"User {user.name}"
    for group in user.groups:
        yield f"Group {group}"


def _discard(index: dict[K, dict[Place, V]], key: K, place: Place) -> None:
    """Remove a place from an entry of an index, and the entry when it is empty."""
    if (found := index.get(key)) is not None:
        found.pop(place, None)
        if not found:
            del index[key]
