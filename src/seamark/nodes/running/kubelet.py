"""The kubelets of nodes whose Pods run: they begin and end the lives of Pods, and write their status."""

from __future__ import annotations

import asyncio
from functools import partial
from math import inf

from msgspec.structs import replace

from seamark import errors
from seamark.access.cluster import Cluster
from seamark.access.informer import Index, Informer
from seamark.kinds.resource import CONFIGMAPS, PERSISTENT_VOLUME_CLAIMS, PODS, SECRETS
from seamark.kinds.values import times
from seamark.nodes import pod_writes, resizing
from seamark.nodes.choosing import Choice
from seamark.nodes.pod_conditions import Finding
from seamark.nodes.running import decisions
from seamark.nodes.running.decisions import Ended, Record
from seamark.nodes.running.hosting import Hosting
from seamark.nodes.running.life import PodLife
from seamark.nodes.running.network import NodeNetwork
from seamark.nodes.running.pod_status import Sandbox, status_of
from seamark.nodes.running.preparing import security, volumes
from seamark.nodes.running.spec import PodToRun
from seamark.nodes.simulated.acceptance import Acceptance, rejected
from seamark.nodes.simulated.kubelet import RESIZE_SECONDS, RETRY, node_of
from seamark.nodes.simulated.pods.steps import Note
from seamark.nodes.simulated.roster import Member, Roster
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.metadata import Metadata, ObjectView
from seamark.rules.objects.pod import ContainerStatus, Pod
from seamark.rules.objects.storage import Claim
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

LOST = 137


class Named(ObjectView, frozen=True):
    """A ConfigMap or Secret, of which only its name and that it changed matters here."""


class RunningKubelets(Controller):
    """All kubelets of this process whose Pods run."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        roster: Roster,
        hosting: Hosting,
        acceptance: Acceptance,
        choice: Choice,
        settings: NodeSettings,
    ) -> None:
        super().__init__("kubelet", manager, workers=settings.workers, retry=RETRY)
        self._cluster = cluster
        self._pods = self.watch(pods, self._changed)
        for kind, resource in (("configMap", CONFIGMAPS), ("secret", SECRETS)):
            self.watch(manager.informers.of(resource, as_=Named), partial(self._content_changed, kind))
        self.watch(manager.informers.of(PERSISTENT_VOLUME_CLAIMS, as_=Claim), self._claim_changed)
        self._dropping: set[asyncio.Task[None]] = set()
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._roster = roster
        self._hosting = hosting
        self._acceptance = acceptance
        self._choice = choice
        self._clock = manager.clock
        self._back_off = settings.crash_backoff
        self._lives = hosting.lives
        self._uids: dict[Key, str] = {}  # of the Pods that have lives
        self._nodes: dict[str, asyncio.Task[None]] = {}  # those that have a network, or are about to

    def reset(self) -> None:
        """Lives go on: they are found again by the uids of their Pods."""

    # --- following ---------------------------------------------------------------------------------

    def _changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        pod = new or old
        member = self._roster.get(pod.spec.node_name) if pod is not None else None
        if key in self._uids or (new is not None and member is not None and self._choice.runs(new, member)):
            self.queue.add(key)

    def node_changed(self, member: Member, *, new: bool) -> None:
        """A node was added, switched on or off, or was heard of again."""
        if self._choice.joins(member):
            self._joined(member)
        if not new:
            self._hosting.network.switch(member.name, on=member.switched_on)
        for pod in self._on_node.objects(member.name):
            if self._choice.runs(pod, member):
                self.queue.add(pod.metadata.key)

    def _content_changed(self, kind: str, key: Key, old: ObjectView | None, new: ObjectView | None) -> None:
        """Volumes that are made of a ConfigMap or Secret follow it."""
        obj = new or old
        if obj is None or not self._lives:
            return
        namespace, name = obj.metadata.namespace, obj.metadata.name
        for life in self._lives.values():
            if life.pod.metadata.namespace == namespace and (kind, name) in volumes.references(life.pod):
                life.refresh()

    def _claim_changed(self, key: Key, old: Claim | None, new: Claim | None) -> None:
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            meta = old.metadata
            dropping = asyncio.create_task(self._hosting.drop_claim(meta.namespace, meta.name, meta.uid))
            self._dropping.add(dropping)
            dropping.add_done_callback(self._dropping.discard)

    # --- one Pod -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        await self._bury(key, pod)
        if pod is None:
            return
        member = self._roster.get(pod.spec.node_name)
        uid = pod.metadata.uid
        if member is not None and not self._choice.runs(pod, member):
            return  # another Pod of the same name
        if member is not None and not member.switched_on and uid in self._lives:
            await self._lives[uid].lose_power()
        if member is None or not member.running:
            return
        if pod.finished:
            if (ended := self._lives.get(uid)) is not None:
                await ended.end()
            member.addresses.release(uid)
            if pod.terminating and pod.metadata.deletion_grace_period_seconds != 0:
                await pod_writes.write(self._cluster, pod, pod.status, remove=True)
            return
        life = self._lives.get(uid) or await self._begin(pod, member)
        if life is None:
            return
        obstacle = self._acceptance.obstacle(pod) if resizing.wanted(pod) else None
        if _seen(pod.metadata) != _seen(life.pod.metadata) or pod.condition(resizing.PENDING) is not None:
            whole = await self._read(pod)
            if whole is None:
                return
            life.follow(whole if obstacle is None else resizing.as_given(whole, pod.status))
        await self._step(pod, life, obstacle)

    async def _step(self, pod: Pod, life: PodLife, obstacle: Finding | None) -> None:
        if len(pod.spec.ephemeral_containers) != len(life.pod.spec.ephemeral_containers):
            meta = pod.metadata
            whole = await self._cluster.get(PODS, meta.name, namespace=meta.namespace, as_=PodToRun)
            added = replace(life.pod.spec, ephemeral_containers=whole.spec.ephemeral_containers)
            life.pod = replace(life.pod, spec=added)
        now = self._clock.time()
        decision = decisions.decide(
            life.pod.spec,
            life.records,
            now=now,
            accepted=life.sandbox.accepted,
            terminating=pod.terminating,
            doomed=life.doomed,
            back_off=self._back_off,
        )
        deadline = life.doomed.deadline if life.doomed is not None and not pod.terminating else _deadline(pod)
        again = life.carry_out(decision, deadline=deadline)
        status = status_of(pod, life.pod.spec, life.records, life.sandbox, decision, now=now)
        if obstacle is not None or pod.condition(resizing.PENDING) is not None:
            status = resizing.told(pod, status, obstacle, times.text(now))
        if obstacle is not None:
            again = min(again or inf, now + RESIZE_SECONDS)
        remove = bool(decision.over) and pod.terminating and pod.metadata.deletion_grace_period_seconds != 0
        if decision.over:
            await life.end()
        await pod_writes.write(self._cluster, pod, status, remove=remove)
        if again is not None:
            raise Again(again - self._clock.time())

    async def _begin(self, pod: Pod, member: Member) -> PodLife | None:
        """Take on a Pod: read all of it, give it addresses, and remember what its status says of earlier runs."""
        await asyncio.shield(self._joined(member))
        meta = pod.metadata
        whole = await self._read(pod)
        if whole is None or await self._refused(pod, whole):
            return None
        if pod.spec.host_network:
            addresses: tuple[str, ...] | None = member.host_ips
        else:
            if pod.status.pod_ips:
                member.addresses.adopt(meta.uid, [each.ip for each in pod.status.pod_ips])
            addresses = member.addresses.take(meta.uid)
        if name := security.forbidden_setting(whole.spec.security_context):
            why = Note("SysctlForbidden", f'forbidden sysctl: "{name}" not allowlisted')
            self._hosting.tell(whole, "Warning", why.reason, why.message)
            await pod_writes.write(self._cluster, pod, rejected(pod, why, self._clock.time()).status)
            return None
        if addresses is None:
            self._hosting.tell(whole, "Warning", "FailedCreatePodSandBox", "no address is free in the node's Pod range")
            raise Again(10.0)
        now = self._clock.time()
        accepted = times.parse(pod.status.start_time) if pod.status.start_time else now
        sandbox = Sandbox(accepted, member.host_ips, addresses)
        folder = self._hosting.folder / "pods" / meta.uid
        life = PodLife(whole, sandbox, self._hosting, folder, lambda: self.queue.add(meta.key))
        known = pod.status
        statuses = (*known.init_container_statuses, *known.container_statuses, *known.ephemeral_container_statuses)
        life.records = {each.name: _recovered(each, now) for each in statuses}
        self._lives[meta.uid] = life
        self._uids[meta.key] = meta.uid
        return life

    async def _refused(self, pod: Pod, whole: PodToRun) -> bool:
        """Whether its node does not take the Pod, which then has failed."""
        now = self._clock.time()
        why = self._acceptance.refusal(pod, now)
        if why is None:
            return False
        await pod_writes.write(self._cluster, pod, rejected(pod, why, now).status)
        self._hosting.tell(whole, "Warning", why.reason, why.message)
        return True

    async def _read(self, pod: Pod) -> PodToRun | None:
        """All of a Pod, unless it is gone."""
        meta = pod.metadata
        try:
            whole = await self._cluster.get(PODS, meta.name, namespace=meta.namespace, as_=PodToRun)
        except errors.NotFound:
            return None
        return whole if whole.metadata.uid == meta.uid else None

    def _joined(self, member: Member) -> asyncio.Task[None]:
        """Done when the node has its network; one that failed is tried again."""
        name, known = member.name, self._nodes.get(member.name)
        if known is None or (known.done() and (known.cancelled() or known.exception() is not None)):
            network = NodeNetwork(name, member.host_ips, tuple(member.pod_cidrs))
            known = self._nodes[name] = asyncio.create_task(self._hosting.add_node(network), name=f"network of {name}")
        return known

    # --- the end -----------------------------------------------------------------------------------

    async def _bury(self, key: Key, pod: Pod | None) -> None:
        """End the lives of Pods of this name that are gone."""
        uid = self._uids.get(key)
        if uid is not None and (pod is None or pod.metadata.uid != uid):
            del self._uids[key]
            self._acceptance.forget(uid)
            if (life := self._lives.pop(uid, None)) is not None:
                member = self._roster.get(life.pod.spec.node_name)
                if member is not None:
                    member.addresses.release(uid)
                await life.remove()


def _seen(meta: Metadata) -> tuple[int, dict[str, str], dict[str, str]]:
    """What changes when the spec or the labels and annotations of a Pod do."""
    return meta.generation, meta.labels, meta.annotations


def _deadline(pod: Pod) -> float | None:
    """When the containers of a deleted Pod must have ended."""
    return times.parse(pod.metadata.deletion_timestamp) if pod.metadata.deletion_timestamp else None


def _recovered(status: ContainerStatus, now: float) -> Record:
    """What an earlier process wrote about a container.  If it ran, it ended with that process."""
    how = status.state.terminated or status.last_state.terminated
    ended = None
    if how is not None:
        finished = times.parse(how.finished_at) if how.finished_at else now
        started = times.parse(how.started_at) if how.started_at else finished
        ended = Ended(how.exit_code, started, finished, how.reason, how.message, how.signal, how.container_id)
    record = Record(
        "ended" if status.state.terminated is not None else "waiting",
        ended=ended,
        identity=status.container_id,
        restarts=status.restart_count,
        crashes=status.restart_count,
    )
    if status.state.running is not None:
        started = times.parse(status.state.running.started_at) if status.state.running.started_at else now
        words = "The container could not be located when the pod was started again"
        lost = Ended(LOST, started, now, "ContainerStatusUnknown", words, identity=status.container_id)
        record = replace(record, state="ended", ended=lost, before=ended)
    return record
