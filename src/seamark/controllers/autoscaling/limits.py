"""How far and how fast the number of replicas may change.  Pure, but for the memory of one autoscaler.

what metrics ask for → held by recent recommendations → no faster than the policies → between minimum and maximum
"""

from __future__ import annotations

import math

import msgspec

from seamark.controllers.autoscaling.autoscaler import AutoscalerSpec, Behaviour, Direction

# Without a behaviour, the highest recommendation of so many seconds holds the number up.
DOWN_WINDOW_SECONDS = 300
_LONGEST_WINDOW_SECONDS = 3600
WITHIN = ("DesiredWithinRange", "the desired count is within the acceptable range")
TOO_FEW = ("TooFewReplicas", "the desired replica count is less than the minimum replica count")
TOO_MANY = ("TooManyReplicas", "the desired replica count is more than the maximum replica count")
UP_LIMIT = ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate")
DOWN_LIMIT = ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate")
READY = ("ReadyForNewScale", "recommended size matches current size")
HELD_DOWN = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
)
HELD_UP = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
)

Reason = tuple[str, str]


class Step(msgspec.Struct, frozen=True):
    """A recommendation of so many replicas, or a change by so many."""

    time: float
    replicas: int


class Memory(msgspec.Struct):
    """What an autoscaler recommended lately, and by how much it changed the number."""

    recommended: list[Step] = msgspec.field(default_factory=list)
    changes: list[Step] = msgspec.field(default_factory=list)

    def recommend(self, replicas: int, now: float) -> None:
        self.recommended = _recent(self.recommended, _LONGEST_WINDOW_SECONDS, now)
        self.recommended.append(Step(now, replicas))

    def changed(self, by: int, now: float) -> None:
        self.changes = _recent(self.changes, _LONGEST_WINDOW_SECONDS, now)
        self.changes.append(Step(now, by))


def _recent(steps: list[Step], seconds: float, now: float) -> list[Step]:
    return [step for step in steps if step.time > now - seconds]


class Limited(msgspec.Struct, frozen=True):
    """The number that is allowed; whether earlier recommendations hold it, and whether a limit does, and which."""

    replicas: int
    held: Reason
    limited: bool
    limit: Reason


def limit(spec: AutoscalerSpec, memory: Memory, current: int, asked: int, now: float) -> Limited:
    """What becomes of the number that metrics ask for; it is noted in ``memory``."""
    stable = _stable(spec.behavior, memory, current, asked, now)
    memory.recommend(asked, now)
    held = READY if stable == asked else HELD_DOWN if asked >= current and spec.behavior else HELD_UP
    if spec.behavior is None:
        most = min((spec.max_replicas, TOO_MANY), (max(2 * current, 4), UP_LIMIT), key=lambda bound: bound[0])
        least = (spec.min_replicas, TOO_FEW)
    else:
        up, down = spec.behavior.scale_up, spec.behavior.scale_down
        fastest = max(current, _up_limit(up, memory, current, now))
        most = min((spec.max_replicas, TOO_MANY), (fastest, UP_LIMIT), key=lambda bound: bound[0])
        slowest = min(current, _down_limit(down, memory, current, now))
        least = max((spec.min_replicas, TOO_FEW), (slowest, DOWN_LIMIT), key=lambda bound: bound[0])
        if stable >= current:
            least = (min(least[0], stable), TOO_FEW)
    if stable > most[0]:
        return Limited(most[0], held, True, most[1])
    if stable < least[0]:
        return Limited(least[0], held, True, least[1])
    return Limited(stable, held, False, WITHIN)


def _stable(behaviour: Behaviour | None, memory: Memory, current: int, asked: int, now: float) -> int:
    def recent(window: int | None, otherwise: int) -> list[int]:
        seconds = otherwise if window is None else window
        return [asked, *(step.replicas for step in _recent(memory.recommended, seconds, now))]

    if behaviour is None:
        return max(recent(None, DOWN_WINDOW_SECONDS))
    lowest = min(recent(behaviour.scale_up.stabilization_window_seconds, 0))
    highest = max(recent(behaviour.scale_down.stabilization_window_seconds, DOWN_WINDOW_SECONDS))
    return min(max(current, lowest), highest)


def _up_limit(rules: Direction, memory: Memory, current: int, now: float) -> int:
    if rules.select_policy == "Disabled":
        return current
    choose = min if rules.select_policy == "Min" else max
    bounds = []
    for policy in rules.policies:
        before = _before(memory, current, policy.period_seconds, now)
        bounds.append(
            before + policy.value if policy.type == "Pods" else math.ceil(before * (100 + policy.value) / 100)
        )
    return choose(bounds, default=current)


def _down_limit(rules: Direction, memory: Memory, current: int, now: float) -> int:
    if rules.select_policy == "Disabled":
        return current
    choose = max if rules.select_policy == "Min" else min
    bounds = []
    for policy in rules.policies:
        before = _before(memory, current, policy.period_seconds, now)
        bounds.append(before - policy.value if policy.type == "Pods" else before * (100 - policy.value) // 100)
    return choose(bounds, default=current)


def _before(memory: Memory, current: int, seconds: int, now: float) -> int:
    """How many replicas there were at the start of the period."""
    return current - sum(step.replicas for step in _recent(memory.changes, seconds, now))
