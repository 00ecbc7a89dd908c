"""Chooses the Pods that have to go so that a more important one fits.  Pure, apart from trying it on the occupancy.

On each node that could be made to fit, all Pods of lower priority are taken away, then put back while there is room,
the most important first and those whose budget would be violated before the others.  The rest are the victims.  Of the
nodes the best is the one with, in this order: the fewest violations, the least important most important victim, the
least important victims together, the fewest victims, and of the most important victims those that started last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from seamark.nodes.scheduling.occupancy import Occupancy, Occupant, Room
from seamark.nodes.scheduling.schedule import Question, Reach, lasting
from seamark.rules.objects.budget import Budget
from seamark.rules.objects.pod import Pod

NEVER = "Never"
MOST_CANDIDATES = 100  # nodes that are tried

_OFFSET = 2**31  # makes every priority positive, so that more victims are always a larger sum


class Preemption(msgspec.Struct, frozen=True):
    """The node that becomes free, and the Pods that have to go for it."""

    node: str
    victims: tuple[Occupant, ...]


def preempt(pod: Pod, occupancy: Occupancy, budgets: Iterable[Budget], reach: Reach | None = None) -> Preemption | None:
    """Where a Pod that fits nowhere could go; None if that does not help, or is not allowed."""
    priority = pod.spec.priority
    if pod.spec.preemption_policy == NEVER or occupancy.lowest_priority >= priority:
        return None
    question = Question(pod, occupancy, reach)
    listed = list(budgets)
    best: tuple[tuple[float, ...], Preemption] | None = None
    tried = 0
    for room in list(occupancy.rooms.values()):
        lower = [each for each in occupancy.on(room.name) if each.priority < priority]
        if not lower or lasting(question.refuses(room)):
            continue
        found = _victims(question, room, lower, listed)
        if found is None:
            continue
        violations, victims = found
        score = _score(violations, victims)
        if best is None or score < best[0]:
            best = (score, Preemption(room.name, victims))
        tried += 1
        if tried == MOST_CANDIDATES:
            break
    return None if best is None else best[1]


def _victims(
    question: Question, room: Room, lower: Sequence[Occupant], budgets: Sequence[Budget]
) -> tuple[int, tuple[Occupant, ...]] | None:
    """How many budgets are violated, and which Pods have to go; None if the Pod does not even fit without all."""
    occupancy = question.occupancy

    def fits() -> bool:
        # Only a question about other Pods has another answer when these change.
        asked = Question(question.pod, occupancy, question.reach) if question.placed else question
        return not asked.refuses(room)

    ordered = sorted(lower, key=lambda each: (-each.priority, each.since, each.key))
    for each in ordered:
        occupancy.remove(each.key)
    try:
        if not fits():
            return None
        guarded, others = _by_budget(ordered, budgets)
        victims: list[Occupant] = []
        violations = 0
        for group in (guarded, others):
            for each in group:
                occupancy.put(each)
                if not fits():
                    occupancy.remove(each.key)
                    victims.append(each)
                    violations += group is guarded
        return violations, tuple(victims)
    finally:
        for each in ordered:
            occupancy.put(each)


def _by_budget(occupants: Sequence[Occupant], budgets: Sequence[Budget]) -> tuple[list[Occupant], list[Occupant]]:
    """The Pods whose eviction would violate a budget, and the others."""
    left = {budget.metadata.key: int(budget.status.get("disruptionsAllowed", 0)) for budget in budgets}
    guarded: list[Occupant] = []
    others: list[Occupant] = []
    for each in occupants:
        name, violates = each.key.rpartition("/")[2], False
        for budget in budgets:
            selector = budget.selector
            if budget.metadata.namespace != each.namespace or selector is None or not selector.matches(each.labels):
                continue
            if name not in (budget.status.get("disruptedPods") or {}):
                left[budget.metadata.key] -= 1
                violates = violates or left[budget.metadata.key] < 0
        (guarded if violates else others).append(each)
    return guarded, others


def _score(violations: int, victims: Sequence[Occupant]) -> tuple[float, ...]:
    """The lowest is the best."""
    highest = max((each.priority for each in victims), default=-_OFFSET)
    first = min((each.since for each in victims if each.priority == highest), default=0.0)
    together = sum(each.priority + _OFFSET for each in victims)
    return (violations, highest, together, len(victims), -first)
