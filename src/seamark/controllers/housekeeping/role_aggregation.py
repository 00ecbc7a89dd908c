"""Keeps the rules of aggregated ClusterRoles: those of all ClusterRoles that their selectors choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.kinds.rbac.aggregation import chosen, gathered, same_rules
from seamark.kinds.resource import CLUSTER_ROLES
from seamark.rules.objects.metadata import ObjectView, View
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "clusterrole-aggregation-controller"


class AggregationRule(View, frozen=True):
    cluster_role_selectors: tuple[dict[str, Any], ...] = ()


class ClusterRole(ObjectView, frozen=True):
    written: tuple[dict[str, Any], ...] | None = msgspec.field(default=None, name="rules")  # null if there are none
    aggregation_rule: AggregationRule | None = None

    @property
    def rules(self) -> tuple[dict[str, Any], ...]:
        return self.written or ()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels


class RoleAggregation(Controller):
    """Writes the rules that an aggregated ClusterRole should have, whenever a ClusterRole changes."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._roles = self.watch(manager.informers.of(CLUSTER_ROLES, as_=ClusterRole), self._changed)

    def _changed(self, key: Key, old: ClusterRole | None, new: ClusterRole | None) -> None:
        for role in self._roles.objects():
            if role.aggregation_rule is not None:
                self.queue.add(role.name)

    async def reconcile(self, key: Key) -> None:
        role = self._roles.by_key(key)
        if role is None or role.aggregation_rule is None:
            return
        rules = gathered(role.name, role.aggregation_rule.cluster_role_selectors, self._roles.objects())
        if rules == list(role.rules):
            return
        if same_rules(rules, role.rules) and self._goes_round(role):
            return
        try:
            await self._cluster.patch(CLUSTER_ROLES, role.name, {"rules": rules or None}, as_=Receipt)
        except errors.NotFound:
            return  # it is gone, so there is nothing to do

    def _goes_round(self, role: ClusterRole) -> bool:
        """Whether roles that it chooses choose it, maybe through others: then each changes the order of the others'.

        They would be written for ever.
        """
        roles = list(self._roles.objects())
        seen: dict[str, None] = {}
        ahead = [role]
        while ahead:
            each = ahead.pop()
            if each.aggregation_rule is not None and each.name not in seen:
                seen[each.name] = None
                found = list(chosen(each.name, each.aggregation_rule.cluster_role_selectors, roles))
                if any(next_.name == role.name for next_ in found):
                    return True
                ahead += found
        return False
