"""Events about Pods that do well, which a real cluster writes several of for each Pod.

They would cost more than a simulated Pod itself.  So only so many are written per second, after a burst, as a kubelet
limits its own; of a Pod either all are written or none, and problems are never left out.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from seamark.access.events import EventRecorder, Reference
from seamark.access.ratelimit import TokenBucket
from seamark.clock import Clock
from seamark.kinds.resource import PODS
from seamark.rules.objects.pod import ContainerStatus, Pod

BURST = 200  # fifty Pods of one container; an Event costs about as much as a Pod, and stays for an hour


class GoodNews:
    def __init__(self, events: EventRecorder, *, rate: float, clock: Clock) -> None:
        self._events = events
        self._bucket = TokenBucket(rate=rate, burst=BURST if rate else 0, clock=clock)

    def scheduled(self, pod: Pod, node: str) -> None:
        meta = pod.metadata
        if self._bucket.take():
            words = f"Successfully assigned {meta.namespace}/{meta.name} to {node}"
            self._events.record(Reference.of(PODS, meta), "Normal", reason="Scheduled", message=words)

    def started(self, pod: Pod, statuses: Iterable[tuple[str, ContainerStatus]]) -> None:
        """These containers were started, each named with the field of the spec that it is in."""
        listed = list(statuses)
        if not listed or not self._bucket.take(3 * len(listed)):
            return
        about = Reference.of(PODS, pod.metadata)
        for field, status in listed:
            own = msgspec.structs.replace(about, field_path=f"spec.{field}{{{status.name}}}")
            for reason, words in (
                (
                    "Pulled",
                    f'Container image "{status.image}" already present on machine and can be accessed by the pod',
                ),
                ("Created", "Container created"),
                ("Started", "Container started"),
            ):
                self._events.record(own, "Normal", reason=reason, message=words)
