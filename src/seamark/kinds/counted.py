"""Kinds that count their changes: ``metadata.generation`` grows with every change of the spec, and only with that."""

from __future__ import annotations

from copy import deepcopy
from typing import ClassVar

from seamark.errors import Object
from seamark.kinds.kind import Kind


class CountedKind(Kind):
    """A kind with a generation.  If it has a status, only its status subresource can write it."""

    new_status: ClassVar[Object | None] = None  # the status of a new object; None: it has none
    counted: ClassVar[tuple[str, ...]] = ("spec",)  # the fields whose changes count

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        reset_status(obj, self.new_status)

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)
        if any(obj.get(field) != old.get(field) for field in self.counted):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def same_generation(obj: Object, old: Object | None) -> bool:
    """Whether an update changes nothing that counts; no warning is repeated then."""
    return old is not None and obj["metadata"].get("generation") == old["metadata"].get("generation")


def reset_status(obj: Object, status: Object | None) -> None:
    """Give a new object the status of a new object, whatever its creator sent."""
    if status is None:
        obj.pop("status", None)
    else:
        obj["status"] = deepcopy(status)


def keep_status(obj: Object, old: Object) -> None:
    """Restore the status that a write to the object itself cannot change."""
    obj.pop("status", None)
    if "status" in old:
        obj["status"] = old["status"]
