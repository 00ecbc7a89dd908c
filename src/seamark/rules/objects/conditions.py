"""Status conditions: the same for all kinds but for one time that Nodes and workloads add."""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from seamark.rules.objects.metadata import View


class Condition(View, frozen=True):
    """A condition of a Pod or a ServiceCIDR.  ``lastProbeTime`` is left out, as no component ever sets it."""

    type: str = ""
    status: str = ""
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""
    observed_generation: int = 0


C = TypeVar("C", bound=Condition)


def condition_of(conditions: Iterable[C], type: str) -> C | None:
    for condition in conditions:
        if condition.type == type:
            return condition
    return None


def without_condition(conditions: tuple[C, ...], type: str) -> tuple[C, ...]:
    if condition_of(conditions, type) is None:
        return conditions
    return tuple(condition for condition in conditions if condition.type != type)


def with_condition(conditions: tuple[C, ...], new: C) -> tuple[C, ...]:
    """The conditions with this one.  They stay as they are if only its message or its times differ.

    The time of the last transition is kept while the status stays the same.
    """
    old = condition_of(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return (*without_condition(conditions, new.type), new)
