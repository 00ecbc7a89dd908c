"""Roles for tests, and users who have them."""

from __future__ import annotations

from typing import Any

from served import Served

Object = dict[str, Any]
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


async def grant(api: Served, user: str, *rules: Object, name: str = "r", namespace: str = "default") -> None:
    """A Role with these rules, bound to the user."""
    place = f"{RBAC}/namespaces/{namespace}"
    await api.post(f"{place}/roles", {"metadata": {"name": name}, "rules": list(rules)})
    subjects = [{"kind": "User", "name": user}]
    bound = {"metadata": {"name": name}, "roleRef": {"kind": "Role", "name": name}, "subjects": subjects}
    await api.post(f"{place}/rolebindings", bound)


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> Object:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split(), **more}
