"""Servers that share a store: what is granted or taken away on one decides on the other, too."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

from granting import CONFIG_MAPS, RBAC, grant, rule
from served import OTHER, Served, served

from seamark.api.rbac.keeping import make_roles


async def until_answered(api: Served, status: int) -> None:
    """Until the user ``other`` gets this answer for a list of ConfigMaps."""
    while (await api.ask("GET", CONFIG_MAPS, token=OTHER)).status != status:
        await asyncio.sleep(0.01)


async def test_a_binding_on_one_server_decides_on_the_other(etcd: Any) -> None:
    url = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    async with served(url=url, rbac=True) as one, served(url=url, rbac=True) as two:
        await make_roles(one.api.cluster("apiserver"))
        await until_answered(one, 403)
        await until_answered(two, 403)
        await grant(one, "other", rule("list", "configmaps"))
        await until_answered(two, 200)
        await two.delete(f"{RBAC}/namespaces/default/rolebindings/r")
        await until_answered(one, 403)
        await grant(two, "other", rule("list", "configmaps"), name="again")
        await until_answered(one, 200)
        await one.delete(f"{RBAC}/namespaces/default/roles/again")
        await until_answered(two, 403)
