"""A small kind with one field of every kind of ownership, and random objects of it for property tests."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from seamark.kinds.kind import Kind
from seamark.kinds.language.shape import Field, ListOf, MapOf, Scalar, Shape, Zero
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Part
from seamark.kinds.table import Kinds

STRING, INTEGER = Scalar("string"), Scalar("int32")

PORT = Shape(
    "test.Port",
    {
        "port": Field(INTEGER, Zero.KEEP),
        "protocol": Field(STRING, Zero.KEEP, default="TCP"),
        "name": Field(STRING, Zero.KEEP),
        "tags": Field(ListOf(STRING, "set"), Zero.DROP),
    },
)
POINT = Shape("test.Point", {"x": Field(INTEGER, Zero.KEEP), "y": Field(INTEGER, Zero.KEEP)}, atomic=True)
SPEC = Shape(
    "test.Spec",
    {
        "size": Field(INTEGER, Zero.KEEP),
        "ports": Field(ListOf(PORT, "map", ("port", "protocol")), Zero.DROP, patch_strategy="merge", merge_key="port"),
        "tags": Field(ListOf(STRING, "set"), Zero.DROP, patch_strategy="merge"),
        "steps": Field(ListOf(STRING), Zero.DROP),
        "selector": Field(MapOf(STRING, atomic=True), Zero.DROP),
        "limits": Field(MapOf(STRING), Zero.DROP),
        "points": Field(MapOf(PORT), Zero.DROP),
        "corner": Field(POINT, Zero.KEEP),
    },
)
META = Shape(
    "test.Meta",
    {
        "name": Field(STRING, Zero.DROP),
        "labels": Field(MapOf(STRING), Zero.DROP),
        "finalizers": Field(ListOf(STRING, "set"), Zero.DROP, patch_strategy="merge"),
        "managedFields": Field(ListOf(Scalar("any")), Zero.DROP),
    },
)
STATUS = Shape("test.Status", {"phase": Field(STRING, Zero.DROP)})
THING = Shape(
    "test.Thing",
    {
        "apiVersion": Field(STRING, Zero.DROP),
        "kind": Field(STRING, Zero.DROP),
        "metadata": Field(META, Zero.FILL),
        "spec": Field(SPEC, Zero.FILL),
        "status": Field(STATUS, Zero.FILL),
    },
)


class ThingKind(Kind):
    resource = Resource("", "v1", "things", "Thing")
    singular = "thing"
    shape = THING


THINGS = ThingKind()
_KINDS = Kinds()


def kind_named(name: str) -> Kind:
    """The kind with a shape like ``core.v1.ConfigMap``."""
    return next(kind for kind in _KINDS if kind.shape.name == f"io.k8s.api.{name}")


def part_of(kind: Kind, subresource: str) -> Part:
    part = kind.subresource(subresource) if subresource else kind.whole
    assert isinstance(part, Part)
    return part


# Lists and maps are never empty below: empty ones are not stored, so that they come and go by themselves.
letters = st.sampled_from("abcd")
numbers = st.integers(0, 2)
tags = st.lists(letters, min_size=1, max_size=3, unique=True)


def _unique(ports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({(port["port"], port.get("protocol", "TCP")): port for port in ports}.values())


ports_values = st.fixed_dictionaries(
    {"port": numbers}, optional={"protocol": st.sampled_from(["TCP", "UDP"]), "name": letters, "tags": tags}
)
specs = st.fixed_dictionaries(
    {},
    optional={
        "size": numbers,
        "ports": st.lists(ports_values, min_size=1, max_size=3).map(_unique),
        "tags": tags,
        "steps": st.lists(letters, min_size=1, max_size=2),
        "selector": st.dictionaries(letters, letters, min_size=1, max_size=2),
        "limits": st.dictionaries(letters, letters, min_size=1, max_size=3),
        "points": st.dictionaries(letters, ports_values, min_size=1, max_size=2),
        "corner": st.fixed_dictionaries({"x": numbers}, optional={"y": numbers}),
    },
)
metas = st.fixed_dictionaries(
    {"name": st.just("thing")},
    optional={
        "labels": st.dictionaries(letters, letters, min_size=1, max_size=3),
        "finalizers": tags,
    },
)
things = st.builds(
    lambda metadata, spec: {"apiVersion": "v1", "kind": "Thing", "metadata": metadata, "spec": spec}, metas, specs
)
