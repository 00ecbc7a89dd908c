"""What happens next to the containers of a Pod: a table of moments, and laws that hold for any history."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seamark.nodes.running import decisions
from seamark.nodes.running.decisions import NEVER, Decision, Doom, Ended, Record, decide
from seamark.nodes.running.spec import Spec

NOW = 1000.0


def spec(*containers, init=(), **more):
    return msgspec.convert(
        {"containers": [{"name": name} for name in containers], "initContainers": list(init), **more}, Spec
    )


def end(code=0, *, crashes=0, ago=1.0):
    return Record("ended", ended=Ended(code, NOW - 50, NOW - ago), crashes=crashes)


RUNS = Record("running", booted=True)
STARTING = Record("running", booted=False)
INIT = ({"name": "i1"}, {"name": "i2"})
SIDECAR = ({"name": "s", "restartPolicy": "Always"}, {"name": "i"})


@pytest.mark.parametrize(
    ("pod", "records", "expected"),
    [
        # Containers proper start together, and again as the policy says.
        (spec("a", "b"), {}, Decision(start=("a", "b"))),
        (spec("a", "b"), {"a": RUNS, "b": RUNS}, Decision()),
        (spec("a", "b"), {"a": RUNS, "b": end(1)}, Decision(start=("b",))),
        (spec("a"), {"a": end(1, crashes=1)}, Decision(back_off=(("a", 10.0),), again=NOW + 9)),
        (spec("a"), {"a": end(1, crashes=3)}, Decision(back_off=(("a", 40.0),), again=NOW + 39)),
        (spec("a"), {"a": end(1, crashes=1, ago=10.0)}, Decision(start=("a",))),
        (spec("a"), {"a": end(0)}, Decision(start=("a",))),
        (spec("a", restartPolicy="OnFailure"), {"a": end(1)}, Decision(start=("a",))),
        (spec("a", restartPolicy="OnFailure"), {"a": end(0)}, Decision(over="Succeeded")),
        (spec("a", restartPolicy="Never"), {"a": end(1)}, Decision(over="Failed")),
        (spec("a", "b", restartPolicy="Never"), {"a": end(0), "b": RUNS}, Decision()),
        (spec("a", "b", restartPolicy="Never"), {"a": end(0), "b": end(3)}, Decision(over="Failed")),
        # Init containers one after the other.
        (spec("a", init=INIT), {}, Decision(start=("i1",))),
        (spec("a", init=INIT), {"i1": RUNS}, Decision()),
        (spec("a", init=INIT), {"i1": end(0)}, Decision(start=("i2",))),
        (spec("a", init=INIT), {"i1": end(0), "i2": end(0)}, Decision(start=("a",))),
        (spec("a", init=INIT), {"i1": end(1)}, Decision(start=("i1",))),
        (spec("a", init=INIT, restartPolicy="Never"), {"i1": end(1)}, Decision(over="Failed")),
        (spec("a", init=INIT), {"a": RUNS}, Decision()),  # their records are gone after a restart of the kubelet
        # Sidecars stay; the next one starts when they have booted.
        (spec("a", init=SIDECAR), {}, Decision(start=("s",))),
        (spec("a", init=SIDECAR), {"s": STARTING}, Decision()),
        (spec("a", init=SIDECAR), {"s": RUNS}, Decision(start=("i",))),
        (spec("a", init=SIDECAR), {"s": RUNS, "i": end(0)}, Decision(start=("a",))),
        (spec("a", init=SIDECAR), {"s": end(0), "i": end(0), "a": RUNS}, Decision(start=("s",))),
        (spec("a", init=SIDECAR, restartPolicy="Never"), {"s": RUNS, "i": end(0), "a": end(0)}, Decision(stop=("s",))),
        (
            spec("a", init=SIDECAR, restartPolicy="Never"),
            {"s": end(137), "i": end(0), "a": end(0)},
            Decision(over="Succeeded"),
        ),
        # Ephemeral containers start once.
        (spec("a", ephemeralContainers=[{"name": "e"}]), {"a": RUNS}, Decision(start=("e",))),
        (spec("a", ephemeralContainers=[{"name": "e"}]), {"a": RUNS, "e": end(1)}, Decision()),
    ],
)
def test_the_next_step(pod, records, expected):
    assert decide(pod, records, now=NOW) == expected


@pytest.mark.parametrize(
    ("pod", "records", "expected"),
    [
        (spec("a", "b"), {"a": RUNS, "b": RUNS}, Decision(stop=("a", "b"))),
        (spec("a", init=SIDECAR), {"a": RUNS, "s": RUNS}, Decision(stop=("a",))),
        (spec("a", init=SIDECAR), {"a": end(0), "s": RUNS}, Decision(stop=("s",))),
        (spec("a", init=INIT), {"i1": RUNS}, Decision(stop=("i1",))),
        (spec("a"), {"a": end(0)}, Decision(over="Succeeded")),
        (spec("a"), {"a": end(143)}, Decision(over="Failed")),
        (spec("a"), {}, Decision(over="Failed")),
    ],
)
def test_the_end_of_a_deleted_pod(pod, records, expected):
    assert decide(pod, records, now=NOW, terminating=True) == expected


def test_a_deadline():
    pod = spec("a", activeDeadlineSeconds=60)
    assert decide(pod, {"a": RUNS}, now=NOW, accepted=NOW - 10).again == NOW + 50
    late = decide(pod, {"a": RUNS}, now=NOW, accepted=NOW - 60)
    assert (late.stop, late.over) == (("a",), "")
    late = decide(pod, {"a": end(143)}, now=NOW, accepted=NOW - 60)
    assert (late.over, late.reason) == ("Failed", "DeadlineExceeded")


def test_crashes_are_forgotten_after_a_long_run():
    record = decisions.running(end(1, crashes=4), identity="x", now=NOW, booted=True)
    assert decisions.ended(record, Ended(1, NOW, NOW + 601)).crashes == 0
    assert decisions.ended(record, Ended(1, NOW, NOW + 599)).crashes == 5


RECORDS = st.sampled_from([NEVER, RUNS, STARTING, end(0), end(1), end(1, crashes=2), end(1, crashes=2, ago=100.0)])
SPECS = st.sampled_from([spec("a", "b", init=init, restartPolicy=policy) for init in ((), INIT, SIDECAR)
                         for policy in ("Always", "OnFailure", "Never")])  # fmt: skip


@given(SPECS, st.dictionaries(st.sampled_from(["a", "b", "i1", "i2", "s", "i"]), RECORDS), st.booleans())
def test_laws(pod, records, terminating):
    """Nothing that runs is started, nothing that does not run is stopped; a Pod that is over has nothing left to do."""
    found = decide(pod, records, now=NOW, terminating=terminating)
    assert not [name for name in found.start if records.get(name, NEVER).running]
    assert all(records[name].running for name in found.stop)
    assert not (found.start and found.stop)
    if found.over:
        assert not found.start
        assert not [name for name in [each.name for each in (*pod.containers, *pod.init_containers)]
                    if records.get(name, NEVER).running]  # fmt: skip
    if terminating:
        assert found.over or found.stop


@given(SPECS, st.lists(st.tuples(st.integers(0, 5), st.integers(0, 1)), max_size=60))
def test_every_pod_comes_to_its_end(pod, endings):
    """However its containers end: once it is deleted and what is stopped ends, the Pod is over."""
    records, now = {}, NOW
    for which, code in endings:
        found = decide(pod, records, now=now)
        for name in found.start:
            records[name] = decisions.running(records.get(name, NEVER), identity="x", now=now, booted=True)
        now += 1000
        running = [name for name, record in records.items() if record.running]
        for name in found.stop or running[which : which + 1]:
            records[name] = decisions.ended(records[name], Ended(code, records[name].started, now))
    for _ in range(10):
        found = decide(pod, records, now=now, terminating=True)
        if found.over:
            return
        for name in found.stop:
            records[name] = decisions.ended(records[name], Ended(143, records[name].started, now))
    raise AssertionError(records)


def test_a_pod_that_is_evicted():
    doom = Doom("Evicted", "too large")
    decision = decide(spec("a"), {"a": RUNS}, now=NOW, doomed=doom)
    assert decision == Decision(stop=("a",), reason="Evicted", message="too large")
    decision = decide(spec("a"), {"a": end(0)}, now=NOW, doomed=doom)
    assert decision == Decision(over="Failed", reason="Evicted", message="too large")
    assert decide(spec("a"), {"a": end(0)}, now=NOW, doomed=doom, terminating=True) == Decision(over="Succeeded")
