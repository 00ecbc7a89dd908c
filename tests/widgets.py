"""A kind that no server has from the beginning: ``widgets.example.com``, to be added and removed while one runs."""

from __future__ import annotations

from typing import Any

from seamark.kinds.dynamic import AGE, DynamicKind, Printed
from seamark.kinds.kind import Column
from seamark.kinds.language import shapes
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import status_of

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
NAME = "com.example.v1.Widget"

SPEC = {
    "size": "int32 keep",
    "color": "string drop",
    "parts": "[]com.example.v1.Part drop map=name",
    "tags": "[]string drop set",
    "options": "any drop",
}
PART = {"name": "string fill required", "count": "int32 keep"}


def shape(spec: dict[str, str] = SPEC) -> Shape:
    """A new shape of Widgets, whose spec has these fields."""
    facts = {
        NAME: {
            "apiVersion": "string drop",
            "kind": "string drop",
            "metadata": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta fill",
            "spec": "com.example.v1.WidgetSpec drop",
            "status": "com.example.v1.WidgetStatus drop",
        },
        "com.example.v1.WidgetSpec": spec,
        "com.example.v1.WidgetStatus": {"phase": "string drop"},
        "com.example.v1.Part": PART,
    }
    found = shapes.Shapes(facts, shapes.load())[NAME]
    found.description = "A Widget is what tests are made of."
    return found


def widget_kind(shape_: Shape | None = None, resource: Resource = WIDGETS, **more: Any) -> DynamicKind:
    columns: dict[str, Any] = {
        "short_names": ("wd",),
        "categories": ("all",),
        "subresources": (status_of("Widget"),),
        "printed": (Printed(Column("Size", "integer"), ("spec", "size")), AGE),
    }
    return DynamicKind(resource, shape_ or shape(), **columns | more)


def widget(name: str, *, metadata: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """An object of it."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": name, **(metadata or {})},
        "spec": spec,
    }
