"""What OpenAPI says of custom resources: in v3 all their schemas say, in v2 what its clients can take."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seamark.api.openapi.documents import OpenApi
from seamark.kinds.extensions.custom import kinds_of

NAME = "com.example.v1.Widget"


def published(schema: Any, **more: Any) -> tuple[Any, Any]:
    """The definition in the documents of v2 and v3."""
    names = {"plural": "widgets", "kind": "Widget"}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **more}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    api = OpenApi(kinds_of({"metadata": {"name": "widgets.example.com"}, "spec": spec}))
    old = msgspec.json.decode(api.v2.body)["definitions"][NAME]
    new = msgspec.json.decode(api.v3("example.com", "v1").body)["components"]["schemas"][NAME]
    return old, new


def field(schema: Any) -> tuple[Any, Any]:
    """One field of a definition in both documents."""
    old, new = published({"type": "object", "properties": {"spec": schema}})
    return old["properties"]["spec"], new["properties"]["spec"]


def test_a_root_that_keeps_unknown_fields_is_any_object_in_v2() -> None:
    keeping = {"type": "object", "description": "Any.", "x-kubernetes-preserve-unknown-fields": True}
    old, new = published({**keeping, "properties": {"spec": {"type": "object"}}})
    kind = [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    assert old == {"type": "object", "x-kubernetes-group-version-kind": kind}
    assert new["description"] == "Any."
    assert set(new["properties"]) == {"apiVersion", "kind", "metadata", "spec"}


@pytest.mark.parametrize("keeping", [False, True])
def test_fields_that_selectors_may_name_are_told(keeping: bool) -> None:
    spec = {"type": "object", "properties": {"color": {"type": "string"}, "size": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec}, "x-kubernetes-preserve-unknown-fields": keeping}
    told = [{"fieldPath": "spec.size"}, {"fieldPath": "spec.color"}]
    for shown in published(schema, selectableFields=[{"jsonPath": f".{field['fieldPath']}"} for field in told]):
        assert shown["x-kubernetes-selectable-fields"] == told
    for shown in published(schema):
        assert "x-kubernetes-selectable-fields" not in shown


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({"type": "string", "default": "red", "enum": ["red"]}, {"type": "string", "default": "red", "enum": ["red"]}),
        ({"type": "integer", "anyOf": [{"minimum": 1}], "not": {"maximum": 0}}, {"type": "integer"}),
        ({"type": "string", "nullable": True, "pattern": "a"}, {"pattern": "a"}),
        ({"type": "array", "nullable": True, "items": {"type": "string"}}, {}),
        (
            {"type": "object", "nullable": True, "additionalProperties": {"type": "string"}},
            {"additionalProperties": {"type": "string"}},
        ),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {"type": "string"}}},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        (
            {"type": "array", "x-kubernetes-preserve-unknown-fields": True, "items": {"type": "string"}},
            {"x-kubernetes-preserve-unknown-fields": True},
        ),
        ({"x-kubernetes-int-or-string": True}, {"x-kubernetes-int-or-string": True}),
        (
            {
                "type": "object",
                "required": ["a", "b"],
                "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}},
            },
            {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}},
        ),
        (
            {"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "nullable": True}}},
            {"type": "object", "properties": {"a": {}}},
        ),
        (
            {
                "type": "object",
                "required": ["a"],
                "additionalProperties": {"type": "string", "nullable": True},
            },
            {"type": "object", "additionalProperties": {}},
        ),
    ],
)
def test_v2_leaves_out_what_its_clients_cannot_take(given: Any, shown: Any) -> None:
    old, new = field(given)
    assert (old, new) == (shown, given)


@pytest.mark.parametrize("around", [None, "items", "additionalProperties"])
def test_an_object_inside_has_the_fields_of_every_object(around: str | None) -> None:
    embedded: Any = {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"a": {"type": "string"}}}
    kind = "array" if around == "items" else "object"
    for shown, prefix in zip(
        field(embedded if around is None else {"type": kind, around: embedded}),
        ("#/definitions/", "#/components/schemas/"),
        strict=True,
    ):
        inner = shown if around is None else shown[around]
        assert set(inner["properties"]) == {"a", "apiVersion", "kind", "metadata"}
        assert sorted(inner["required"]) == ["apiVersion", "kind"]
        assert f"{prefix}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta" in str(inner["properties"]["metadata"])


def test_an_object_inside_of_any_kind_has_them_in_v3_only() -> None:
    keeping = {"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    old, new = field({"type": "object", **keeping})
    assert old == keeping
    assert set(new["properties"]) == {"apiVersion", "kind", "metadata"}
