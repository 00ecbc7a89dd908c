"""Says of ValidatingAdmissionPolicies which of their expressions do not fit the types of what they match."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.errors import Object
from seamark.haste import Costly, Patience, at_length, at_once
from seamark.kinds.resource import VALIDATING_POLICIES
from seamark.kinds.table import Kinds
from seamark.rules.objects.metadata import ObjectView, View
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "validatingadmissionpolicy-status-controller"
MANAGER = "validatingadmissionpolicy-status"


class PolicyStatus(View, frozen=True):
    observed_generation: int = 0


class ValidatingPolicy(ObjectView, frozen=True):
    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: PolicyStatus = PolicyStatus()


class PolicyTypesController(Controller):
    """Checks every generation of a policy once, by the kinds that are served at that time."""

    def __init__(self, manager: Manager, cluster: Cluster, kinds: Kinds) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._kinds = kinds
        self._patience = Patience()
        self._policies = self.watch(manager.informers.of(VALIDATING_POLICIES, as_=ValidatingPolicy), self._changed)

    def _changed(self, key: Key, old: ValidatingPolicy | None, new: ValidatingPolicy | None) -> None:
        if new is not None and new.metadata.generation > new.status.observed_generation:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        policy = self._policies.by_key(key)
        if policy is None or policy.metadata.generation <= policy.status.observed_generation:
            return
        from seamark.kinds.registration.type_checks import status

        said = status(policy.metadata.generation, await self._warnings(policy.spec))
        head = {"apiVersion": VALIDATING_POLICIES.api_version, "kind": VALIDATING_POLICIES.kind}
        try:
            await self._cluster.patch(
                VALIDATING_POLICIES,
                key,
                {**head, "metadata": {"name": key}, "status": said},
                subresource="status",
                type="apply",
                field_manager=MANAGER,
                force=True,
                as_=Receipt,
            )
        except errors.NotFound:
            return  # it went meanwhile

    async def _warnings(self, spec: Object) -> list[Object]:
        """The warnings about a policy's expressions; none if there are so many that it takes minutes to find them."""
        from seamark.kinds.registration.type_checks import warnings

        check = partial(warnings, spec, self._kinds)
        try:
            return at_once(check)
        except Costly:
            pass  # it is done in a thread instead
        try:
            return await self._patience.hear(at_length, check)
        except Costly:
            return []
