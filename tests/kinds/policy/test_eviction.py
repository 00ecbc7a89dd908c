"""Whether budgets allow that a Pod goes."""

from __future__ import annotations

import pytest
from neighbours import NOW, Neighbours

from seamark.errors import ApiError, Forbidden, Object, TooManyRequests
from seamark.kinds.policy.eviction import budgets_of, charged, conditions
from seamark.kinds.resource import POD_DISRUPTION_BUDGETS


def pod(*, ready: bool = True, phase: str = "Running", **meta: Object) -> Object:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    named = {"name": "p", "namespace": "ns", "labels": {"a": "b"}, **meta}
    return {"metadata": named, "status": {"phase": phase, "conditions": conditions}}


def budget(name: str = "b", *, selector: Object | None = None, policy: str = "", **status: object) -> Object:
    spec: Object = {"selector": {"matchLabels": {"a": "b"}} if selector is None else selector}
    if policy:
        spec["unhealthyPodEvictionPolicy"] = policy
    counts = {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "observedGeneration": 1, **status}
    return {"metadata": {"name": name, "namespace": "ns", "generation": 1}, "spec": spec, "status": counts}


def test_the_budgets_of_a_pod() -> None:
    all_of_them = [
        budget(),
        budget("everything", selector={}),
        budget("other", selector={"matchLabels": {"a": "c"}}),
        {**budget("nothing"), "spec": {}},
    ]
    found = budgets_of(pod(), Neighbours({POD_DISRUPTION_BUDGETS: all_of_them}))
    assert [each["metadata"]["name"] for each in found] == ["b", "everything"]


def test_an_eviction_takes_from_the_budget() -> None:
    before = budget(disruptionsAllowed=2, disruptedPods={"q": NOW})
    (after,) = charged(pod(), [before], NOW)
    assert after["status"]["disruptionsAllowed"] == 1
    assert after["status"]["disruptedPods"] == {"q": NOW, "p": NOW}
    assert "conditions" not in after["status"]
    (last,) = charged(pod(), [budget()], NOW)
    assert last["status"]["conditions"][0]["reason"] == "InsufficientPods"
    assert before["status"]["disruptionsAllowed"] == 2, "the budget given is not edited"


@pytest.mark.parametrize(
    ("going", "asked"),
    [
        (pod(phase="Pending"), budget(disruptionsAllowed=0)),
        (pod(phase="Failed"), budget(disruptionsAllowed=0)),
        (pod(deletionTimestamp=NOW), budget(disruptionsAllowed=0)),
        (pod(ready=False), budget(disruptionsAllowed=0, currentHealthy=1)),
        (pod(ready=False), budget(disruptionsAllowed=0, currentHealthy=0, policy="AlwaysAllow")),
    ],
)
def test_what_goes_without_being_counted(going: Object, asked: Object) -> None:
    assert charged(going, [asked], NOW) == []


@pytest.mark.parametrize(
    ("going", "asked", "cause", "retry"),
    [
        (
            pod(),
            budget(disruptionsAllowed=0, currentHealthy=1),
            "The disruption budget b needs 1 healthy pods and has 1 currently",
            None,
        ),
        (
            pod(ready=False),
            budget(disruptionsAllowed=0, currentHealthy=0),
            "The disruption budget b needs 1 healthy pods and has 0 currently",
            None,
        ),
        (
            pod(),
            budget(disruptionsAllowed=0),
            "The disruption budget b does not allow evicting pods currently",
            None,
        ),
        (
            pod(),
            budget(
                disruptionsAllowed=0,
                conditions=[{"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "no scale"}],
            ),
            "The disruption budget b does not allow evicting pods currently because it failed sync: no scale",
            None,
        ),
        (
            pod(),
            budget(observedGeneration=0),
            "The disruption budget b is still being processed by the server.",
            10,
        ),
    ],
)
def test_what_is_refused_for_now(going: Object, asked: Object, cause: str, retry: int | None) -> None:
    with pytest.raises(TooManyRequests) as refused:
        charged(going, [asked], NOW)
    assert refused.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    assert [c.message for c in refused.value.causes] == [cause]
    assert refused.value.retry_after == retry


def test_what_is_refused_for_good() -> None:
    with pytest.raises(ApiError, match="more than one PodDisruptionBudget"):
        charged(pod(), [budget(), budget("c")], NOW)
    with pytest.raises(Forbidden, match="DisruptedPods map too big"):
        charged(pod(), [budget(disruptedPods=dict.fromkeys(map(str, range(2001)), NOW))], NOW)
    with pytest.raises(Forbidden, match="disruptions allowed is negative"):
        charged(pod(), [budget(disruptionsAllowed=-1)], NOW)


def test_the_condition_keeps_its_moment_while_it_stays() -> None:
    first = conditions({"disruptionsAllowed": 1, "observedGeneration": 1}, "then")
    again = conditions({"disruptionsAllowed": 2, "conditions": [{"type": "Other"}, *first]}, "now")
    assert [c["type"] for c in again] == ["Other", "DisruptionAllowed"]
    assert again[1]["lastTransitionTime"] == "then"
    turned = conditions({"disruptionsAllowed": 0, "conditions": again}, "now")
    assert (turned[1]["lastTransitionTime"], turned[1]["reason"]) == ("now", "InsufficientPods")
