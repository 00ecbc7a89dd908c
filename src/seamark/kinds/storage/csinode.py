"""CSINode: the storage drivers of a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import keep_status, reset_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.resource import CSI_NODES
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.values.fields import Errors, duplicate, immutable, invalid, repeated, required
from seamark.kinds.values.metadata import qualified_name
from seamark.kinds.values.times import age

_LONGEST_ID = 192


class CSINodeKind(Kind):
    resource = CSI_NODES
    singular = "csinode"
    shape_name = "io.k8s.api.storage.v1.CSINode"
    columns = (Column("Name", format="name"), Column("Drivers", "integer"), Column("Age"))
    unconditional_update: ClassVar[bool] = False
    delete_answers_object = True

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, None)

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        seen: set[str] = set()
        for i, driver in enumerate(_drivers(obj)):
            at, name = f"spec.drivers[{i}]", driver.get("name", "")
            errors += driver_name_mistakes(name, f"{at}.name")
            identity = driver.get("nodeID", "")
            if not identity:
                errors.append(required(f"{at}.nodeID"))
            elif len(identity.encode()) > _LONGEST_ID:
                errors.append(invalid(f"{at}.nodeID", identity, f"must be {_LONGEST_ID} characters or less"))
            count = (driver.get("allocatable") or {}).get("count")
            if count is not None and count < 0:
                errors.append(invalid(f"{at}.allocatable.count", count, "must be greater than or equal to 0"))
            if name in seen:
                errors.append(duplicate(f"{at}.name", name))
            seen.add(name)
            errors += _topology_mistakes(driver.get("topologyKeys") or [], at)
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        before = {driver.get("name"): driver for driver in _drivers(old)}
        errors = self.validate(obj)
        for driver in _drivers(obj):
            was = before.get(driver.get("name"))
            if was is not None and {**was, "allocatable": None} != {**driver, "allocatable": None}:
                errors.append(immutable("spec.drivers", go_names.CSI_NODE_DRIVER({**driver, "allocatable": None})))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta.get("name", ""), len(_drivers(obj)), age(now, meta.get("creationTimestamp"))]


def _drivers(obj: Object) -> list[Object]:
    return (obj.get("spec") or {}).get("drivers") or []


def _topology_mistakes(keys: list[str], at: str) -> Errors:
    errors: Errors = []
    again = set(repeated(keys))
    for i, key in enumerate(keys):
        if not key:
            errors.append(required(at))
        if i in again:
            errors.append(duplicate(at, key))
        errors += [invalid(at, key, sentence) for sentence in qualified_name(key)]
    return errors


CSI_NODE = CSINodeKind()
