"""The simulated kubelets: they give Pods addresses, and write the status that :mod:`pods` decides.

All nodes share one queue.  From bound to ready a Pod costs one status write and no timer, unless an annotation asks
for a delay.
"""

from __future__ import annotations

from math import inf

from msgspec.structs import replace

from seamark.access.cluster import Cluster
from seamark.access.events import Reference
from seamark.access.informer import Index, Informer
from seamark.kinds.resource import PODS
from seamark.kinds.values import times
from seamark.nodes import pod_writes, resizing
from seamark.nodes.choosing import Choice
from seamark.nodes.good_news import GoodNews
from seamark.nodes.simulated.acceptance import Acceptance, rejected
from seamark.nodes.simulated.pods import containers, life, orders, steps
from seamark.nodes.simulated.pods.orders import Orders
from seamark.nodes.simulated.pods.steps import Moments, PodAddresses, Rules, Step
from seamark.nodes.simulated.roster import Member, Roster
from seamark.nodes.simulated.settings import NodeSettings
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key, Retry

RESIZE_SECONDS = 10.0  # after which a node looks again whether it has room for changed resources
# During an outage of the server the writes of all Pods fail at once; each key is retried separately.
RETRY = Retry(base=0.05, cap=30.0, rate=1000.0, burst=1000)


def node_of(pod: Pod) -> tuple[str, ...]:
    """The index function for Pods by node."""
    return (pod.spec.node_name,) if pod.spec.node_name else ()


class Kubelets(Controller):
    """All simulated kubelets of this process."""

    def __init__(
        self,
        manager: Manager,
        cluster: Cluster,
        *,
        pods: Informer[Pod],
        roster: Roster,
        settings: NodeSettings,
        acceptance: Acceptance,
        choice: Choice | None = None,
    ) -> None:
        super().__init__("kubelet", manager, workers=settings.workers, retry=RETRY)
        self._cluster = cluster
        self._pods = self.watch(pods, self._changed)
        self._on_node: Index[Pod] = pods.index("node", node_of)
        self._roster = roster
        self._acceptance = acceptance
        self._choice = choice  # given if some Pods run
        self._events = manager.recorder(cluster, "kubelet")
        self._news = GoodNews(manager.recorder(cluster, "kubelet"), rate=settings.events, clock=manager.clock)
        self._clock = manager.clock
        self._rules = Rules(
            settings.stop_after,
            settings.crash_backoff,
            settings.crash_backoff_cap,
            settings.complete_after if settings.complete_after >= 0 else inf,
            settings.failing_images,
            settings.missing_images,
        )
        self._moments: dict[str, Moments] = {}  # by uid
        self._orders: dict[str, tuple[dict[str, str], Orders]] = {}  # by uid, with the annotations they were read from
        self._settled: dict[str, tuple[str, float | None]] = {}  # by uid: a version that needs no write, and until when
        self._thirsty: dict[str, dict[Key, None]] = {}  # by node: the Pods that wait for an address

    def reset(self) -> None:
        """Keep the addresses of Pods that exist; release those of Pods that are gone."""
        alive = {pod.metadata.uid for pod in self._pods.objects() if not pod.finished}
        for member in self._roster.members():
            member.addresses.retain(alive)
        self._moments = {uid: moments for uid, moments in self._moments.items() if uid in alive}
        self._orders.clear()
        self._settled.clear()
        self._thirsty.clear()
        self._acceptance.clear()

    # --- following ---------------------------------------------------------------------------------

    def _changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if self._choice is not None and self._runs(self._choice, old, new):
            return
        if old is not None and (new is None or (new.finished and not old.finished)):
            self._let_go(old)
        if new is None:
            return
        member = self._roster.get(new.spec.node_name)
        if member is None:
            return
        if old is None:
            self._adopt(member, new)
        if not new.finished or new.terminating:
            self.queue.add(key)

    def _runs(self, choice: Choice, old: Pod | None, new: Pod | None) -> bool:
        """Whether it is a Pod that runs as processes."""
        pod = new or old
        member = self._roster.get(pod.spec.node_name) if pod is not None else None
        found = pod is not None and member is not None and choice.runs(pod, member)
        if new is None and pod is not None:
            choice.forget(pod.metadata.uid)
        return found

    def node_changed(self, member: Member, *, new: bool) -> None:
        """A simulated node was added, started or stopped."""
        pods = self._on_node.objects(member.name)
        if self._choice is not None:
            pods = [pod for pod in pods if not self._choice.runs(pod, member)]
        if new:
            for pod in pods:
                self._adopt(member, pod)
        if member.running:
            for pod in pods:
                self._settled.pop(pod.metadata.uid, None)
                self.queue.add(pod.metadata.key)

    def _adopt(self, member: Member, pod: Pod) -> None:
        """Record the addresses that a Pod has already, so that it keeps them."""
        if not pod.finished and not pod.spec.host_network and pod.status.pod_ips:
            member.addresses.adopt(pod.metadata.uid, [address.ip for address in pod.status.pod_ips])

    def _let_go(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        self._acceptance.forget(uid)
        self._moments.pop(uid, None)
        self._orders.pop(uid, None)
        self._settled.pop(uid, None)
        member = self._roster.get(node)
        if member is not None and member.addresses.release(uid):
            for key in self._thirsty.pop(node, ()):
                self.queue.add(key)

    # --- one Pod -----------------------------------------------------------------------------------

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        if pod is None or (pod.finished and not pod.terminating):
            return
        member = self._roster.get(pod.spec.node_name)
        if member is None or not member.running:
            return
        now, uid = self._clock.time(), pod.metadata.uid
        version, until = self._settled.get(uid, ("", None))
        if version == pod.metadata.resource_version and (until is None or now < until):
            # The informer shows our own last write, which is right until the Pod's next change is due.
            if until is not None:
                raise Again(until - now)
            return
        if (why := self._acceptance.refusal(pod, now)) is not None:
            await self._carry_out(pod, rejected(pod, why, now))
            return
        moments = self._moments.get(uid) or steps.recover(pod, now)
        obstacle = self._acceptance.obstacle(pod) if resizing.wanted(pod) else None
        step = life.next_status(
            pod if obstacle is None else resizing.as_given(pod, pod.status),
            now=now,
            ips=self._addresses_of(member, pod),
            moments=moments,
            orders=self._orders_of(pod),
            rules=self._rules,
        )
        if obstacle is not None or pod.condition(resizing.PENDING) is not None:
            step = replace(step, status=resizing.told(pod, step.status, obstacle, times.text(now)))
        if obstacle is not None:
            step = replace(step, again=min(step.again or inf, now + RESIZE_SECONDS))
        written = await self._carry_out(pod, step)
        if not written:
            return
        self._moments[uid] = step.moments
        if step.status.pod_ip:
            self._settled[uid] = (written, step.again)
        if step.again is not None:
            raise Again(step.again - self._clock.time())

    def _addresses_of(self, member: Member, pod: Pod) -> PodAddresses:
        if pod.spec.host_network:
            return PodAddresses(member.host_ips, member.host_ips)
        if pod.terminating:
            return PodAddresses(member.host_ips, member.addresses.of(pod.metadata.uid))
        given = member.addresses.take(pod.metadata.uid)
        if given is None:
            self._thirsty.setdefault(member.name, {})[pod.metadata.key] = None
        return PodAddresses(member.host_ips, given)

    def _orders_of(self, pod: Pod) -> Orders:
        annotations, uid = pod.metadata.annotations, pod.metadata.uid
        if not annotations:
            return orders.NO_ORDERS
        known = self._orders.get(uid)
        if known is not None and known[0] == annotations:
            return known[1]
        parsed, complaints = orders.parse(annotations)
        self._orders[uid] = (annotations, parsed)
        for complaint in complaints:
            self._tell(pod, "BadAnnotation", complaint)
        return parsed

    async def _carry_out(self, pod: Pod, step: Step) -> str:
        """Write the step and return the Pod's new version; "" if the Pod was deleted or changed meanwhile."""
        version = await pod_writes.write(self._cluster, pod, step.status, remove=step.remove)
        if version:
            for note in step.notes:
                self._tell(pod, note.reason, note.message)
            if step.status.phase != "Pending" and pod.status.phase == "Pending":
                self._news.started(pod, containers.started(step.status))
        return version

    def _tell(self, pod: Pod, reason: str, message: str) -> None:
        self._events.record(Reference.of(PODS, pod.metadata), "Warning", reason=reason, message=message)
