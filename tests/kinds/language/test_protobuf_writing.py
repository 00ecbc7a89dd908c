"""Protobuf answers: what is written is what the reader of bodies reads, for every field of every kind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from random_objects import KINDS as COMMON
from random_objects import values

from protobuf_wire import members
from seamark.kinds.language import protobuf, shapes
from seamark.kinds.language import protobuf_writing as writing
from seamark.kinds.language.decode import conform
from seamark.kinds.language.shape import Shape
from seamark.kinds.table import KINDS, NEVER_STORED

ALL = sorted(
    name for name in {kind.shape_name for kind in (*KINDS, *NEVER_STORED)} if writing.writable(shapes.of(name))
)


def read(message: bytes, shape: Shape) -> Any:
    return conform(protobuf.read(message, shape), shape)[0]


def without_empty(value: Any) -> Any:
    """Empty lists as nulls: protobuf does not tell them apart; JSON does in maps of lists and fields that keep them."""
    if isinstance(value, dict):
        return {name: without_empty(item) for name, item in value.items()}
    return None if value == [] else value


def without_numbers(value: Any, shape: Shape) -> Any:
    """Of an object the fields that protobuf has: not its apiVersion and kind, which are in the envelope."""
    return {name: item for name, item in value.items() if shape.fields[name].numbers}


@given(st.sampled_from(ALL + COMMON).flatmap(lambda name: values(shapes.of(name)).map(lambda value: (name, value))))
@example(("io.k8s.api.networking.v1.Ingress", {"spec": {"rules": []}}))
def test_what_is_written_is_read(given_: tuple[str, Any]) -> None:
    name, value = given_
    shape = shapes.of(name)
    conformed = without_numbers(conform(without_empty(conform(value, shape)[0]), shape)[0], shape)
    assert read(writing.write(conformed, shape), shape) == conformed


def test_fields_that_json_flattens_are_nested() -> None:
    volume = shapes.of("io.k8s.api.core.v1.Volume")
    message = dict(members(writing.write({"name": "v", "emptyDir": {}}, volume)))
    assert message == {1: b"v", 2: b"\x12\x00"}


def test_a_kind_with_unknown_numbers_is_not_written() -> None:
    assert writing.writable(shapes.of("io.k8s.api.core.v1.Pod"))
    for name in ("resource.v1.ResourceClaim", "authentication.v1.TokenRequest"):
        assert not writing.writable(shapes.of(f"io.k8s.api.{name}"))


@pytest.mark.parametrize(
    ("number", "written"), [(0, b"\0"), (127, b"\x7f"), (128, b"\x80\x01"), (-1, b"\xff" * 9 + b"\x01")]
)
def test_integers(number: int, written: bytes) -> None:
    assert writing.varint(number) == written


@pytest.mark.parametrize(
    "text", ["1970-01-01T00:00:00.000000Z", "1969-12-31T23:59:59.500000Z", "2038-01-19T03:14:07.000001Z"]
)
def test_moments_before_and_after_the_epoch(text: str) -> None:
    lease = shapes.of("io.k8s.api.coordination.v1.Lease")
    given_ = conform({"spec": {"renewTime": text}}, lease)[0]
    assert read(writing.write(given_, lease), lease) == given_


def test_documents_come_in_an_envelope() -> None:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404}
    api_version, kind, message = protobuf.unwrap(writing.document(status))
    assert (api_version, kind) == ("v1", "Status")
    assert protobuf.read(message, shapes.of(shapes.load().kinds["v1", "Status"]))["code"] == 404


def test_metadata_alone() -> None:
    one = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "a"}}
    many = {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [one, one]}
    assert protobuf.unwrap(writing.document(one))[2] == b"\n\x03\n\x01a"
    assert protobuf.unwrap(writing.document(many))[2] == b"\n\x00" + b"\x12\x05\n\x03\n\x01a" * 2
