"""ServiceCIDR: a range of cluster IPs, or one range per family."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.counted import keep_status, reset_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import SERVICE_CIDRS
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.addresses import canonical_cidr_mistakes, network_family
from seamark.kinds.values.fields import Errors, immutable, invalid, required
from seamark.kinds.values.times import age

FINALIZER = "networking.k8s.io/service-cidr-finalizer"
READY = "Ready"
DEFAULT_CIDR = "kubernetes"  # the one that API servers make of the ranges they are configured with

_PATH = "spec.cidrs"


class ServiceCIDRKind(Kind):
    resource = SERVICE_CIDRS
    singular = "servicecidr"
    shape_name = "io.k8s.api.networking.v1.ServiceCIDR"
    subresources = (bare_status_of("ServiceCIDR"),)
    columns = (Column("Name", format="name"), Column("CIDRs"), Column("Age"))

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, None)

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate(self, obj: Object) -> Errors:
        return _range_mistakes(_ranges(obj))

    def validate_update(self, obj: Object, old: Object) -> Errors:
        """The ranges may not change, except that a second family may be added."""
        now, before = _ranges(obj), _ranges(old)
        if len(now) == len(before):
            changed = [i for i, cidr in enumerate(before) if cidr != now[i]]
            return [immutable(f"{_PATH}[{i}]", now[i]) for i in changed]
        if len(before) == 1 and len(now) == 2:
            errors = [] if now[0] == before[0] else [immutable(f"{_PATH}[0]", now[0])]
            return errors + _range_mistakes(now)
        return [immutable(_PATH, now)]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta["name"], ",".join(_ranges(obj)), age(now, meta.get("creationTimestamp"))]


def usable_ranges(obj: Object) -> list[str]:
    """The ranges for new addresses: none if the ServiceCIDR is not ready or is being deleted."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    waiting = any(found.get("type") == READY and found.get("status") != "True" for found in conditions)
    return [] if waiting or obj["metadata"].get("deletionTimestamp") else _ranges(obj)


def _ranges(obj: Object) -> list[str]:
    return (obj.get("spec") or {}).get("cidrs") or []


def _range_mistakes(ranges: list[str]) -> Errors:
    if not ranges:
        return [required(_PATH, "at least one CIDR required")]
    if len(ranges) > 2:
        # Kubernetes' message prints its internal struct.
        return [invalid(_PATH, {"CIDRs": ranges}, "may only hold up to 2 values")]
    errors: Errors = []
    for i, cidr in enumerate(ranges):
        errors += [invalid(f"{_PATH}[{i}]", cidr, sentence) for sentence in canonical_cidr_mistakes(cidr)]
    families = [network_family(cidr) for cidr in ranges]
    if len(ranges) == 2 and families[0] is not None and families[0] == families[1]:
        sentence = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        errors.append(invalid(_PATH, ranges, sentence))
    return errors


SERVICE_CIDR = ServiceCIDRKind()
