"""The row of ``kubectl get pods``: readiness, state in one word, restarts."""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.kind import Column
from seamark.kinds.values.conditions import condition_true
from seamark.kinds.values.times import age, duration, parse

COLUMNS = (
    Column("Name", format="name"),
    Column("Ready"),
    Column("Status"),
    Column("Restarts"),
    Column("Age"),
    Column("IP", priority=1),
    Column("Node", priority=1),
    Column("Nominated Node", priority=1),
    Column("Readiness Gates", priority=1),
)
_COMPLETED = "The pod has completed successfully."
_FAILED = "The pod failed."
_UNREACHABLE = "NodeLost"


def row(pod: Object, now: float) -> list[Any]:
    meta, spec, status = pod["metadata"], pod["spec"], pod["status"]
    seen = _look(pod)
    addresses = status.get("podIPs")
    restarts = str(seen.restarts)
    if seen.restarts and seen.last_restart:
        restarts = f"{restarts} ({duration(now - parse(seen.last_restart))} ago)"
    return [
        meta.get("name", ""),
        f"{seen.ready}/{seen.total}",
        seen.state,
        restarts,
        age(now, meta.get("creationTimestamp")),
        (addresses[0].get("ip") if addresses else "") or "<none>",
        spec.get("nodeName") or "<none>",
        status.get("nominatedNodeName") or "<none>",
        _gates(spec, status),
    ]


def conditions(pod: Object) -> list[Object]:
    """The row's conditions: a finished Pod has one, so that clients can hide its row."""
    phase = pod["status"].get("phase")
    message = {"Succeeded": _COMPLETED, "Failed": _FAILED}.get(phase or "")
    if message is None:
        return []
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


class _Sight(msgspec.Struct):
    """What the row shows of the containers."""

    state: str
    total: int
    ready: int = 0
    restarts: int = 0
    last_restart: str = ""

    def count(self, status: Object) -> None:
        self.restarts += status.get("restartCount", 0)
        ended = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        # Timestamps of one format compare as text.
        self.last_restart = max(self.last_restart, ended)


def _look(pod: Object) -> _Sight:
    spec, status = pod["spec"], pod["status"]
    sidecars = {c.get("name") for c in spec.get("initContainers") or () if c.get("restartPolicy") == "Always"}
    state = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            state = "SchedulingGated"
    seen = _Sight(state, len(spec.get("containers") or ()) + len(sidecars))
    initializing = _look_at_init_containers(seen, pod, sidecars)
    if not initializing or condition_true(status, "Initialized"):
        _look_at_containers(seen, status, sidecars)
    if "deletionTimestamp" in pod["metadata"]:
        if status.get("reason") == _UNREACHABLE:
            seen.state = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            seen.state = "Terminating"
    return seen


def _look_at_init_containers(seen: _Sight, pod: Object, sidecars: set[str]) -> bool:
    """Whether the Pod is still initializing; if so, sets the state to its progress."""
    total = len(pod["spec"].get("initContainers") or ())
    for i, container in enumerate(pod["status"].get("initContainerStatuses") or ()):
        seen.count(container)
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if container.get("name") in sidecars and container.get("started"):
            seen.ready += bool(container.get("ready"))
            continue
        if ended is not None:
            seen.state = f"Init:{_ending(ended)}"
        elif waiting.get("reason") and waiting["reason"] != "PodInitializing":
            seen.state = f"Init:{waiting['reason']}"
        else:
            seen.state = f"Init:{i}/{total}"
        return True
    return False


def _look_at_containers(seen: _Sight, status: Object, sidecars: set[str]) -> None:
    # Once initialized, restarts of init containers no longer count, except those of sidecars.
    seen.restarts, seen.last_restart = 0, ""
    for container in status.get("initContainerStatuses") or ():
        if container.get("name") in sidecars:
            seen.count(container)
    running = False
    for container in reversed(status.get("containerStatuses") or []):
        seen.count(container)
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            seen.state = waiting["reason"]
        elif ended is not None:
            seen.state = _ending(ended)
        elif container.get("ready") and state.get("running") is not None:
            running = True
            seen.ready += 1
    if seen.state == "Completed" and running:
        seen.state = "Running" if condition_true(status, "Ready") else "NotReady"


def _ending(ended: Object) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _gates(spec: Object, status: Object) -> str:
    gates = spec.get("readinessGates")
    if not gates:
        return "<none>"
    return f"{sum(condition_true(status, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"
