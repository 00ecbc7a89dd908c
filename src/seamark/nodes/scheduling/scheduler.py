"""The scheduler: binds Pods to the nodes that :mod:`schedule` chooses.

Pods that fit on no node are parked (:mod:`parking`) and tried again in steps, so that one event never causes more than
``GROUPS_AT_ONCE`` attempts.

For a Pod that fits nowhere, less important Pods may have to go (:mod:`preemption`).  Until they are gone it is
nominated for their node: the space is kept for it from all that are not more important.

A Pod whose claims wait for their first Pod gets its node in two steps (:mod:`volumes`): its claims are told the node,
or a free volume is reserved for them, and once they have their volumes the Pod is bound.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import islice

import msgspec

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.access.events import Reference
from seamark.errors import Object
from seamark.kinds.resource import (
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    STORAGE_CLASSES,
)
from seamark.kinds.values import times
from seamark.nodes.good_news import GoodNews
from seamark.nodes.scheduling import schedule
from seamark.nodes.scheduling.occupancy import Occupancy, Occupant, occupant
from seamark.nodes.scheduling.parking import Parked
from seamark.nodes.scheduling.preemption import Preemption, preempt
from seamark.nodes.scheduling.schedule import Decision
from seamark.nodes.scheduling.volumes import PodVolumes, Waiting
from seamark.nodes.simulated.evictions import disrupt
from seamark.nodes.simulated.kubelet import RETRY
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.budget import Budget
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.storage import Claim, StorageClass, Volume
from seamark.rules.volumes import BOUND_BY_CONTROLLER, SELECTED_NODE, reference
from seamark.runtime.controller import Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

GROUPS_AT_ONCE = 100
STEP_SECONDS = 0.05
_NEXT_STEP: Key = ""  # in the queue: no Pod has this key


class Scheduler(Controller):
    """Binds Pods to nodes."""

    def __init__(self, manager: Manager, cluster: Cluster, settings: NodeSettings) -> None:
        super().__init__("scheduler", manager, workers=settings.workers, retry=RETRY)
        self._cluster = cluster
        of = manager.informers.of
        self.watch(of(NAMESPACES, as_=Namespace), self._namespace_changed)
        self.watch(of(NODES, as_=Node), self._node_changed)
        self._pods = self.watch(of(PODS, as_=Pod), self._pod_changed)
        self._budgets = self.watch(of(POD_DISRUPTION_BUDGETS, as_=Budget), lambda key, old, new: None)
        self._claims = self.watch(of(PERSISTENT_VOLUME_CLAIMS, as_=Claim), self._claim_changed)
        self._volumes = self.watch(of(PERSISTENT_VOLUMES, as_=Volume), self._volume_changed)
        self._classes = self.watch(of(STORAGE_CLASSES, as_=StorageClass), self._class_changed)
        self._waiting: dict[Key, set[Key]] = {}  # claim → the Pods that wait for its volume
        self._settling: set[Key] = set()  # Pods that have a node, and are bound once their claims have their volumes
        self._settings = settings
        self._events = manager.recorder(cluster, settings.scheduler)
        self._news = GoodNews(manager.recorder(cluster, settings.scheduler), rate=settings.events, clock=manager.clock)
        self._clock = manager.clock
        self.occupancy = Occupancy()
        self._parked = Parked()
        self._nominated: dict[Key, Occupant] = {}  # Pods for which others have to go, and where
        self._stepping = False

    def reset(self) -> None:
        """Keep the Pods that were bound to a node but are not shown there yet."""
        decided = [each for each in self.occupancy.occupants() if self._undisclosed(each)]
        self._settling.clear()
        self.occupancy = Occupancy()
        for each in decided:
            self.occupancy.put(each)
        self._parked.clear()
        self._nominated.clear()
        self._waiting.clear()

    def _undisclosed(self, decided: Occupant) -> bool:
        pod = self._pods.by_key(decided.key)
        known = pod is not None and pod.metadata.uid == decided.uid and not pod.spec.node_name
        return known and decided.key not in self._settling

    # --- following ---------------------------------------------------------------------------------

    def _namespace_changed(self, name: Key, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and old is not None and new.metadata.labels == old.metadata.labels:
            return
        if new is not None:
            self.occupancy.put_namespace(name, new.metadata.labels)
        else:
            self.occupancy.remove_namespace(name)

    def _node_changed(self, name: Key, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self.occupancy.put_node(new)
            self._retry(all_groups=True)
        else:
            self.occupancy.remove_node(name)
            for key in self._settling:
                self.queue.add(key)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None or new.finished or new.spec.node_name:
            self._nominated.pop(key, None)
            self._settling.discard(key)
        if new is None or new.finished:
            self._parked.remove(key)
            if self.occupancy.remove(key):
                self._retry()
        elif new.spec.node_name:
            if self.occupancy.knows(new):
                return
            self._parked.remove(key)
            self.occupancy.put(occupant(new, new.spec.node_name))
            if self._parked and (old is None or not old.spec.node_name):
                # Parked Pods may have affinity to this Pod.
                self._retry()
        elif old is None or not _same_question(old, new):
            self.queue.add(key)

    def _claim_changed(self, key: Key, old: Claim | None, new: Claim | None) -> None:
        if new is None or key not in self._waiting:
            return
        withdrawn = (
            old is not None and SELECTED_NODE in old.metadata.annotations.keys() - new.metadata.annotations.keys()
        )
        for name in self._waiting.pop(key):
            pod = self._pods.by_key(name)
            if withdrawn and not new.bound and pod is not None and name in self._settling:
                self._give_up(pod)  # no volume could be made there
            self.queue.add(name)

    def _volume_changed(self, name: Key, old: Volume | None, new: Volume | None) -> None:
        if new is not None and self._parked and not new.claim and new.status.phase == "Available":
            self._retry(all_groups=True)

    def _class_changed(self, name: Key, old: StorageClass | None, new: StorageClass | None) -> None:
        for claim in list(self._waiting):
            self._claim_changed(claim, None, self._claims.by_key(claim))
        if self._parked:
            self._retry(all_groups=True)

    def _retry(self, *, all_groups: bool = False) -> None:
        """Something happened that may help: try one Pod of each group, and after a success the next.

        ``all_groups`` means also those that no change of other Pods could help.
        """
        self._parked.note(all_groups=all_groups)
        if not self._stepping:
            self._step()

    def _step(self) -> None:
        """Try groups that were not tried since the last event."""
        tried = list(islice(self._parked.due(), GROUPS_AT_ONCE))
        for key in tried:
            if key is not None:
                self.queue.add(key)
        self._stepping = len(tried) == GROUPS_AT_ONCE
        if self._stepping:
            self.queue.add_after(_NEXT_STEP, STEP_SECONDS)

    # --- one Pod -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        if key == _NEXT_STEP:
            self._step()
            return
        pod = self._pods.by_key(key)
        if pod is None or not self._concerns(pod):
            return
        if (known := self.occupancy.get(key)) is not None and known.uid == pod.metadata.uid:
            if key in self._settling:
                await self._settle(pod, known.node)
            return  # already decided, and the write is under way
        if pod.spec.volumes and (problem := self._claim_problem(pod)):
            await self._explain(pod, Decision(message=problem))
            return
        decision, preemption = self._decide(pod)
        if decision.node:
            group = self._parked.remove(key)
            await self._place(pod, decision.node)
            if group is not None and (another := self._parked.first(group)) is not None:
                self.queue.add(another)
        else:
            self._parked.put(pod, hopes=decision.hopes_for_space)
            if preemption is not None:
                await self._preempt(pod, preemption)
            await self._explain(pod, decision)

    def _decide(self, pod: Pod) -> tuple[Decision, Preemption | None]:
        """Where a Pod goes; or why nowhere, and which others have to go so that it can."""
        key, priority = pod.metadata.key, pod.spec.priority
        ahead = [each for each in self._nominated.values() if each.key != key and each.priority >= priority]
        for each in ahead:
            self.occupancy.put(each)
        reach = self._volumes_of(pod).refuses if pod.spec.volumes and pod.claims else None
        try:
            decision = schedule.choose(pod, self.occupancy, reach, seed=self._settings.seed)
            if decision.node or not decision.hopes_for_space or self._waits_for_victims(pod):
                return decision, None
            return decision, preempt(pod, self.occupancy, self._budgets.objects(), reach)
        finally:
            for each in ahead:
                self.occupancy.remove(each.key)

    def _waits_for_victims(self, pod: Pod) -> bool:
        """Whether Pods are going for its sake already."""
        node = pod.status.nominated_node_name
        if (nominated := self._nominated.get(pod.metadata.key)) is not None:
            node = nominated.node
        going = (each for each in self.occupancy.on(node) if not each.living)
        return any(each.priority < pod.spec.priority for each in going)

    def _concerns(self, pod: Pod) -> bool:
        spec = pod.spec
        return (
            not spec.node_name
            and not spec.scheduling_gates
            and not pod.terminating
            and not pod.finished
            and spec.scheduler_name == self._settings.scheduler
        )

    def _claim_problem(self, pod: Pod) -> str:
        """Why the Pod has to wait for one of its claims; it is looked at again when that claim changes."""
        for key in pod.claims:
            claim = self._claims.by_key(key)
            if claim is not None and (claim.bound or self._delayed(claim) is not None):
                continue
            self._waiting.setdefault(key, set()).add(pod.metadata.key)
            wrong = "pod has unbound immediate PersistentVolumeClaims"
            if claim is None:
                wrong = f'persistentvolumeclaim "{key.partition("/")[2]}" not found'
            none = f"0/{len(self.occupancy.rooms)} nodes are available"
            helpless = f"{len(self.occupancy.rooms)} Preemption is not helpful for scheduling."
            return f"{none}: {wrong}. preemption: {none}: {helpless}"
        return ""

    def _delayed(self, claim: Claim) -> Waiting | None:
        """The claim, if it gets its volume only when its first Pod has a node."""
        found = (
            self._classes.by_key(claim.storage_class) if claim.storage_class and not claim.spec.volume_name else None
        )
        return Waiting(claim, found) if found is not None and found.waits else None

    def _volumes_of(self, pod: Pod) -> PodVolumes:
        claims = [claim for key in pod.claims if (claim := self._claims.by_key(key)) is not None]
        bound = [volume for claim in claims if (volume := self._volumes.by_key(claim.spec.volume_name)) is not None]
        waiting = [delayed for claim in claims if (delayed := self._delayed(claim)) is not None]
        return PodVolumes(bound, waiting, list(self._volumes.objects()) if waiting else ())

    async def _place(self, pod: Pod, node: str) -> None:
        """Give the Pod its node, after its claims have got their volumes."""
        meta, room = pod.metadata, self.occupancy.rooms[node].node
        self._nominated.pop(meta.key, None)
        plan = self._volumes_of(pod).plan(room) if pod.spec.volumes and pod.claims else ()
        self.occupancy.put(occupant(pod, node, room))
        if not plan:
            await self._bind(pod, node)
            return
        self._settling.add(meta.key)
        for claim, _ in plan:
            self._waiting.setdefault(claim.metadata.key, set()).add(meta.key)
        try:
            for claim, volume in plan:
                await self._reserve(claim, volume, node)
        except (errors.NotFound, errors.Conflict):
            self._give_up(pod)  # the claim or volume changed meanwhile: decide again
        except BaseException:
            self._give_up(pod)
            raise

    async def _reserve(self, claim: Claim, volume: Volume | None, node: str) -> None:
        """Let a claim have this volume, or one that is made for Pods on this node."""
        if volume is not None and volume.claim:
            return  # it was reserved before
        resource, meta = PERSISTENT_VOLUME_CLAIMS, claim.metadata
        told, patch = {SELECTED_NODE: node}, Object()
        if volume is not None:
            resource, meta = PERSISTENT_VOLUMES, volume.metadata
            told, patch = {BOUND_BY_CONTROLLER: "yes"}, {"spec": {"claimRef": reference(claim)}}
        patch["metadata"] = {"annotations": told, "uid": meta.uid, "resourceVersion": meta.resource_version}
        await self._cluster.patch(
            resource, meta.name, patch, namespace=meta.namespace, field_manager="kube-scheduler", as_=Receipt
        )

    async def _settle(self, pod: Pod, node: str) -> None:
        """Bind the Pod if its claims have their volumes; decide again if one of them cannot get its volume there."""
        claims = {key: self._claims.by_key(key) for key in pod.claims}
        unbound = [key for key, claim in claims.items() if claim is None or not claim.bound]
        if node not in self.occupancy.rooms or None in claims.values():
            self._give_up(pod)
        elif unbound:
            for key in unbound:
                self._waiting.setdefault(key, set()).add(pod.metadata.key)
        else:
            self._settling.discard(pod.metadata.key)
            await self._bind(pod, node)

    def _give_up(self, pod: Pod) -> None:
        self._settling.discard(pod.metadata.key)
        self._take_back(pod)
        self.queue.add(pod.metadata.key)

    async def _bind(self, pod: Pod, node: str) -> None:
        meta = pod.metadata
        binding = {
            "metadata": {"name": meta.name, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._cluster.create(PODS, binding, namespace=meta.namespace, name=meta.name, subresource="binding")
            self._news.scheduled(pod, node)
        except (errors.NotFound, errors.Conflict):
            # Deleted, terminating, or bound by another scheduler: the informer will show which.
            self._take_back(pod)
        except BaseException:
            self._take_back(pod)
            raise

    async def _preempt(self, pod: Pod, preemption: Preemption) -> None:
        """Nominate the Pod for the node, and remove those that are in its way."""
        node, meta, now = preemption.node, pod.metadata, self._clock.time()
        for key in [k for k, n in self._nominated.items() if n.node == node and n.priority < pod.spec.priority]:
            del self._nominated[key]  # those are less important: they have to find another place
        self._nominated[meta.key] = occupant(pod, node, self.occupancy.rooms[node].node)
        for each in preemption.victims:
            victim = self._pods.by_key(each.key)
            if victim is None or victim.metadata.uid != each.uid or victim.terminating:
                continue
            why = (
                "PreemptionByScheduler",
                f"{self._settings.scheduler}: preempting to accommodate a higher priority pod",
            )
            await disrupt(self._cluster, victim, why, manager="kube-scheduler", now=now)
            with suppress(errors.NotFound, errors.Conflict):
                gone = victim.metadata
                await self._cluster.delete(PODS, gone.name, namespace=gone.namespace, uid=gone.uid)
            self._events.record(
                Reference.of(PODS, victim.metadata),
                "Normal",
                reason="Preempted",
                message=f"Preempted by pod {meta.uid} on node {node}",
            )

    def _take_back(self, pod: Pod) -> None:
        """Undo a decision that could not be written, unless the informer shows that it was."""
        current = self._pods.by_key(pod.metadata.key)
        if current is None or not current.spec.node_name:
            self.occupancy.remove(pod.metadata.key)

    async def _explain(self, pod: Pod, decision: Decision) -> None:
        """Write in the Pod's status why it has no node, once for each new reason."""
        was = pod.condition("PodScheduled")
        now = times.text(self._clock.time())
        since = was.last_transition_time if was is not None and was.status == "False" else now
        generation = pod.metadata.generation
        condition = Condition("PodScheduled", "False", since, "Unschedulable", decision.message, generation)
        meta = pod.metadata
        nominated = self._nominated.get(meta.key)
        node = "" if nominated is None else nominated.node
        if was == condition and pod.status.nominated_node_name == node:
            return
        # A strategic patch changes only our condition and leaves the others alone.
        status: Object = {"conditions": [msgspec.to_builtins(condition)]}
        if node or pod.status.nominated_node_name:
            status["nominatedNodeName"] = node or None
        patch = {"metadata": {"uid": meta.uid}, "status": status}
        try:
            await self._cluster.patch(
                PODS,
                meta.name,
                patch,
                namespace=meta.namespace,
                type="strategic",
                subresource="status",
                field_manager="kube-scheduler",
            )
        except (errors.NotFound, errors.Conflict):
            return  # deleted or replaced: nothing to explain
        self._events.record(
            Reference.of(PODS, pod.metadata), "Warning", reason="FailedScheduling", message=decision.message
        )


def _same_question(old: Pod, new: Pod) -> bool:
    """Whether a change of a Pod does not affect where it may go."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.uid == new.metadata.uid
        and old.terminating == new.terminating
    )
