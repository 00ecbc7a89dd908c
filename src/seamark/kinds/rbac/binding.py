"""RoleBinding and ClusterRoleBinding: a role, which stays the same, and the subjects that get it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS
from seamark.kinds.values.fields import Errors, immutable, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_subdomain, path_segment
from seamark.kinds.values.times import age

GROUP = "rbac.authorization.k8s.io"


class RoleBindingKind(Kind):
    resource = ROLE_BINDINGS
    singular = "rolebinding"
    shape_name = "io.k8s.api.rbac.v1.RoleBinding"
    create_on_update = True
    roles: ClassVar[tuple[str, ...]] = ("Role", "ClusterRole")  # the kinds that can be bound
    columns = (
        Column("Name", format="name"),
        Column("Role"),
        Column("Age"),
        Column("Users", priority=1),
        Column("Groups", priority=1),
        Column("ServiceAccounts", priority=1),
    )

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)

    def default(self, obj: Object) -> None:
        role = obj.setdefault("roleRef", {})
        role["apiGroup"] = role.get("apiGroup") or GROUP
        for subject in obj.get("subjects") or ():
            if subject.get("kind") in ("User", "Group") and not subject.get("apiGroup"):
                subject["apiGroup"] = GROUP

    def validate(self, obj: Object) -> Errors:
        role = obj["roleRef"]
        errors: Errors = []
        if role["apiGroup"] != GROUP:
            errors.append(not_supported("roleRef.apiGroup", role["apiGroup"], (GROUP,)))
        if role.get("kind") not in self.roles:
            errors.append(not_supported("roleRef.kind", role.get("kind", ""), self.roles))
        if name := role.get("name"):
            errors += [invalid("roleRef.name", name, sentence) for sentence in path_segment(name)]
        else:
            errors.append(required("roleRef.name"))
        for i, subject in enumerate(obj.get("subjects") or ()):
            errors += self._subject_mistakes(subject, f"subjects[{i}]")
        return errors

    def _subject_mistakes(self, subject: Object, path: str) -> Errors:
        name, kind, group = subject.get("name", ""), subject.get("kind", ""), subject.get("apiGroup", "")
        errors: Errors = [] if name else [required(f"{path}.name")]
        if kind == "ServiceAccount":
            if name:
                errors += [invalid(f"{path}.name", name, sentence) for sentence in dns_subdomain(name)]
            if group:
                errors.append(not_supported(f"{path}.apiGroup", group, ("",)))
            if not self.resource.namespaced and not subject.get("namespace"):
                errors.append(required(f"{path}.namespace"))
        elif kind in ("User", "Group"):
            if group != GROUP:
                errors.append(not_supported(f"{path}.apiGroup", group, (GROUP,)))
        else:
            errors.append(not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        role = obj["roleRef"]
        if role != old["roleRef"]:
            shown = {"APIGroup": role["apiGroup"], "Kind": role.get("kind", ""), "Name": role.get("name", "")}
            errors.append(immutable("roleRef", shown))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, role = obj["metadata"], obj["roleRef"]
        named: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
        for subject in obj.get("subjects") or ():
            name = subject.get("name", "")
            account = subject.get("kind") == "ServiceAccount"
            named[subject["kind"]].append(f"{subject.get('namespace', '')}/{name}" if account else name)
        return [
            meta.get("name", ""),
            f"{role['kind']}/{role['name']}",
            age(now, meta.get("creationTimestamp")),
            *(", ".join(names) for names in named.values()),
        ]


class ClusterRoleBindingKind(RoleBindingKind):
    resource = CLUSTER_ROLE_BINDINGS
    singular = "clusterrolebinding"
    shape_name = "io.k8s.api.rbac.v1.ClusterRoleBinding"
    roles = ("ClusterRole",)


ROLE_BINDING = RoleBindingKind()
CLUSTER_ROLE_BINDING = ClusterRoleBindingKind()
