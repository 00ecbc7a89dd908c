"""Users and ServiceAccounts with limited rights, each with a kubeconfig of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.daemon.kubeconfig import kubeconfig
from seamark.errors import Object
from seamark.kinds.rbac.binding import GROUP
from seamark.kinds.resource import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    ROLE_BINDINGS,
    ROLES,
    SERVICE_ACCOUNTS,
)
from seamark.private_files import write_private

# As in a Role: [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]}].
Rules = Iterable[Mapping[str, Any]]


class Login(msgspec.Struct, frozen=True):
    """How one user reaches the cluster."""

    url: str
    ca: Path
    token: str
    kubeconfig: Path


def written(folder: Path, name: str, *, server: str, ca: Path, token: str, namespace: str) -> Login:
    """The login of a user, with a kubeconfig in this folder."""
    path = folder / f"{name.replace('/', '-').replace(':', '-')}.kubeconfig"
    text = kubeconfig(server=server, ca=ca.read_bytes(), token=token, namespace=namespace or "default")
    write_private(path, text.encode())
    return Login(server, ca, token, path)


async def account_token(cluster: Cluster, name: str, namespace: str) -> str:
    with suppress(errors.AlreadyExists):
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}}, namespace=namespace)
    made = await cluster.create(SERVICE_ACCOUNTS, {"spec": {}}, namespace=namespace, name=name, subresource="token")
    return str(made["status"]["token"])


async def allow(cluster: Cluster, subject: Object, rules: Rules, role: str, only_in: str) -> None:
    """Bind a subject to a ClusterRole and to a role with these rules, everywhere or in one namespace."""
    bindings = ROLE_BINDINGS if only_in else CLUSTER_ROLE_BINDINGS
    metadata = {"generateName": f"{subject['name'].replace(':', '-').lower()}-"}
    roles: list[tuple[str, str]] = [("ClusterRole", role)] if role else []
    if rules := [dict(rule) for rule in rules]:
        resource = ROLES if only_in else CLUSTER_ROLES
        made = await cluster.create(resource, {"metadata": metadata, "rules": rules}, namespace=only_in)
        roles.append((resource.kind, made["metadata"]["name"]))
    for kind, name in roles:
        reference = {"apiGroup": GROUP, "kind": kind, "name": name}
        binding = {"metadata": metadata, "roleRef": reference, "subjects": [subject]}
        await cluster.create(bindings, binding, namespace=only_in)
