"""When did that happen which an Endpoints or EndpointSlice is now written for?

Kubernetes notes it in an annotation, and scalability tests measure the programming latency of the network by it: the
creation of the Service for the first write, later the earliest of the changes of readiness since the last one.
"""

from __future__ import annotations

from seamark.rules.membership import Pod, Service


class TriggerTimes:
    """One Service's times.  They are RFC 3339 in whole seconds and UTC, so their text sorts as they do."""

    __slots__ = ("_changed", "_pods", "_service")

    def __init__(self) -> None:
        self._service: str | None = None
        self._pods: dict[str, str] = {}
        self._changed: dict[str, str] = {}

    def put(self, name: str, pod: Pod | None) -> None:
        """This is the Pod of that name now; None if the Service has none such any more."""
        condition = pod.ready_condition if pod is not None else None
        self._changed[name] = (condition.last_transition_time or "") if condition is not None else ""

    def earliest(self, service: Service) -> str:
        """The time to note in what is written now; "" if nothing that has a time has changed."""
        created = service.metadata.creation_timestamp or ""
        if self._service is None:
            return created
        times = [time for name, time in self._changed.items() if time > self._pods.get(name, "")]
        if created > self._service:
            times.append(created)
        return min(times, default="")

    def written(self, service: Service) -> None:
        """All that has happened so far is taken care of."""
        self._service = service.metadata.creation_timestamp or ""
        for name, time in self._changed.items():
            if time:
                self._pods[name] = time
            else:
                self._pods.pop(name, None)
        self._changed.clear()
