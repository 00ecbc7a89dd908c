"""Keeps the status of PodDisruptionBudgets.

:mod:`seamark.controllers.policy.disruption` decides what it should be; this module follows budgets and Pods, and asks
the owners of the Pods how many there should be.
"""

from __future__ import annotations

from collections.abc import Sequence

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.controllers.policy.disruption import failed, recheck_after, status
from seamark.errors import Object
from seamark.kinds.resource import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS
from seamark.kinds.table import Kinds
from seamark.rules.objects.budget import Budget
from seamark.rules.objects.metadata import ObjectView, OwnerReference, View, namespace_of
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller, Expected
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "disruption-controller"


class ReplicasWanted(View, frozen=True):
    replicas: int = 0


class Scaled(ObjectView, frozen=True):
    """How many Pods there should be: the Scale of a workload, or a ReplicaSet itself."""

    spec: ReplicasWanted = ReplicasWanted()


class NoScale(Expected):
    """It cannot be found out how many Pods there should be."""


class DisruptionController(Controller):
    """One key is one budget.  ``kinds`` has all that may own Pods; those with a Scale are counted."""

    def __init__(self, manager: Manager, cluster: Cluster, kinds: Kinds) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._kinds = kinds
        self._clock = manager.clock
        self._recorder = manager.recorder(cluster, "controllermanager")
        informers = manager.informers
        self._budgets = self.watch(informers.of(POD_DISRUPTION_BUDGETS, as_=Budget), self._budget_changed)
        self._by_namespace = self._budgets.index("namespace", namespace_of)
        self._pods = self.watch(informers.of(PODS, as_=Pod), self._pod_changed)
        self._pods_by_namespace = self._pods.index("namespace", namespace_of)

    def _budget_changed(self, key: Key, old: Budget | None, new: Budget | None) -> None:
        if new is not None:
            self.queue.add(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is not None and new is not None and old.same_replica(new):
            return
        found = [pod for pod in (old, new) if pod is not None]
        for budget in self._by_namespace.objects(found[0].metadata.namespace):
            selector = budget.selector
            if selector is not None and any(selector.matches(pod.metadata.labels) for pod in found):
                self.queue.add(budget.metadata.key)

    async def reconcile(self, key: Key) -> None:
        budget = self._budgets.by_key(key)
        if budget is None:
            return
        namespace, selector = budget.metadata.namespace, budget.selector
        pods = [
            pod
            for pod in self._pods_by_namespace.objects(namespace)
            if selector is not None and selector.matches(pod.metadata.labels)
        ]
        if not pods:
            self._tell(budget, "Normal", "NoPods", "No matching pods found")
        now = self._clock.time()
        try:
            scale = await self._scale(budget, pods) if budget.needs_scale else 0
        except NoScale as error:
            sentence = f"Failed to calculate the number of expected pods: {error}"
            self._tell(budget, "Warning", "CalculateExpectedPodCountFailed", sentence)
            await self._write(budget, failed(budget, str(error), now))
            raise
        wanted = status(budget, pods, scale, now)
        await self._write(budget, wanted)
        after = recheck_after(wanted, now)
        if after is not None:
            raise Again(after, "an evicted Pod should be gone by then")

    async def _write(self, budget: Budget, wanted: Object) -> None:
        if wanted == budget.status:
            return
        namespace = budget.metadata.namespace
        # Written is the object as a whole, so that its labels and annotations stay.
        found = await self._cluster.get(POD_DISRUPTION_BUDGETS, budget.metadata.name, namespace=namespace)
        # The version is that of what was counted: an eviction that came meanwhile would be forgotten otherwise.
        meta = {**found["metadata"], "resourceVersion": budget.metadata.resource_version}
        changed = {**found, "metadata": meta, "status": wanted}
        await self._cluster.update(
            POD_DISRUPTION_BUDGETS, changed, namespace=namespace, subresource="status", as_=Receipt
        )

    def _tell(self, budget: Budget, type: str, reason: str, message: str) -> None:
        about = Reference.of(POD_DISRUPTION_BUDGETS, budget.metadata)
        self._recorder.record(about, "Normal" if type == "Normal" else "Warning", reason=reason, message=message)

    # --- scale ---------------------------------------------------------------------------------------

    async def _scale(self, budget: Budget, pods: Sequence[Pod]) -> int:
        """How many Pods there should be, by the owners of those that are there."""
        replicas: dict[str, int] = {}
        seen: set[str] = set()
        bare = False
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None:
                bare = True
            elif owner.uid not in seen:
                seen.add(owner.uid)
                found = await self._scaled(owner, budget.metadata.namespace, pod.metadata.name)
                replicas[found.metadata.uid] = found.spec.replicas
        if bare:
            self._tell(budget, "Warning", "UnmanagedPods", _unmanaged(budget.spec.selector or {}))
        return sum(replicas.values())

    async def _scaled(self, owner: OwnerReference, namespace: str, pod: str) -> Scaled:
        """The workload at the top: the Deployment of a ReplicaSet that has one."""
        kind = self._kinds.by_kind(owner.api_version, owner.kind)
        if kind is None or kind.subresource("scale") is None:
            group = owner.api_version.rpartition("/")[0]
            name = f"{owner.kind.lower()}s.{group}" if kind is None else kind.resource.qualified
            raise NoScale(f"{name} does not implement the scale subresource")
        # A Scale does not say who owns its workload, so a ReplicaSet is read itself.
        bare = kind.resource == REPLICA_SETS
        part = "" if bare else "scale"
        try:
            found = await self._cluster.get(
                kind.resource, owner.name, namespace=namespace, subresource=part, as_=Scaled
            )
        except errors.NotFound:
            raise NoScale(f'found no controllers for pod "{pod}"') from None
        if found.metadata.uid != owner.uid:
            raise NoScale(f'found no controllers for pod "{pod}"')
        above = found.metadata.controller if bare else None
        if above is not None and (above.api_version, above.kind) == (DEPLOYMENTS.api_version, DEPLOYMENTS.kind):
            return await self._scaled(above, namespace, pod)
        return found


def _unmanaged(selector: Object) -> str:
    """The selector is printed as Go prints it."""
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{e.get('key', '')},Operator:{e.get('operator', '')},"
        f"Values:[{' '.join(e.get('values') or ())}],}},"
        for e in selector.get("matchExpressions") or ()
    )
    shown = (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
    return (
        f"Pods selected by this PodDisruptionBudget (selector: {shown}) were found to be unmanaged. As a result, the "
        "status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
        'these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
    )
