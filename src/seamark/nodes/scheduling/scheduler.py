"""The scheduler at work: Pods without a node get one, by what :mod:`schedule` decides.

Pods for which there is no node are parked with all that ask for exactly the same, and one of each kind is tried again
when something happens that could help: a Node changes, or a Pod goes.  Nothing is tried again for no reason.
"""

from __future__ import annotations

import msgspec

from seamark import errors
from seamark.access.clock import Clock
from seamark.access.cluster import Cluster
from seamark.access.events import EventRecorder, Reference
from seamark.access.informer import Informer
from seamark.kinds.resource import PODS
from seamark.kinds.values import times
from seamark.nodes.scheduling import schedule
from seamark.nodes.scheduling.occupancy import Occupancy, occupant
from seamark.nodes.scheduling.schedule import Decision
from seamark.nodes.simulated.settings import NodeSettings
from seamark.nodes.work import Key, Work
from seamark.rules.objects.conditions import Condition
from seamark.rules.objects.namespace import Namespace
from seamark.rules.objects.node import Node
from seamark.rules.objects.pod import Pod

Kind = bytes  # what Pods that ask for the same have in common


class Scheduler:
    """Gives Pods nodes."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        namespaces: Informer[Namespace],
        settings: NodeSettings,
        events: EventRecorder,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._pods = pods
        self._settings = settings
        self._events = events
        self._clock = clock
        self.occupancy = Occupancy()
        self._parked: dict[Kind, dict[Key, bool]] = {}  # whether each hopes for space
        self._kinds: dict[Key, Kind] = {}
        self.work = Work("scheduler", self._handle, clock=clock, workers=settings.workers)
        namespaces.on_change(self._namespace_changed)
        nodes.on_change(self._node_changed)
        pods.on_change(self._pod_changed)

    # --- what happens ------------------------------------------------------------------------------

    def _namespace_changed(self, old: Namespace | None, new: Namespace | None) -> None:
        if new is not None and old is not None and new.metadata.labels == old.metadata.labels:
            return
        if new is not None:
            self.occupancy.put_namespace(new.metadata.name, new.metadata.labels)
        elif old is not None:
            self.occupancy.remove_namespace(old.metadata.name)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None:
            self.occupancy.put_node(new)
            self._retry(only_hoping=False)
        elif old is not None:
            self.occupancy.remove_node(old.name)

    def _pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        if new is None or new.finished:
            known = new or old
            assert known is not None
            self._unpark(known.metadata.key)
            if self.occupancy.remove(known.metadata.key):
                self._retry(only_hoping=True)
        elif new.spec.node_name:
            if self.occupancy.knows(new):
                return
            self._unpark(new.metadata.key)
            self.occupancy.put(occupant(new, new.spec.node_name))
            if self._parked and (old is None or not old.spec.node_name):
                # Others may have waited for just this company.
                self._retry(only_hoping=True)
        elif old is None or not _same_question(old, new):
            self.work.add(new.metadata.key)

    def _retry(self, *, only_hoping: bool) -> None:
        """Something happened that may help: try one of each kind, and if it succeeds the next."""
        for parked in self._parked.values():
            key, hopes = next(iter(parked.items()))
            if hopes or not only_hoping:
                self.work.add(key)

    def _park(self, pod: Pod, decision: Decision) -> None:
        key, kind = pod.metadata.key, _kind(pod)
        if self._kinds.get(key, kind) != kind:
            self._unpark(key)
        self._kinds[key] = kind
        self._parked.setdefault(kind, {})[key] = decision.hopes_for_space

    def _unpark(self, key: Key) -> Kind | None:
        kind = self._kinds.pop(key, None)
        if kind is not None:
            parked = self._parked[kind]
            del parked[key]
            if not parked:
                del self._parked[kind]
        return kind

    # --- one Pod -----------------------------------------------------------------------------------

    async def _handle(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or not self._concerns(pod):
            return
        if (known := self.occupancy.get(key)) is not None and known.uid == pod.metadata.uid:
            return  # decided already, and on its way
        decision = schedule.choose(pod, self.occupancy, seed=self._settings.seed)
        if decision.node:
            kind = self._unpark(key)
            await self._bind(pod, decision.node)
            if kind is not None and (rest := self._parked.get(kind)):
                self.work.add(next(iter(rest)))
        else:
            self._park(pod, decision)
            await self._explain(pod, decision)

    def _concerns(self, pod: Pod) -> bool:
        spec = pod.spec
        return (
            not spec.node_name
            and not spec.scheduling_gates
            and not pod.terminating
            and not pod.finished
            and spec.scheduler_name == self._settings.scheduler
        )

    async def _bind(self, pod: Pod, node: str) -> None:
        meta = pod.metadata
        self.occupancy.put(occupant(pod, node, self.occupancy.rooms[node].node))
        binding = {
            "metadata": {"name": meta.name, "uid": meta.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        try:
            await self._cluster.create(PODS, binding, namespace=meta.namespace, name=meta.name, subresource="binding")
        except (errors.NotFound, errors.Conflict):
            # Gone, going, or put somewhere by somebody else: what we hear of it next says which.
            self._take_back(pod)
        except BaseException:
            self._take_back(pod)
            raise

    def _take_back(self, pod: Pod) -> None:
        """The decision came to nothing, unless we have heard meanwhile that it did."""
        current = self._pods.by_key(pod.metadata.key)
        if current is None or not current.spec.node_name:
            self.occupancy.remove(pod.metadata.key)

    async def _explain(self, pod: Pod, decision: Decision) -> None:
        """Say on the Pod why it has no node, once for every different reason."""
        was = pod.condition("PodScheduled")
        now = times.text(self._clock.now())
        since = was.last_transition_time if was is not None and was.status == "False" else now
        generation = pod.metadata.generation
        condition = Condition("PodScheduled", "False", since, "Unschedulable", decision.message, generation)
        if was == condition:
            return
        meta = pod.metadata
        # Only this condition is ours: a strategic patch leaves the others as they are by then.
        patch = {"metadata": {"uid": meta.uid}, "status": {"conditions": [msgspec.to_builtins(condition)]}}
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
            return  # gone, and perhaps another one of its name there: no need to explain anything
        self._events.record(
            Reference.of(PODS, pod.metadata), "Warning", reason="FailedScheduling", message=decision.message
        )


def _same_question(old: Pod, new: Pod) -> bool:
    """Whether a change makes no difference to where a Pod may go."""
    return (
        old.spec == new.spec
        and old.metadata.labels == new.metadata.labels
        and old.metadata.uid == new.metadata.uid
        and old.terminating == new.terminating
    )


def _kind(pod: Pod) -> Kind:
    spec, meta = pod.spec, pod.metadata
    return msgspec.json.encode(
        (
            meta.namespace,
            sorted(meta.labels.items()),
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            [(c.resources, c.ports, c.restart_policy) for c in (*spec.containers, *spec.init_containers)],
            spec.resources,
            spec.overhead,
        )
    )
