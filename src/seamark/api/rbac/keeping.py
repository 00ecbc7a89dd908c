"""Makes the roles and bindings that every cluster has when a server starts, and puts back what is missing in them.

Those that an earlier version gave to our own parts, and that no part has any more, are deleted, so that they do not
grant rights for ever.  What a user added stays.  An object with the annotation
``rbac.authorization.kubernetes.io/autoupdate: "false"`` is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.api.rbac import components, roles
from seamark.api.rbac.lines import AUTOUPDATE, binding, role
from seamark.api.rbac.rules import Rule, uncovered
from seamark.errors import Object
from seamark.kinds.rbac.aggregation import gathered
from seamark.kinds.resource import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Resource


class _Labelled(NamedTuple):
    name: str
    labels: Mapping[str, str]
    rules: list[Object]


async def make_roles(cluster: Cluster) -> None:
    """Everything that :mod:`~seamark.api.rbac.roles` and :mod:`~seamark.api.rbac.components` list."""
    wanted: list[tuple[Resource, Object]] = []
    wanted += [(CLUSTER_ROLES, each) for each in _complete(roles.cluster_roles() + components.cluster_roles())]
    wanted += [
        (CLUSTER_ROLE_BINDINGS, each) for each in roles.cluster_role_bindings() + components.cluster_role_bindings()
    ]
    for namespace, lines_of in roles.ROLES.items():
        for name, lines, bound_as, subjects in lines_of:
            wanted.append((ROLES, role(name, lines, roles.LABEL, namespace)))
            wanted.append((ROLE_BINDINGS, binding(bound_as, name, subjects, roles.LABEL, namespace)))
    found = await _found(cluster, {resource for resource, _ in wanted})
    await asyncio.gather(*(_keep(cluster, resource, obj, found) for resource, obj in wanted))
    listed = {(resource, obj["metadata"]["name"]) for resource, obj in wanted}
    for (resource, _, name), obj in found.items():
        if (resource, name) not in listed and _outdated(obj):
            with suppress(errors.NotFound):
                await cluster.delete(resource, name)


def _complete(made: list[Object]) -> list[Object]:
    """The aggregated roles with their rules, which the aggregation controller keeps from then on."""
    by_label = [_Labelled(each["metadata"]["name"], each["metadata"]["labels"], each["rules"] or []) for each in made]
    # Those that are gathered first come last in this order: view, then edit, then admin.
    for each in reversed(made[: len(roles.AGGREGATED)]):
        selectors = each["aggregationRule"]["clusterRoleSelectors"]
        each["rules"] = gathered(each["metadata"]["name"], selectors, by_label)
        at = next(i for i, other in enumerate(by_label) if other.name == each["metadata"]["name"])
        by_label[at] = by_label[at]._replace(rules=each["rules"])
    return made


Found = dict[tuple[Resource, str, str], Object]


async def _found(cluster: Cluster, resources: Iterable[Resource]) -> Found:
    found: Found = {}
    for resource in resources:
        for obj in (await cluster.list(resource)).items:
            meta = obj["metadata"]
            found[resource, meta.get("namespace", ""), meta["name"]] = obj
    return found


async def _keep(cluster: Cluster, resource: Resource, wanted: Object, found: Found) -> None:
    meta = wanted["metadata"]
    namespace = meta.get("namespace", "")
    old = found.get((resource, namespace, meta["name"]))
    try:
        if old is None:
            await cluster.create(resource, wanted, namespace=namespace, as_=Receipt)
        elif "roleRef" in wanted and old["roleRef"] != wanted["roleRef"] and not _protected(old):
            await cluster.delete(resource, meta["name"], namespace=namespace)
            await cluster.create(resource, wanted, namespace=namespace)
        elif (new := mended(old, wanted)) != old:
            await cluster.update(resource, new, namespace=namespace)
    except (errors.AlreadyExists, errors.Conflict):
        return  # another server that shares the store was faster


def _outdated(obj: Object) -> bool:
    """Whether a role or binding that is not listed was made for a part of an earlier version."""
    meta = obj["metadata"]
    ours = components.LABEL.items() <= (meta.get("labels") or {}).items() and AUTOUPDATE in (
        meta.get("annotations") or {}
    )
    return ours and meta["name"].startswith("seamark:") and not _protected(obj)


def _protected(obj: Object) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false"


def mended(old: Object, wanted: Object) -> Object:
    """The old object with all that is wanted: labels, annotations, rules, selectors and subjects."""
    if _protected(old):
        return old
    meta = {**old["metadata"]}
    for field in ("labels", "annotations"):
        meta[field] = {**wanted["metadata"][field], **(meta.get(field) or {})}
    new = {**old, "metadata": meta}
    if "roleRef" in wanted:
        have = old.get("subjects") or []
        if missing := [subject for subject in wanted.get("subjects") or () if subject not in have]:
            new["subjects"] = have + missing
    elif "aggregationRule" in wanted:
        have = (old.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
        missing = [each for each in wanted["aggregationRule"]["clusterRoleSelectors"] if each not in have]
        if missing:
            new["aggregationRule"] = {"clusterRoleSelectors": have + missing}
    else:
        have = old.get("rules") or []
        if changed := [rule for rule in wanted["rules"] if rule not in have]:
            held = [Rule.of(rule) for rule in have]
            new["rules"] = have + [rule for rule in changed if uncovered(held, [Rule.of(rule)])]
    return new
