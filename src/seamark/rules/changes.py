"""What a plan asks for: objects to write, Events to record, and the time of the change behind them.

Kubernetes notes that time in an annotation of Endpoints and EndpointSlices; scalability tests measure by it how long
the network takes to follow.  It is the creation of the Service for the first write, and later the earliest change of a
Pod's readiness since the last write.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

import msgspec

from seamark.kinds.wellknown import TRIGGER_TIME_ANNOTATION
from seamark.rules.objects.pod import Pod
from seamark.rules.objects.service import Service

T = TypeVar("T")


class Changes(msgspec.Struct, Generic[T], frozen=True):
    """Objects to create, update and delete.  ``delete`` holds the objects as last seen."""

    create: tuple[T, ...] = ()
    update: tuple[T, ...] = ()
    delete: tuple[T, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.update or self.delete)


class Notice(msgspec.Struct, frozen=True):
    """An Event to record about the object that the plan is for."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


# --- trigger times ---------------------------------------------------------------------------------


class TriggerTimes:
    """The times of one Service's changes.  They are RFC 3339 in whole seconds and UTC, so they sort as text."""

    __slots__ = ("_changed", "_pods", "_service")

    def __init__(self) -> None:
        self._service: str | None = None
        self._pods: dict[str, str] = {}
        self._changed: dict[str, str] = {}

    def put(self, name: str, pod: Pod | None) -> None:
        """Note the Pod of that name as it is now; None if the Service no longer selects one."""
        condition = pod.condition("Ready") if pod is not None else None
        self._changed[name] = (condition.last_transition_time or "") if condition is not None else ""

    def earliest(self, service: Service) -> str:
        """The time to note in the next write; "" if nothing that has a time has changed."""
        created = service.metadata.creation_timestamp or ""
        if self._service is None:
            return created
        times = [time for name, time in self._changed.items() if time > self._pods.get(name, "")]
        if created > self._service:
            times.append(created)
        return min(times, default="")

    def written(self, service: Service) -> None:
        """Everything put so far has been written."""
        self._service = service.metadata.creation_timestamp or ""
        for name, time in self._changed.items():
            if time:
                self._pods[name] = time
            else:
                self._pods.pop(name, None)
        self._changed.clear()


def with_trigger_time(annotations: dict[str, str], trigger_time: str) -> dict[str, str]:
    """The annotations of an object that is about to be written for a change at that time ("": unknown)."""
    if trigger_time:
        return {**annotations, TRIGGER_TIME_ANNOTATION: trigger_time}
    if TRIGGER_TIME_ANNOTATION in annotations:
        return {k: v for k, v in annotations.items() if k != TRIGGER_TIME_ANNOTATION}
    return annotations
