"""The conditions of a status: whether one is true, and how one is set."""

from __future__ import annotations

from seamark.errors import Object


def condition_true(status: Object, type: str) -> bool:
    return any(each.get("type") == type and each.get("status") == "True" for each in status.get("conditions") or ())


def with_condition(status: Object, new: Object) -> list[Object]:
    """The conditions of a status with a new one, in the place of the last one of its type.

    Its ``lastTransitionTime`` stays that of the last one, unless it becomes true or false now.
    """
    listed = list(status.get("conditions") or ())
    for i, last in enumerate(listed):
        if last.get("type") == new["type"]:
            same = last.get("status") == new["status"] and "lastTransitionTime" in last
            listed[i] = {**new, "lastTransitionTime": last["lastTransitionTime"]} if same else new
            return listed
    return [*listed, new]
