"""The conditions of a status: whether one is true, how one is set, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, duplicate, invalid, not_supported, required, too_long
from seamark.kinds.values.metadata import qualified_name

_STATUSES = ("False", "True", "Unknown")
_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_reason = re.compile(_REASON)
_WRONG_REASON = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)
_LONGEST_REASON = 1024
_LONGEST_MESSAGE = 32 * 1024


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


def conditions_mistakes(conditions: Iterable[Object], path: str) -> Errors:
    """What is wrong with conditions as newer APIs have them: nothing but the message may be left out."""
    errors: Errors = []
    seen: set[str] = set()
    for i, condition in enumerate(conditions):
        at, get = f"{path}[{i}]", condition.get
        kind, status, reason = get("type", ""), get("status", ""), get("reason", "")
        if kind in seen:
            errors.append(duplicate(f"{at}.type", kind))
        seen.add(kind)
        errors += [invalid(f"{at}.type", kind, sentence) for sentence in qualified_name(kind)]
        if status not in _STATUSES:
            errors.append(not_supported(f"{at}.status", status, _STATUSES))
        if (generation := get("observedGeneration", 0)) < 0:
            sentence = "must be greater than or equal to zero"
            errors.append(invalid(f"{at}.observedGeneration", generation, sentence))
        if not get("lastTransitionTime"):
            errors.append(required(f"{at}.lastTransitionTime", "must be set"))
        if not reason:
            errors.append(required(f"{at}.reason", "must be set"))
        elif not _reason.fullmatch(reason):
            errors.append(invalid(f"{at}.reason", reason, _WRONG_REASON))
        if len(reason) > _LONGEST_REASON:
            errors.append(too_long(f"{at}.reason", _LONGEST_REASON))
        if len(get("message", "")) > _LONGEST_MESSAGE:
            errors.append(too_long(f"{at}.message", _LONGEST_MESSAGE))
    return errors
