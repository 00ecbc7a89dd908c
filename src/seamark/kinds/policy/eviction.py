"""Whether the disruption budgets of a Pod allow its eviction, and what the eviction takes from them.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

from seamark.errors import ApiError, Cause, Forbidden, Object, TooManyRequests
from seamark.kinds.admission import Others
from seamark.kinds.resource import POD_DISRUPTION_BUDGETS
from seamark.kinds.values.conditions import condition_true, with_condition
from seamark.kinds.values.label_selector import readable

CONDITION = "DisruptionAllowed"

_MOST_DISRUPTED = 2000  # Pods that the controller has not confirmed yet
_RETRY_SECONDS = 10


def budgets_of(pod: Object, others: Others) -> list[Object]:
    """The budgets that select a Pod."""
    meta = pod["metadata"]
    found = []
    for budget in others.all(POD_DISRUPTION_BUDGETS, meta.get("namespace", "")):
        selector = readable((budget.get("spec") or {}).get("selector"))
        if selector is not None and selector.matches(meta.get("labels") or {}):
            found.append(budget)
    return found


def charged(pod: Object, budgets: Sequence[Object], now: str) -> list[Object]:
    """The budgets as they are once the Pod is evicted, those that change; raises if that is not allowed."""
    if not budgets or _is_disrupted(pod):
        return []
    if len(budgets) > 1:
        raise ApiError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    budget = budgets[0]
    if _may_go_unready(pod, budget):
        return []
    status = dict(budget["status"])
    _check(budget, status)
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: now}
    if not status["disruptionsAllowed"]:
        status["conditions"] = conditions(status, now)
    return [{**budget, "status": status}]


def _is_disrupted(pod: Object) -> bool:
    """Whether a Pod does not run, or will not for long, so that its eviction disrupts nothing."""
    phase = pod["status"].get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _may_go_unready(pod: Object, budget: Object) -> bool:
    """Whether a Pod that is not ready may go without being counted."""
    if condition_true(pod["status"], "Ready"):
        return False
    status = budget["status"]
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    return bool(status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0)


def _check(budget: Object, status: Object) -> None:
    """Raise unless the budget allows one more disruption."""
    name, allowed = budget["metadata"]["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        sentence = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(sentence, retry_after=_RETRY_SECONDS)
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > _MOST_DISRUPTED:
        raise _forbidden(name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if not allowed:
        raise _too_many(_why_not(name, status))


def _why_not(name: str, status: Object) -> str:
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
    start = f"The disruption budget {name} does not allow evicting pods currently"
    for condition in status.get("conditions") or ():
        if condition.get("type") == CONDITION and condition.get("reason") == "SyncFailed":
            return f"{start} because it failed sync: {condition.get('message', '')}"
    return start


def _too_many(sentence: str, *, retry_after: int | None = None) -> TooManyRequests:
    return TooManyRequests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        details={},
        causes=[Cause(reason="DisruptionBudget", message=sentence)],
        retry_after=retry_after,
    )


def _forbidden(name: str, reason: str) -> Forbidden:
    details = {"name": name, "group": "policy", "kind": "poddisruptionbudget"}
    return Forbidden(f'poddisruptionbudget.policy "{name}" is forbidden: {reason}', details=details)


def conditions(status: Object, now: str, *, failure: str | None = None) -> list[Object]:
    """The conditions of a budget's status, of which one says whether disruptions are allowed."""
    allowed = status.get("disruptionsAllowed", 0) > 0
    reason = "SyncFailed" if failure is not None else "SufficientPods" if allowed else "InsufficientPods"
    condition = {
        "type": CONDITION,
        "status": "True" if allowed else "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": now,
        "reason": reason,
        "message": failure or "",
    }
    return with_condition(status, condition)
