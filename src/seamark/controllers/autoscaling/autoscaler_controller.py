"""Looks at every HorizontalPodAutoscaler each 15 seconds, scales its workload, and writes its status."""

from __future__ import annotations

from typing import Literal

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.correlation import Reference
from seamark.controllers.autoscaling.autoscaler import Autoscaler, Direction
from seamark.controllers.autoscaling.limits import Memory, Reason, limit
from seamark.controllers.autoscaling.measuring import propose, tolerance_of
from seamark.controllers.autoscaling.proposals import MetricError, Proposal, Workload
from seamark.errors import Object
from seamark.kinds.resource import AUTOSCALERS, PODS, Resource
from seamark.kinds.table import Kinds
from seamark.kinds.values import times
from seamark.kinds.values.selectors import LabelSelector, parse_labels
from seamark.rules.objects.metadata import namespace_of
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

NAME = "horizontal-pod-autoscaler"
SYNC_SECONDS = 15.0
_NO_BEHAVIOUR = Direction()


class Outcome:
    """The status of an autoscaler as it comes about in one look."""

    def __init__(self, autoscaler: Autoscaler, now: float) -> None:
        self.now = now
        before = autoscaler.status
        self.status: Object = {**before, "conditions": [dict(c) for c in before.get("conditions") or ()]}

    def condition(self, type: str, status: bool, why: Reason) -> None:
        reason, message = why
        said = {"status": str(status), "reason": reason, "message": message}
        for known in self.status["conditions"]:
            if known["type"] == type:
                if known["status"] != said["status"]:
                    known["lastTransitionTime"] = times.text(self.now)
                known.update(said)
                return
        self.status["conditions"].append({"type": type, "lastTransitionTime": times.text(self.now), **said})


class AutoscalerController(Controller):
    """One key is one autoscaler."""

    def __init__(self, manager: Manager, cluster: Cluster, kinds: Kinds) -> None:
        super().__init__(NAME, manager)
        self._cluster = cluster
        self._kinds = kinds
        self._clock = manager.clock
        self._recorder = manager.recorder(cluster, NAME)
        self._memories: dict[str, Memory] = {}  # by uid
        self._selectors: dict[Key, LabelSelector] = {}  # of the Pods that each autoscaler was last seen to scale
        informers = manager.informers
        self._autoscalers = self.watch(informers.of(AUTOSCALERS, as_=Autoscaler), self._changed)
        self._neighbours = self._autoscalers.index("namespace", namespace_of)
        self._pods = self.watch(informers.of(PODS, as_=Pod), lambda key, old, new: None)
        self._by_namespace = self._pods.index("namespace", namespace_of)

    def _changed(self, key: Key, old: Autoscaler | None, new: Autoscaler | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._memories.pop(old.metadata.uid, None)
        if new is None:
            self._selectors.pop(key, None)
        elif old is None or new.spec != old.spec:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        autoscaler = self._autoscalers.by_key(key)
        if autoscaler is None:
            return
        outcome = Outcome(autoscaler, self._clock.time())
        await self._look(autoscaler, outcome)
        await self._write(autoscaler, outcome.status)
        raise Again(SYNC_SECONDS, "metrics change all the time")

    async def _look(self, autoscaler: Autoscaler, outcome: Outcome) -> None:
        """Scale the workload if that is needed, and fill in the outcome."""
        try:
            resource, scale = await self._scale(autoscaler)
        except (LookupError, errors.ApiError) as error:
            self._tell(autoscaler, "Warning", "FailedGetScale", str(error))
            sentence = f"the HPA controller was unable to get the target's current scale: {error}"
            outcome.condition("AbleToScale", False, ("FailedGetScale", sentence))
            return
        got = "the HPA controller was able to get the target's current scale"
        outcome.condition("AbleToScale", True, ("SucceededGetScale", got))
        current = int((scale.get("spec") or {}).get("replicas", 0))
        memory = self._memories.get(autoscaler.metadata.uid)
        if memory is None:
            memory = self._memories[autoscaler.metadata.uid] = Memory()
            memory.recommend(current, outcome.now)
        outcome.status["currentReplicas"] = current
        spec = autoscaler.spec
        wanted, why = current, ""
        if current == 0 and spec.min_replicas != 0:
            stopped = "scaling is disabled since the replica count of the target is zero"
            outcome.condition("ScalingActive", False, ("ScalingDisabled", stopped))
            wanted = 0
        elif current > spec.max_replicas:
            wanted, why = spec.max_replicas, "Current number of replicas above Spec.MaxReplicas"
        elif current < spec.min_replicas:
            wanted, why = spec.min_replicas, "Current number of replicas below Spec.MinReplicas"
        else:
            proposal = await self._measure(autoscaler, scale, current, outcome)
            if proposal is None:
                return
            why = f"{proposal.name} above target" if proposal.replicas > current else "All metrics below target"
            allowed = limit(spec, memory, current, proposal.replicas, outcome.now)
            outcome.condition("AbleToScale", True, allowed.held)
            outcome.condition("ScalingLimited", allowed.limited, allowed.limit)
            wanted = allowed.replicas
        outcome.status["desiredReplicas"] = wanted
        if wanted != current:
            await self._rescale(autoscaler, resource, scale, wanted, why, outcome)
            memory.changed(wanted - current, outcome.now)

    # --- measuring ---------------------------------------------------------------------------------

    async def _measure(self, autoscaler: Autoscaler, scale: Object, current: int, outcome: Outcome) -> Proposal | None:
        """The highest number that a metric asks for; None if too little can be measured, which the outcome tells."""
        namespace, spec = autoscaler.metadata.namespace, autoscaler.spec
        selector = (scale.get("status") or {}).get("selector", "")
        pods = self._select(autoscaler, selector, outcome)
        if pods is None:
            outcome.status["currentMetrics"] = None
            return None
        rules = spec.behavior
        tolerance = tolerance_of(
            rules.scale_down if rules else _NO_BEHAVIOUR, rules.scale_up if rules else _NO_BEHAVIOUR
        )
        counted = int((scale.get("status") or {}).get("replicas", 0))
        workload = Workload(namespace, selector, current, counted, pods, tolerance)
        statuses: list[Object] = []
        best: Proposal | None = None
        failures: list[MetricError] = []
        for metric in spec.metrics:
            try:
                found = await propose(self._cluster, self._kinds, metric, workload, outcome.now)
            except MetricError as error:
                self._tell(autoscaler, "Warning", error.reason, str(error))
                failures.append(error)
                statuses.append({"type": ""})
                continue
            statuses.append(found.status)
            if best is None or found.replicas > best.replicas:
                best = found
        outcome.status["currentMetrics"] = statuses
        if best is None or (failures and best.replicas < current):
            first, count = failures[0], f"{len(failures)} invalid out of {len(spec.metrics)}"
            sentence = f"the HPA was unable to compute the replica count: {first}"
            outcome.condition("ScalingActive", False, (first.reason, sentence))
            invalid = f"invalid metrics ({count}), first error is: {first.outer}"
            self._tell(autoscaler, "Warning", "FailedComputeMetricsReplicas", invalid)
            return None
        sentence = f"the HPA was able to successfully calculate a replica count from {best.name}"
        outcome.condition("ScalingActive", True, ("ValidMetricFound", sentence))
        return best

    def _select(self, autoscaler: Autoscaler, selector: str, outcome: Outcome) -> list[Pod] | None:
        """The Pods of the workload; None if they cannot be told, or if another autoscaler scales them as well."""
        if not selector:
            without = "the HPA target's scale is missing a selector"
            self._refuse(autoscaler, "SelectorRequired", "selector is required")
            outcome.condition("ScalingActive", False, ("InvalidSelector", without))
            return None
        meta, matching = autoscaler.metadata, parse_labels(selector)
        self._selectors[meta.key] = matching
        pods = [pod for pod in self._by_namespace.objects(meta.namespace) if matching.matches(pod.metadata.labels)]
        # Most Pods of a workload have the same labels, so there are few to ask every other autoscaler about.
        labels = {frozenset(pod.metadata.labels.items()): pod.metadata.labels for pod in pods}.values()
        concerned = sorted(
            f"{{{each.metadata.name} {meta.namespace}}}"
            for each in self._neighbours.objects(meta.namespace)
            if (other := self._selectors.get(each.metadata.key)) is not None and any(map(other.matches, labels))
        )
        if len(concerned) > 1:
            sentence = f"pods by selector {selector} are controlled by multiple HPAs: [{' '.join(concerned)}]"
            self._refuse(autoscaler, "AmbiguousSelector", sentence)
            outcome.condition("ScalingActive", False, ("AmbiguousSelector", sentence))
            return None
        return pods

    def _refuse(self, autoscaler: Autoscaler, reason: str, sentence: str) -> None:
        for said in (reason, "FailedComputeMetricsReplicas"):
            self._tell(autoscaler, "Warning", said, sentence)

    # --- reading and writing -----------------------------------------------------------------------

    async def _scale(self, autoscaler: Autoscaler) -> tuple[Resource, Object]:
        target = autoscaler.spec.scale_target_ref
        kind = self._kinds.by_kind(target.api_version, target.kind)
        if kind is None:
            sentence = f'no matches for kind "{target.kind}" in version "{target.api_version}"'
            raise LookupError(f"unable to determine resource for scale target reference: {sentence}")
        namespace = autoscaler.metadata.namespace
        found = await self._cluster.get(kind.resource, target.name, namespace=namespace, subresource="scale")
        return kind.resource, found

    async def _rescale(
        self, autoscaler: Autoscaler, resource: Resource, scale: Object, wanted: int, why: str, outcome: Outcome
    ) -> None:
        changed = {**scale, "spec": {"replicas": wanted}}
        try:
            await self._cluster.update(resource, changed, namespace=autoscaler.metadata.namespace, subresource="scale")
        except errors.ApiError as error:
            self._tell(autoscaler, "Warning", "FailedRescale", f"New size: {wanted}; reason: {why}; error: {error}")
            sentence = f"the HPA controller was unable to update the target scale: {error}"
            outcome.condition("AbleToScale", False, ("FailedUpdateScale", sentence))
            await self._write(autoscaler, outcome.status)
            raise
        done = f"the HPA controller was able to update the target scale to {wanted}"
        outcome.condition("AbleToScale", True, ("SucceededRescale", done))
        outcome.status["lastScaleTime"] = times.text(outcome.now)
        self._tell(autoscaler, "Normal", "SuccessfulRescale", f"New size: {wanted}; reason: {why}")

    async def _write(self, autoscaler: Autoscaler, status: Object) -> None:
        if status == autoscaler.status:
            return
        meta = autoscaler.metadata
        # Written is the object as a whole, so that its labels and annotations stay.
        found = await self._cluster.get(AUTOSCALERS, meta.name, namespace=meta.namespace)
        known = {**found["metadata"], "resourceVersion": meta.resource_version}
        changed = {**found, "metadata": known, "status": status}
        await self._cluster.update(AUTOSCALERS, changed, namespace=meta.namespace, subresource="status", as_=Receipt)

    def _tell(self, autoscaler: Autoscaler, type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        about = Reference.of(AUTOSCALERS, autoscaler.metadata)
        self._recorder.record(about, type, reason=reason, message=message)
