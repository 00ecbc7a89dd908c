"""Takes back what a Pod's status says about its end, if the end does not come.

Evictions and preemption mark a Pod with the condition DisruptionTarget before they delete it.  If the deletion fails,
the mark would stay, and a later failure of the Pod would not be counted as its own.
"""

from __future__ import annotations

from contextlib import suppress

from seamark import errors
from seamark.access.cluster import Cluster, Receipt
from seamark.kinds.resource import PODS
from seamark.kinds.values import times
from seamark.rules.objects.pod import Pod
from seamark.runtime.controller import Again, Controller
from seamark.runtime.manager import Manager
from seamark.runtime.queue import Key

STALE_SECONDS = 120.0
CONDITION = "DisruptionTarget"
_LASTING = "TerminationByKubelet"  # a reason after which the Pod does end


class StaleTargets(Controller):
    """One key is one Pod."""

    def __init__(self, manager: Manager, cluster: Cluster) -> None:
        super().__init__("stale-disruption-targets", manager, workers=1)
        self._cluster = cluster
        self._clock = manager.clock
        self._pods = self.watch(manager.informers.of(PODS, as_=Pod), self._pod_changed)

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is not None and marked_since(new) is not None:
            self.queue.add(key)

    async def reconcile(self, key: Key) -> None:
        pod = self._pods.by_key(key)
        since = None if pod is None else marked_since(pod)
        if pod is None or since is None:
            return
        now, meta = self._clock.time(), pod.metadata
        if since + STALE_SECONDS > now:
            raise Again(since + STALE_SECONDS - now, "its end may still come")
        condition = {
            "type": CONDITION,
            "status": "False",
            "lastTransitionTime": times.text(now),
            "reason": None,
            "message": None,
        }
        patch = {"metadata": {"uid": meta.uid}, "status": {"conditions": [condition]}}
        with suppress(errors.NotFound, errors.Conflict):  # gone, or another of this name
            await self._cluster.patch(
                PODS, meta.name, patch, namespace=meta.namespace, type="strategic", subresource="status", as_=Receipt
            )


def marked_since(pod: Pod) -> float | None:
    """Since when a Pod that has not ended is said to end; None if nothing says so."""
    condition = pod.condition(CONDITION)
    if pod.terminating or pod.finished or condition is None or condition.status != "True":
        return None
    if condition.reason == _LASTING or not condition.last_transition_time:
        return None
    return times.parse(condition.last_transition_time)
