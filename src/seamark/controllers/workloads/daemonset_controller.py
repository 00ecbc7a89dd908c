"""Keeps a Pod of each DaemonSet on every node that should have one.

:mod:`seamark.controllers.workloads.daemonset` decides what to do; this module follows the cluster and does it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.access.correlation import Reference
from seamark.access.informer import Informer
from seamark.controllers.workloads.daemonset import (
    DaemonChanges,
    DaemonSet,
    by_node,
    count,
    new_pod,
    plan,
    with_tolerations,
)
from seamark.controllers.workloads.history import Collision, History, Revision
from seamark.controllers.workloads.owners import Claims, Dependants, claim
from seamark.controllers.workloads.pods import PodKeeper
from seamark.controllers.workloads.replicas import next_available
from seamark.controllers.workloads.workload import WorkloadController, Workplace
from seamark.errors import ApiError
from seamark.kinds.resource import DAEMON_SETS, PODS
from seamark.kinds.wellknown import REVISION_HASH_LABEL
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod, PodSpec
from seamark.rules.objects.workloads import Template
from seamark.rules.placement import Eligibility, eligibility, same_for_pods
from seamark.runtime.controller import Again
from seamark.runtime.queue import Key

_ALWAYS = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")

# A Pod that ends repeatedly is replaced after one second, then two … at most a quarter of an hour.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 1.0, 900.0


class _Pause(msgspec.Struct):
    until: float
    length: float


class _Known(msgspec.Struct):
    """The cached decisions about a DaemonSet's template, by node."""

    given: Template
    template: Template
    spec: PodSpec
    verdicts: dict[str, tuple[Node, Eligibility]] = msgspec.field(default_factory=dict)


class DaemonSetController(WorkloadController[DaemonSet]):
    """Follows DaemonSets, their Pods, and Nodes."""

    def __init__(
        self,
        daemon_sets: Informer[DaemonSet],
        pods: Dependants[Pod],
        revisions: Dependants[Revision],
        nodes: Informer[Node],
        place: Workplace,
    ) -> None:
        super().__init__("daemonset-controller", DAEMON_SETS, daemon_sets, place)
        self._pods = pods
        self._nodes = self.watch(nodes, self._node_changed)
        self._claims: Claims[Pod] = Claims(self._cluster, DAEMON_SETS, PODS)
        self._keeper = PodKeeper(self._cluster, pods.informer, self._recorder)
        self._history: History[DaemonSet] = History(
            self._cluster, DAEMON_SETS, revisions, hash_label=REVISION_HASH_LABEL
        )
        self._known: dict[Key, _Known] = {}
        self._pauses: dict[Key, dict[str, _Pause]] = {}  # by node
        pods.follow(self.owners, self._pod_changed)
        self._history.follow(self.owners, self.queue.add)

    def reset(self) -> None:
        self._known.clear()

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        self.queue.add_batched(key)

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        if old is not None and new is not None and same_for_pods(old, new):
            return
        for key, known in self._known.items():
            before = known.verdicts.get(name)
            after = eligibility(known.spec, new) if new is not None else None
            if (before[1] if before is not None else None) != after:
                self.queue.add_batched(key)

    # --- one DaemonSet -----------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        daemon_set = self._workloads.by_key(key)
        if daemon_set is None:
            self._forget(key)
            return
        if daemon_set.metadata.deletion_timestamp is not None:
            return
        if not (self._written.caught_up(key) and self._history.caught_up(key)):
            return
        meta = daemon_set.metadata
        orphans = self._pods.orphans(meta.namespace, daemon_set.selector)
        mine = await self._claims.make(daemon_set, claim(daemon_set, self._pods.of(meta.uid), orphans))
        pods = by_node(mine)
        history = await self._history.of(daemon_set)
        revision = await self._revision(key, daemon_set, history)
        if revision is None:
            return
        hash = revision.metadata.labels.get(REVISION_HASH_LABEL, "")
        verdicts = self._verdicts(key, daemon_set)
        settled, failure, now = await self._keeper.settled(key), None, self._clock.time()
        spared, wait = self._spared(key, mine, now)
        if settled:
            change = plan(daemon_set, pods, verdicts, hash, spared=spared, now=now)
            failure = await self._apply(key, daemon_set, change, hash, now)
        status = count(daemon_set, pods, verdicts, hash, settled=settled, now=now)
        await self._report(key, daemon_set, daemon_set.status, status, always=_ALWAYS)
        if failure is not None:
            raise failure
        await self._truncate(daemon_set, history, revision, mine)
        after = [s for s in (wait, next_available(mine, daemon_set.spec.min_ready_seconds, now)) if s is not None]
        if after:
            raise Again(min(after), "a Pod will have been ready, or left alone, for long enough")

    def _forget(self, key: Key) -> None:
        self._written.forget(key)
        self._keeper.forget(key)
        self._history.forget(key)
        self._known.pop(key, None)
        self._pauses.pop(key, None)

    def _verdicts(self, key: Key, daemon_set: DaemonSet) -> dict[str, Eligibility]:
        """What to do on each node; decided again only if the template or the node has changed."""
        known = self._known.get(key)
        if known is None or known.given != daemon_set.spec.template:
            template = with_tolerations(daemon_set.spec.template)
            spec = msgspec.convert(template["spec"], PodSpec)
            known = self._known[key] = _Known(daemon_set.spec.template, template, spec)
        before, known.verdicts = known.verdicts, {}
        for node in self._nodes.objects():
            name = node.metadata.name
            kept = before.get(name)
            if kept is None or not same_for_pods(kept[0], node):
                kept = (node, eligibility(known.spec, node))
            known.verdicts[name] = kept
        return {name: verdict for name, (_, verdict) in known.verdicts.items()}

    async def _revision(self, key: Key, daemon_set: DaemonSet, history: Sequence[Revision]) -> Revision | None:
        collisions = daemon_set.status.collision_count
        template = daemon_set.spec.template
        try:
            return await self._history.current(key, daemon_set, template, history, collisions=collisions)
        except Collision:
            await self._patch_status(key, daemon_set, {"collisionCount": (collisions or 0) + 1})
            raise

    def _spared(self, key: Key, pods: Sequence[Pod], now: float) -> tuple[set[str], float | None]:
        """The Pods that ended too soon after their predecessors, and in how many seconds the first may be replaced."""
        pauses = self._pauses.get(key, {})
        waiting = {
            pod.metadata.uid: pauses[pod.target_node].until - now
            for pod in pods
            if pod.finished and pod.target_node in pauses and pauses[pod.target_node].until > now
        }
        return set(waiting), min(waiting.values(), default=None)

    # --- writing -----------------------------------------------------------------------------------

    async def _apply(
        self, key: Key, daemon_set: DaemonSet, change: DaemonChanges, hash: str, now: float
    ) -> ApiError | None:
        about = Reference.of(DAEMON_SETS, daemon_set.metadata)
        for pod in change.finished:
            self._pause(key, pod.target_node, now)
            failed = pod.status.phase == "Failed"
            ended, doing = ("failed", "kill") if failed else ("succeeded", "delete")
            where = f"{pod.metadata.namespace}/{pod.metadata.name} on node {pod.target_node}"
            self._recorder.record(
                about,
                "Warning" if failed else "Normal",
                reason="FailedDaemonPod" if failed else "SucceededDaemonPod",
                message=f"Found {ended} daemon pod {where}, will try to {doing} it",
            )
        template = self._known[key].template
        made = [new_pod(daemon_set, template, node, hash) for node in change.create]
        failure = await self._keeper.create(key, about, made)
        return await self._keeper.delete(key, about, [*change.finished, *change.delete]) or failure

    def _pause(self, key: Key, node: str, now: float) -> None:
        pauses = self._pauses.setdefault(key, {})
        before = pauses.get(node)
        # After no failure for as long as the longest pause, a node starts with the shortest pause again.
        recent = before is not None and now < before.until + _LONGEST_PAUSE
        length = min(before.length * 2, _LONGEST_PAUSE) if before is not None and recent else _SHORTEST_PAUSE
        pauses[node] = _Pause(now + length, length)

    async def _truncate(
        self, daemon_set: DaemonSet, history: Sequence[Revision], current: Revision, pods: Sequence[Pod]
    ) -> None:
        limit = daemon_set.spec.revision_history_limit
        past = [revision for revision in history if revision.metadata.name != current.metadata.name]
        if limit is None or len(past) <= limit:
            return
        live = {pod.metadata.labels.get(REVISION_HASH_LABEL) for pod in pods}
        unused = [revision for revision in past if revision.metadata.labels.get(REVISION_HASH_LABEL) not in live]
        await self._history.delete(unused[: len(past) - limit])
