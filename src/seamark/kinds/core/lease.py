"""Lease: its holder, its duration and its election strategy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import LEASES
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported
from seamark.kinds.values.metadata import qualified_name
from seamark.kinds.values.times import age

_STRATEGY = "OldestEmulationVersion"


class LeaseKind(Kind):
    resource = LEASES
    singular = "lease"
    shape_name = "io.k8s.api.coordination.v1.Lease"
    columns = (Column("Name", format="name"), Column("Holder"), Column("Age"))
    create_on_update = True
    unconditional_update = False

    def validate(self, obj: Object) -> Errors:
        spec = obj.get("spec") or {}
        errors: Errors = []
        if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
            errors.append(invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
        if (transitions := spec.get("leaseTransitions")) is not None and transitions < 0:
            errors.append(invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0"))
        return errors + _election_mistakes(spec)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        holder = (obj.get("spec") or {}).get("holderIdentity", "")
        return [meta.get("name", ""), holder, age(now, meta.get("creationTimestamp"))]


def _election_mistakes(spec: Object) -> Errors:
    errors: Errors = []
    strategy, preferred = spec.get("strategy"), spec.get("preferredHolder")
    if strategy is not None:
        parts, at = strategy.split("/"), "spec.strategy.strategy"  # Kubernetes' own path
        if len(parts) == 1 and strategy != _STRATEGY:
            errors.append(not_supported(at, strategy, (_STRATEGY,)))
        elif len(parts) > 1:
            errors += [invalid(at, strategy, sentence) for sentence in qualified_name(strategy)]
    if preferred and not strategy:
        errors.append(forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


LEASE = LeaseKind()
