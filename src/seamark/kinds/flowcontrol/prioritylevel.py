"""PriorityLevelConfiguration: how many requests of a level run at once, and how the others wait."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind
from seamark.kinds.flowcontrol.defaults import MANDATORY, priority_levels
from seamark.kinds.flowcontrol.flowschema import conditions_mistakes
from seamark.kinds.kind import Column
from seamark.kinds.language import go_names
from seamark.kinds.resource import PRIORITY_LEVELS
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.times import age

_QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
_MOST_QUEUES = 10_000_000
_HASH_BITS = 60  # of a flow, from which its queues are drawn
# Zero shares could not be told from none in v1beta3; this is how they were marked there.
_OLD_MARK = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_FIXED = {
    level["metadata"]["name"]: go_names.PRIORITY_LEVEL_SPEC(level["spec"])
    for level in priority_levels()
    if level["metadata"]["name"] in MANDATORY
}


class PriorityLevelKind(CountedKind):
    resource = PRIORITY_LEVELS
    singular = "prioritylevelconfiguration"
    shape_name = "io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration"
    subresources = (bare_status_of("PriorityLevelConfiguration"),)
    columns = (
        Column("Name", format="name"),
        Column("Type"),
        Column("NominalConcurrencyShares"),
        Column("Queues"),
        Column("HandSize"),
        Column("QueueLengthLimit"),
        Column("Age"),
    )
    new_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        spec = obj["spec"]
        if (exempt := spec.get("exempt")) is not None:
            exempt.setdefault("nominalConcurrencyShares", 0)
            exempt.setdefault("lendablePercent", 0)
        if (limited := spec.get("limited")) is not None:
            if limited.get("nominalConcurrencyShares") is None:
                limited["nominalConcurrencyShares"] = 30
            limited.setdefault("lendablePercent", 0)
            for field, value in _QUEUING.items():
                if (queuing := (limited.get("limitResponse") or {}).get("queuing")) is not None:
                    queuing[field] = queuing.get(field) or value

    def validate(self, obj: Object) -> Errors:
        meta, errors = obj["metadata"], Errors()
        if _OLD_MARK in (meta.get("annotations") or {}):
            errors.append(forbidden("metadata.annotations", f"annotation '{_OLD_MARK}' is forbidden"))
        name = meta.get("name", "")
        return errors + _spec_mistakes(obj["spec"], name) + _changes_of_mandatory(obj["spec"], name)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return conditions_mistakes((obj.get("status") or {}).get("conditions") or (), "status.conditions")

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        limited = spec.get("limited") or {}
        queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
        return [
            meta.get("name", ""),
            spec.get("type", ""),
            limited.get("nominalConcurrencyShares", "<none>"),
            *(queuing.get(field, "<none>") for field in ("queues", "handSize", "queueLengthLimit")),
            age(now, meta.get("creationTimestamp")),
        ]


def _spec_mistakes(spec: Object, name: str) -> Errors:
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    errors: Errors = []
    if (name == "exempt") != (kind == "Exempt"):
        errors.append(invalid("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'"))
    if kind == "Exempt":
        if limited is not None:
            errors.append(forbidden("spec.limited", "must be nil if the type is not Limited"))
        return errors if exempt is None else errors + _share_mistakes(exempt, "spec.exempt")
    if kind != "Limited":
        return [*errors, not_supported("spec.type", kind, ("Exempt", "Limited"))]
    if exempt is not None:
        errors.append(forbidden("spec.exempt", "must be nil if the type is Limited"))
    if limited is None:
        return [*errors, required("spec.limited", "must not be empty when type is Limited")]
    return errors + _limit_mistakes(limited, "spec.limited")


def _changes_of_mandatory(spec: Object, name: str) -> Errors:
    """What was changed of a level that has to be as it is; the shares of ``exempt`` are its administrator's to set."""
    if name not in _FIXED:
        return []
    shown, fixed = go_names.PRIORITY_LEVEL_SPEC(spec), _FIXED[name]
    if name != "exempt":
        return [] if shown == fixed else [invalid("spec", shown, f"spec of '{name}' must equal the fixed value")]
    if {**shown, "Exempt": None} == {**fixed, "Exempt": None}:
        return []
    return [invalid("spec", shown, "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value")]


def _share_mistakes(level: Object, at: str) -> Errors:
    errors: Errors = []
    shares, lendable = level["nominalConcurrencyShares"], level["lendablePercent"]
    if shares < 0:
        errors.append(invalid(f"{at}.nominalConcurrencyShares", shares, "must be a non-negative integer"))
    if not 0 <= lendable <= 100:
        errors.append(invalid(f"{at}.lendablePercent", lendable, "must be between 0 and 100, inclusive"))
    return errors


def _limit_mistakes(limited: Object, at: str) -> Errors:
    errors = _share_mistakes(limited, at)
    if (borrowing := limited.get("borrowingLimitPercent")) is not None and borrowing < 0:
        sentence = "if specified, must be a non-negative integer"
        errors.append(invalid(f"{at}.borrowingLimitPercent", borrowing, sentence))
    response, path = limited.get("limitResponse") or {}, f"{at}.limitResponse"
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            errors.append(forbidden(f"{path}.queuing", "must be nil if limited.limitResponse.type is not Limited"))
    elif kind != "Queue":
        errors.append(not_supported(f"{path}.type", kind, ("Queue", "Reject")))
    elif queuing is None:
        sentence = "must not be empty if limited.limitResponse.type is Limited"
        errors.append(required(f"{path}.queuing", sentence))
    else:
        errors += _queue_mistakes(queuing, f"{path}.queuing")
    return errors


def _queue_mistakes(queuing: Object, at: str) -> Errors:
    errors: Errors = []
    hand, queues = queuing["handSize"], queuing["queues"]
    for field in ("queueLengthLimit", "queues"):
        if queuing[field] <= 0:
            errors.append(invalid(f"{at}.{field}", queuing[field], "must be positive"))
    if queues > _MOST_QUEUES:
        errors.append(invalid(f"{at}.queues", queues, f"must not be greater than {_MOST_QUEUES}"))
    if hand <= 0:
        errors.append(invalid(f"{at}.handSize", hand, "must be positive"))
    elif hand > queues:
        errors.append(invalid(f"{at}.handSize", hand, f"should not be greater than queues ({queues})"))
    elif math.ceil(math.log2(queues) * hand) > _HASH_BITS:
        bits = f"required entropy bits of deckSize {queues} and handSize {hand}"
        errors.append(invalid(f"{at}.handSize", hand, f"{bits} should not be greater than {_HASH_BITS}"))
    return errors


PRIORITY_LEVEL = PriorityLevelKind()
