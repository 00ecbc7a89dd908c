"""The shape of objects: every field of every kind, its type, and what Go's encoding does with its zero value.

Shapes are data; this module is the small language they are written in.  Those of the built-in kinds are generated
(``shapes.json``, made by ``tools/shapes``), a kind that is added while the server runs brings its own.  Five readers
share them: decoding (:mod:`seamark.kinds.language.decode`), protobuf, strategic merge patch and server-side apply
(``seamark.api``), and OpenAPI.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Literal, TypeVar, TypeVarTuple

import msgspec

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Zero(Enum):
    """What becomes of an absent or empty value when an object is written, as Go's JSON tags say.

    - KEEP: a pointer.  Absent stays absent, present stays as it is, even 0, false, "" or {}.
    - DROP: ``omitempty`` on a plain value.  0, false, "", [], {} and null all become absent.
    - FILL: no ``omitempty``, or a type on which it has no effect (structs, times, quantities).  Absent becomes the
      type's zero value: 0, false, "", "0" for quantities, null for times, lists and maps, and for a struct its own
      fields' fillings.  An empty list or map becomes null too: storage does not tell it from an absent one.
    - NULL: a pointer without ``omitempty``.  Absent becomes null, present stays as it is.
    """

    KEEP = "keep"
    DROP = "drop"
    FILL = "fill"
    NULL = "null"


ScalarName = Literal[
    "string",
    "int32",
    "int64",
    "float64",
    "bool",
    "bytes",  # base64 text
    "time",  # RFC 3339, whole seconds
    "microtime",  # RFC 3339 with microseconds
    "quantity",  # 100m, 1Gi; numbers are taken too
    "int-or-string",
    "any",  # whatever JSON says: FieldsV1, RawExtension
]


class Scalar(msgspec.Struct, frozen=True, gc=False):
    name: ScalarName


class ListOf(msgspec.Struct, frozen=True):
    """``type`` is how server-side apply merges it: ``map`` by ``keys``, as a ``set``, or ``atomic`` as a whole."""

    of: Type
    type: Literal["atomic", "set", "map"] = "atomic"
    keys: tuple[str, ...] = ()


class MapOf(msgspec.Struct, frozen=True):
    """A map from strings; ``atomic`` means server-side apply owns it as a whole."""

    of: Type
    atomic: bool = False


class Field(msgspec.Struct, frozen=True):
    """One field of a shape.

    ``patch_strategy`` and ``merge_key`` are strategic merge patch's: "merge", "replace", "retainKeys" or several
    joined by commas.  ``default`` is the value OpenAPI documents, and which server-side apply assumes for list keys
    (``protocol: TCP``); None if there is none.  ``required`` is OpenAPI's.  ``go_type`` is the Go type's name where it
    does not follow from ``type`` (``v1.Protocol``): decoding errors print it.  ``numbers`` is where protobuf has the
    field: one number, or several if JSON flattens the messages it is nested in; none if that is not known.
    ``description`` is OpenAPI's; the built-in shapes have theirs in ``seamark.api.openapi.field_docs`` instead.
    """

    type: Type
    zero: Zero
    required: bool = False
    patch_strategy: str = ""
    merge_key: str = ""
    default: str | int | bool | None = None
    go_type: str = ""
    numbers: tuple[int, ...] = ()
    description: str = ""


class Shape(msgspec.Struct, eq=False, weakref=True):
    """A struct: its OpenAPI name (``io.k8s.api.core.v1.ServicePort``) and fields by JSON name.

    Not frozen, because shapes refer to each other in circles, so their fields are added after they are made; after that
    a shape does not change.  Two shapes of the same name are different: a kind may vanish and come back with another.
    If ``schema`` is given, OpenAPI shows it instead of one made from the fields.  An ``open`` one keeps fields that it
    does not know.
    """

    name: str
    fields: dict[str, Field]
    atomic: bool = False
    description: str = ""
    schema: dict[str, Any] | None = None
    open: bool = False
    _forms: dict[tuple[Any, ...], Any] = msgspec.field(default_factory=dict)

    def form(self, make: Callable[[Shape, *Ts], T], *args: *Ts) -> T:
        """What ``make`` makes of this shape and these arguments.

        It is made once and kept with the shape, so that everything compiled from a shape vanishes with it.
        """
        key = (make, *args)
        made: T | None = self._forms.get(key)
        if made is None:
            made = self._forms[key] = make(self, *args)
        return made

    @property
    def go_name(self) -> str:
        """``ServicePort``: how Go's decoding errors call it."""
        return self.name.rsplit(".", 1)[-1]


Type = Scalar | ListOf | MapOf | Shape

# A part of a custom resource that no schema describes: server-side apply looks into it, as into no other free value.
ANYTHING: Type = Scalar("any")
