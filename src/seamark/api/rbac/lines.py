"""Roles and bindings made from short lines, in which tables of them are easy to read.

One line is one rule: its verbs, its API groups (``core`` is the one without a name), its resources, and the names of
objects if it is limited to some; or its verbs and the URLs it is about.  ``read`` and ``write`` stand for the verbs
that :data:`SHORT` lists, and a line ``events`` for :data:`EVENTS`.  A subject is its kind and its name.
"""

from __future__ import annotations

from seamark.api.rbac.rules import Rule
from seamark.errors import Object
from seamark.kinds.rbac.binding import GROUP

AUTOUPDATE = "rbac.authorization.kubernetes.io/autoupdate"

SHORT = {
    "read": "get list watch",
    "write": "create delete deletecollection patch update",
}
EVENTS = "create patch update | core events.k8s.io | events"


def rules_of(lines: str) -> tuple[Rule, ...]:
    """The rules that lines stand for; the words of each field are sorted, as Kubernetes has them."""
    return tuple(_rule(line) for line in lines.strip().splitlines())


def _rule(line: str) -> Rule:
    verbs, *rest = [part.split() for part in (EVENTS if line.strip() == "events" else line).split("|")]
    sorted_verbs = tuple(sorted(verb for word in verbs for verb in SHORT.get(word, word).split()))
    if len(rest) == 1:
        return Rule(sorted_verbs, urls=tuple(sorted(rest[0])))
    groups = tuple(sorted("" if group == "core" else group for group in rest[0]))
    names = tuple(sorted(rest[2])) if len(rest) > 2 else ()
    return Rule(sorted_verbs, groups, tuple(sorted(rest[1])), names)


def metadata(name: str, labels: dict[str, str], namespace: str = "") -> Object:
    made: Object = {"name": name, "labels": labels, "annotations": {AUTOUPDATE: "true"}}
    return made | ({"namespace": namespace} if namespace else {})


def role(name: str, lines: str, labels: dict[str, str], namespace: str = "") -> Object:
    """A Role, or a ClusterRole if there is no namespace."""
    rules = [rule.plain() for rule in rules_of(lines)]
    return {"metadata": metadata(name, labels, namespace), "rules": rules}


def binding(name: str, of: str, subjects: tuple[str, ...], labels: dict[str, str], namespace: str = "") -> Object:
    """A RoleBinding of a Role, or a ClusterRoleBinding if there is no namespace."""
    made: Object = {
        "metadata": metadata(name, labels, namespace),
        "roleRef": {"apiGroup": GROUP, "kind": "Role" if namespace else "ClusterRole", "name": of},
    }
    return made | ({"subjects": [_subject(text) for text in subjects]} if subjects else {})


def _subject(text: str) -> Object:
    kind, _, name = text.partition(" ")
    if kind == "ServiceAccount":
        return {"kind": kind, "name": name, "namespace": "kube-system"}
    return {"apiGroup": GROUP, "kind": kind, "name": name}
