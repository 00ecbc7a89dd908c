"""Protobuf bodies: what kubectl really sends, and every field of every kind there and back."""

from __future__ import annotations

import binascii
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_objects import KINDS, values

from protobuf_wire import member, varint
from seamark.kinds.language import protobuf, shapes
from seamark.kinds.language.decode import conform
from seamark.kinds.language.protobuf import ProtobufError
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type
from seamark.kinds.values import times

CORE = "io.k8s.api.core.v1."


# --- what kubectl 1.32 sends for `kubectl create deployment | service nodeport | secret` --------------

SENT = {
    "io.k8s.api.apps.v1.Deployment": (
        "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412b0010a1b0a016412001a0022002a003200380042005a"
        "080a036170701201641282010803120a0a080a036170701201641a6a0a1a0a0012001a0022002a003200380042005a080a03"
        "617070120164124c122e0a056e67696e7812056e67696e782a00320a0a001000185022002a0042006a007200800100880100"
        "900100a201001a00320042004a0052005800600068008201008a01009a0100c2010022020a00280038001a0c080010001800"
        "2000280038001a002200"
    ),
    CORE + "Service": (
        "6b3873000a0d0a02763112075365727669636512640a1b0a016e12001a0022002a003200380042005a080a0361707012016e"
        "12410a1d0a0738302d38303830120354435018502207080010903f1a0028b0ea0112080a0361707012016e1a0022084e6f64"
        "65506f72743a00420052005a00600068001a020a001a002200"
    ),
    CORE + "Secret": (
        "6b3873000a0c0a0276311206536563726574121d0a110a017312001a0022002a0032003800420012060a01611201621a001a002200"
    ),
}


def sent(name: str) -> Any:
    api_version, kind, message = protobuf.unwrap(bytes.fromhex(SENT[name]))
    assert shapes.load().kinds[api_version, kind] == name
    return conform(protobuf.read(message, shapes.of(name)), shapes.of(name))


def test_a_deployment_as_kubectl_creates_it() -> None:
    assert sent("io.k8s.api.apps.v1.Deployment") == (
        {
            "metadata": {"name": "d", "labels": {"app": "d"}},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "d"}},
                "strategy": {},
                "template": {
                    "metadata": {"labels": {"app": "d"}},
                    "spec": {
                        "containers": [
                            {"name": "nginx", "image": "nginx", "ports": [{"containerPort": 80}], "resources": {}}
                        ],
                    },
                },
            },
            "status": {},
        },
        [],
    )


def test_a_service_as_kubectl_creates_it() -> None:
    port = {"name": "80-8080", "protocol": "TCP", "port": 80, "targetPort": 8080, "nodePort": 30000}
    assert sent(CORE + "Service")[0] == {
        "metadata": {"name": "n", "labels": {"app": "n"}},
        "spec": {"ports": [port], "selector": {"app": "n"}, "type": "NodePort"},
        "status": {"loadBalancer": {}},
    }


def test_a_secret_as_kubectl_creates_it() -> None:
    assert sent(CORE + "Secret")[0] == {"metadata": {"name": "s"}, "data": {"a": "Yg=="}}


# --- there and back --------------------------------------------------------------------------------


def scalar(value: Any, name: str) -> int | bytes:
    if name in ("int32", "int64", "bool"):
        return int(value)
    if name == "string":
        return value.encode()
    if name == "bytes":
        return binascii.a2b_base64(value)
    if name == "quantity":
        return member(1, str(value).encode())
    if name == "int-or-string":
        text = isinstance(value, str)
        return member(1, int(text)) + (member(3, value.encode()) if text else member(2, value))
    if name == "any":
        return member(1, json.dumps(value).encode())
    seconds = times.parse(value)
    return member(1, int(seconds // 1)) + member(2, round(seconds % 1 * 1e6) * 1000)


def encode(value: Any, type_: Type) -> int | bytes:
    if isinstance(type_, Scalar):
        return scalar(value, type_.name)
    if isinstance(type_, ListOf):  # inside a map
        return b"".join(member(1, encode(item, type_.of)) for item in value)
    assert isinstance(type_, Shape)
    return message(value, type_)


def message(value: Any, shape: Shape) -> bytes:
    out = b""
    for name, item in value.items():
        field = shape.fields[name]
        if item is None or not field.numbers:
            continue
        *outer, number = field.numbers
        if isinstance(field.type, ListOf):
            written = b"".join(member(number, encode(e, field.type.of)) for e in item if e is not None)
        elif isinstance(field.type, MapOf):
            of = field.type.of
            entries = [
                member(1, k.encode()) + (member(2, encode(v, of)) if v is not None else b"") for k, v in item.items()
            ]
            written = b"".join(member(number, entry) for entry in entries)
        else:
            written = member(number, encode(item, field.type))
        for step in reversed(outer):
            written = member(step, written)
        out += written
    return out


def representable(value: Any, type_: Type) -> Any:
    """The value without what protobuf cannot tell: nulls in lists, unknown numbers, apiVersion and kind."""
    if isinstance(type_, ListOf):
        return [representable(item, type_.of) for item in value if item is not None]
    if isinstance(type_, MapOf):
        return {k: None if v is None else representable(v, type_.of) for k, v in value.items()}
    if isinstance(type_, Shape):
        kept = {k: v for k, v in value.items() if v is not None and type_.fields[k].numbers}
        return {k: representable(v, type_.fields[k].type) for k, v in kept.items()}
    return value


@given(st.sampled_from(KINDS).flatmap(lambda name: values(shapes.of(name)).map(lambda value: (name, value))))
def test_what_is_written_is_read(given_: tuple[str, Any]) -> None:
    name, value = given_
    shape = shapes.of(name)
    read = protobuf.read(message(value, shape), shape)
    assert conform(read, shape) == conform(representable(value, shape), shape)


# --- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(shapes.load()))
def test_no_two_fields_have_the_same_number(name: str) -> None:
    numbers = [field.numbers for field in shapes.of(name).fields.values() if field.numbers]
    assert len(numbers) == len(set(numbers))
    inner = {numbers[:-1] for numbers in numbers}
    assert not inner & set(numbers)


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        (CORE + "Volume.emptyDir", (2, 2)),
        (CORE + "Probe.httpGet", (1, 2)),
        (CORE + "EphemeralContainer.targetContainerName", (2,)),
        (CORE + "ConfigMapKeySelector.name", (1, 1)),
        (CORE + "ServiceSpec.clusterIPs", (18,)),
        ("io.k8s.api.discovery.v1.Endpoint.nodeName", (6,)),
        (CORE + "Service.kind", ()),
    ],
)
def test_some_numbers_everybody_knows(name: str, numbers: tuple[int, ...]) -> None:
    shape, _, field = name.rpartition(".")
    assert shapes.of(shape).fields[field].numbers == numbers


# --- bad bytes -------------------------------------------------------------------------------------

ENVELOPE = protobuf.MAGIC + member(1, member(1, b"v1") + member(2, b"Pod"))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00\x0a\xff",
        b"k8s\x00" + b"\xff" * 11,
        b"k8s\x00\x0b",
        b"k8s\x00\x08\x01",
        ENVELOPE + member(2, member(2, member(1, member(1, b"\xff")))),  # a name that is no text
        ENVELOPE + member(2, member(2, 7)),
        ENVELOPE + member(2, member(1, member(8, member(1, 2**62)))),  # a time beyond all calendars
        ENVELOPE + member(2, member(1, member(17, member(7, member(1, b"{"))))),
    ],
)
def test_bad_bytes_are_refused(body: bytes) -> None:
    with pytest.raises(ProtobufError):
        protobuf.read(protobuf.unwrap(body)[2], shapes.of(CORE + "Pod"))


@given(st.binary(max_size=60))
def test_any_bytes_are_an_object_or_an_error(raw: bytes) -> None:
    for name in KINDS:
        try:
            protobuf.read(raw, shapes.of(name))
        except ProtobufError:
            continue


UNKNOWN = [
    member(9999, b"x"),
    member(9998, 2**40),
    varint(9997 << 3 | 1) + bytes(8),
    varint(9996 << 3 | 5) + bytes(4),
]


def test_unknown_fields_are_skipped() -> None:
    unknown = b"".join(UNKNOWN)
    spec = member(2, unknown + member(10, b"node-a") + unknown)
    assert protobuf.read(unknown + spec + unknown, shapes.of(CORE + "Pod")) == {"spec": {"nodeName": "node-a"}}


@pytest.mark.parametrize("field", UNKNOWN)
def test_unknown_fields_are_whole(field: bytes) -> None:
    for size in range(1, len(field)):
        with pytest.raises(ProtobufError, match="unexpected EOF"):
            protobuf.read(member(2, field[:size]) + member(3, b"." * 20), shapes.of(CORE + "Pod"))


def test_packed_numbers() -> None:
    context = shapes.of(CORE + "PodSecurityContext")
    number = context.fields["supplementalGroups"].numbers[0]
    packed = protobuf.read(member(number, varint(1) + varint(300) + varint(-1)), context)
    assert packed == {"supplementalGroups": [1, 300, -1]}
