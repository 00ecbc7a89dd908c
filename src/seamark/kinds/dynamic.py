"""Kinds that are added while the server runs.  They follow the rules that Kubernetes has for custom resources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from hashlib import sha256
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Field, ListOf, Scalar, Shape, Zero
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Subresource
from seamark.kinds.values.metadata import keep_accessories
from seamark.kinds.values.times import TimeError, age

_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_NAME = Column("Name", format="name")


class Printed(msgspec.Struct, frozen=True):
    """A column of ``kubectl get``, and the path of field names that leads to its value."""

    column: Column
    path: tuple[str, ...]


AGE = Printed(Column("Age", "date"), ("metadata", "creationTimestamp"))


class DynamicKind(Kind):
    """A kind described by data alone.  If it has a ``status`` subresource, only writes there change the status."""

    built_in = False
    strategic_merge = False
    unconditional_update = False

    def __init__(
        self,
        resource: Resource,
        shape: Shape | None = None,
        *,
        singular: str = "",
        short_names: Iterable[str] = (),
        categories: Iterable[str] = (),
        subresources: Iterable[Subresource] = (),
        printed: Iterable[Printed] = (AGE,),
    ) -> None:
        self.resource = resource
        if shape is not None:  # else the class knows it
            self.shape = shape
        self.singular = singular or resource.kind.lower()
        self.short_names = tuple(short_names)
        self.categories = tuple(categories)
        self.subresources = tuple(subresources)
        self._printed = tuple(printed)
        self.columns = (_NAME, *(printed.column for printed in self._printed))
        self._has_status = any(sub.name == "status" for sub in self.subresources)

    @cached_property
    def schema_digest(self) -> bytes:
        return sha256(repr(self.shape).encode()).digest()

    @cached_property
    def list_shape(self) -> Shape:
        text, meta = Scalar("string"), shapes.of(_LIST_META)
        fields = {
            "apiVersion": Field(text, Zero.DROP),
            "items": Field(ListOf(self.shape), Zero.FILL, required=True),
            "kind": Field(text, Zero.DROP),
            "metadata": Field(meta, Zero.FILL),
        }
        return Shape(f"{self.shape.name}List", fields)

    # --- writes ------------------------------------------------------------------------------------

    def prepare_create(self, obj: Object) -> None:
        if self._has_status:
            obj.pop("status", None)
        obj["metadata"]["generation"] = 1

    def prepare_update(self, obj: Object, old: Object) -> None:
        if self._has_status:
            obj.pop("status", None)
            if "status" in old:
                obj["status"] = old["status"]
        if _content(obj) != _content(old):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        keep_accessories(obj["metadata"], old["metadata"])

    # --- what people see ---------------------------------------------------------------------------

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return [obj["metadata"].get("name", ""), *(_cell(obj, printed, now) for printed in self._printed)]


def _content(obj: Object) -> Object:
    """The fields that raise the generation when they change: all but the metadata."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}


def _cell(obj: Object, printed: Printed, now: float) -> Any:
    """The value of a column; None if the object has none."""
    value: Any = obj
    for name in printed.path:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None or printed.column.type != "date":
        return value
    try:
        return age(now, str(value))
    except TimeError:
        return "<invalid>"
