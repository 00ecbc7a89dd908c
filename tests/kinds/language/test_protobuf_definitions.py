"""CustomResourceDefinitions in protobuf: schemas contain themselves, and some of their fields have several types."""

import struct

import pytest

from protobuf_wire import envelope, member, varint
from seamark.kinds.language import protobuf, shapes

DEFINITION = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
SCHEMA = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
TEXT = member(5, b"string")


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def entry(number, key, value):
    return member(number, member(1, key) + member(2, value))


@pytest.mark.parametrize(
    ("message", "schema"),
    [
        (TEXT, {"type": "string"}),
        (member(5, b"object") + entry(29, b"a", entry(29, b"b", TEXT)), {
            "type": "object", "properties": {"a": {"properties": {"b": {"type": "string"}}}},
        }),
        (member(24, member(1, TEXT)), {"items": {"type": "string"}}),
        (member(24, member(1, b"")), {"items": {}}),
        (member(24, member(2, TEXT) + member(2, b"")), {"items": [{"type": "string"}, {}]}),
        (member(30, member(1, 1)), {"additionalProperties": True}),
        (member(33, member(1, 0)), {"additionalItems": False}),
        (member(30, member(1, 1) + member(2, TEXT)), {"additionalProperties": {"type": "string"}}),
        (entry(32, b"a", member(2, b"b") + member(2, b"c")), {"dependencies": {"a": ["b", "c"]}}),
        (entry(32, b"a", member(1, TEXT)), {"dependencies": {"a": {"type": "string"}}}),
        (member(8, member(1, b'{"x":[1]}')), {"default": {"x": [1]}}),
        (member(20, member(1, b'"a"')) + member(20, member(1, b"null")), {"enum": ["a", None]}),
        (double(9, 10.0) + double(11, -0.5), {"maximum": 10, "minimum": -0.5}),
        (member(38, 1) + member(18, 0), {"x-kubernetes-preserve-unknown-fields": True}),
        (member(44, member(1, b"self.a") + member(4, b"FieldValueInvalid")), {
            "x-kubernetes-validations": [{"rule": "self.a", "reason": "FieldValueInvalid"}],
        }),
        (member(27, TEXT) + member(27, member(28, TEXT)), {"anyOf": [{"type": "string"}, {"not": {"type": "string"}}]}),
    ],
)  # fmt: skip
def test_schemas(message, schema):
    assert protobuf.read(message, shapes.of(SCHEMA)) == schema


def test_a_definition():
    version = member(1, b"v1") + member(2, 1) + member(3, 1) + member(4, member(1, TEXT)) + member(9, member(1, b".a"))
    names = member(1, b"es") + member(4, b"E")
    spec = member(1, b"example.com") + member(3, names) + member(4, b"Namespaced") + member(7, version)
    message = member(1, member(1, b"es.example.com")) + member(2, spec)
    sent = envelope("apiextensions.k8s.io/v1", "CustomResourceDefinition", message)
    assert protobuf.unwrap(sent)[1] == "CustomResourceDefinition"
    assert protobuf.read(message, shapes.of(DEFINITION)) == {
        "metadata": {"name": "es.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "es", "kind": "E"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "string"}},
                    "selectableFields": [{"jsonPath": ".a"}],
                }
            ],
        },
    }


@pytest.mark.parametrize("cut", [1, 5, 8])
def test_a_number_that_ends_too_soon(cut):
    with pytest.raises(protobuf.ProtobufError, match="unexpected EOF"):
        protobuf.read(double(9, 10.0)[:-cut], shapes.of(SCHEMA))


def test_schemas_in_schemas_without_end():
    message = b""
    for _ in range(5000):
        message = member(28, message)
    with pytest.raises(protobuf.ProtobufError, match="nested too deeply"):
        protobuf.read(message, shapes.of(SCHEMA))
