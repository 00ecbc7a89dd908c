"""What ``kubectl get pods`` says of a Pod."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import NOW

from seamark.errors import Object
from seamark.kinds.pod.pod import POD
from seamark.kinds.values.times import parse


def pod(*, inits: list[Object] | None = None, meta: Object | None = None, **status: Any) -> Object:
    return {
        "metadata": {"name": "p", "creationTimestamp": "2038-01-19T03:04:07Z", **(meta or {})},
        "spec": {"containers": [{"name": "c"}, {"name": "d"}], "initContainers": inits or []},
        "status": {"phase": "Running", **status},
    }


def container(name: str = "c", **more: Any) -> Object:
    return {"name": name, "ready": False, "restartCount": 0, **more}


def waiting(reason: str) -> Object:
    return {"state": {"waiting": {"reason": reason}}}


def ended(code: int, **more: Any) -> Object:
    return {"state": {"terminated": {"exitCode": code, **more}}}


def starting(*statuses: Object) -> Object:
    """A Pod that still runs its two init containers."""
    return pod(phase="Pending", inits=[{"name": "i"}, {"name": "j"}], initContainerStatuses=list(statuses))


RUNNING = {"state": {"running": {}}, "ready": True}
DONE = ended(0, reason="Completed")
SIDECAR = [{"name": "s", "restartPolicy": "Always"}]
BOTH_RUN = [container(**RUNNING), container("d", **RUNNING)]
ONE_DONE = [container(**DONE), container("d", **RUNNING)]
READY = [{"type": "Ready", "status": "True"}]
GATED = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]


def restarted(name: str, count: int, at: str) -> Object:
    return container(name, restartCount=count, lastState={"terminated": {"finishedAt": at}}, **RUNNING)


RESTARTED = [restarted("c", 2, "2038-01-19T03:09:07Z"), restarted("d", 1, "2038-01-19T03:00:00Z")]


@pytest.mark.parametrize(
    ("made", "cells"),
    [
        (pod(phase="Pending"), ["0/2", "Pending", "0"]),
        (pod(phase="Failed", reason="Evicted"), ["0/2", "Evicted", "0"]),
        (pod(containerStatuses=BOTH_RUN), ["2/2", "Running", "0"]),
        (
            pod(containerStatuses=[container(**RUNNING), container("d", **waiting("ImagePullBackOff"))]),
            ["1/2", "ImagePullBackOff", "0"],
        ),
        (pod(containerStatuses=[container(**ended(3))]), ["0/2", "ExitCode:3", "0"]),
        (pod(containerStatuses=[container(**ended(1, signal=9))]), ["0/2", "Signal:9", "0"]),
        (pod(phase="Succeeded", containerStatuses=[container(**DONE)]), ["0/2", "Completed", "0"]),
        (pod(containerStatuses=ONE_DONE), ["1/2", "NotReady", "0"]),
        (pod(containerStatuses=ONE_DONE, conditions=READY), ["1/2", "Running", "0"]),
        (starting(container("i", state={"running": {}})), ["0/2", "Init:0/2", "0"]),
        (starting(container("i", **DONE), container("j", **waiting("PodInitializing"))), ["0/2", "Init:1/2", "0"]),
        (
            starting(container("i", restartCount=2, **waiting("CrashLoopBackOff"))),
            ["0/2", "Init:CrashLoopBackOff", "2"],
        ),
        (starting(container("i", **ended(1))), ["0/2", "Init:ExitCode:1", "0"]),
        (
            pod(
                inits=SIDECAR,
                initContainerStatuses=[container("s", started=True, restartCount=1, **RUNNING)],
                containerStatuses=[container(**RUNNING), container("d", restartCount=3, **RUNNING)],
            ),
            ["3/3", "Running", "4"],
        ),
        (pod(phase="Pending", conditions=GATED), ["0/2", "SchedulingGated", "0"]),
        (pod(meta={"deletionTimestamp": NOW}), ["0/2", "Terminating", "0"]),
        (pod(meta={"deletionTimestamp": NOW}, reason="NodeLost"), ["0/2", "Unknown", "0"]),
        (pod(meta={"deletionTimestamp": NOW}, phase="Succeeded"), ["0/2", "Succeeded", "0"]),
        (pod(containerStatuses=RESTARTED), ["2/2", "Running", "3 (5m ago)"]),
    ],
)
def test_states(made: Object, cells: list[str]) -> None:
    assert list(POD.row(made, parse(NOW)))[1:4] == cells


def test_wide_cells() -> None:
    made = pod(
        podIPs=[{"ip": "10.0.0.1"}, {"ip": "fd00::1"}],
        nominatedNodeName="other",
        conditions=[{"type": "a", "status": "True"}, {"type": "b", "status": "False"}],
    )
    made["spec"] |= {"nodeName": "here", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]}
    row = list(POD.row(made, parse(NOW)))
    assert len(row) == len(POD.columns)
    assert row[4:] == ["10m", "10.0.0.1", "here", "other", "1/2"]
    assert list(POD.row(pod(), parse(NOW)))[5:] == ["<none>"] * 4


@pytest.mark.parametrize(("phase", "reasons"), [("Running", []), ("Succeeded", ["Succeeded"]), ("Failed", ["Failed"])])
def test_rows_of_pods_that_are_over_say_so(phase: str, reasons: list[str]) -> None:
    conditions = POD.row_conditions(pod(phase=phase))
    assert [(c["type"], c["reason"]) for c in conditions] == [("Completed", reason) for reason in reasons]
