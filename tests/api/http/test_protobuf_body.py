"""Protobuf bodies mean what the same object means in JSON; Google's own library writes them here."""

from __future__ import annotations

import binascii
import json
from functools import cache
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import assume, given
from hypothesis import strategies as st

from protobuf_wire import envelope, member, members, varint
from seamark import errors
from seamark.api import intake
from seamark.api.http import body
from seamark.api.http.negotiate import NONE, negotiate
from seamark.errors import Invalid
from seamark.kinds.kind import Kind
from seamark.kinds.language import protobuf, shapes
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type, Zero
from seamark.kinds.pod.binding import BIND, EVICT
from seamark.kinds.table import KINDS, NEVER_STORED
from seamark.kinds.values import times
from seamark.kinds.workloads.scale import SCALE

CORE = "io.k8s.api.core.v1."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
# Groups with fields whose numbers are not known.  They are answered in JSON.
INCOMPLETE = ("io.k8s.api.resource.v1.", "io.k8s.api.scheduling.v1alpha3.")
# Schemas in definitions have fields of several types: tests/kinds/language/test_protobuf_definitions.py
DEFINITIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
DELETE_OPTIONS = META + "DeleteOptions"
EVERY_KIND = {
    f"{kind.resource.api_version} {kind.resource.kind}": kind
    for kind in (*KINDS, *NEVER_STORED)
    if not kind.shape_name.startswith(DEFINITIONS)
}
ONLY_REQUESTS = {kind.resource.kind: kind for kind in (BIND.sent, EVICT.sent, SCALE.sent)}


def kind_of(name: str) -> Kind:
    return EVERY_KIND[name]


# --- numbers ---------------------------------------------------------------------------------------

# Only lists in answers have the first two; the third belongs to a subresource that is not served.
SCHEDULING = ("disruptionMode", "resourceClaims", "schedulingConstraints", "schedulingPolicy")
OF_SEVERAL_TYPES = ("additionalItems", "additionalProperties", "dependencies", "items")
WITHOUT_NUMBERS = {
    META + "ListMeta.shardInfo",
    META + "ShardInfo.selector",
    "io.k8s.api.authentication.v1.TokenRequestSpec.attestations",
    "io.k8s.api.batch.v1.JobSpec.scheduling",
    *(f"io.k8s.api.batch.v1.JobSchedulingConfiguration.{name}" for name in SCHEDULING),
    *(f"{DEFINITIONS}JSONSchemaProps.{name}" for name in OF_SEVERAL_TYPES),
}


def test_every_field_has_a_number() -> None:
    missing = set()
    for name in shapes.load():
        if name.startswith(INCOMPLETE):
            continue
        fields = shapes.of(name).fields
        # The envelope has them.  Where they are about something else, they have numbers.
        in_envelope = {"apiVersion", "kind"} if name in shapes.load().kinds.values() or name.endswith("List") else set()
        missing |= {f"{name}.{field}" for field in fields.keys() - in_envelope if not fields[field].numbers}
    assert missing - {META + "Status.apiVersion", META + "Status.kind"} == WITHOUT_NUMBERS


# --- Google's library, taught our messages ---------------------------------------------------------

FieldType = descriptor_pb2.FieldDescriptorProto
SIMPLE = {
    "string": FieldType.TYPE_STRING,
    "bytes": FieldType.TYPE_BYTES,
    "int32": FieldType.TYPE_INT32,
    "int64": FieldType.TYPE_INT64,
    "bool": FieldType.TYPE_BOOL,
}
SMALL = {
    "time": {"seconds": (1, "int64"), "nanos": (2, "int32")},
    "microtime": {"seconds": (1, "int64"), "nanos": (2, "int32")},
    "quantity": {"string": (1, "string")},
    "int-or-string": {"type": (1, "int64"), "intVal": (2, "int32"), "strVal": (3, "string")},
    "any": {"raw": (1, "bytes")},
}


class Library:
    """Message classes made from shapes; a flattened struct is a message named after its place."""

    def __init__(self) -> None:
        self._file = descriptor_pb2.FileDescriptorProto(name="seamark.proto", package="k", syntax="proto2")
        self._messages: dict[str, Any] = {}
        for name, fields in SMALL.items():
            message = self._message(name)
            for field, (number, type_) in fields.items():
                message.field.add(name=field, number=number, type=SIMPLE[type_], label=FieldType.LABEL_OPTIONAL)
        self._message("strings").field.add(
            name="items", number=1, type=FieldType.TYPE_STRING, label=FieldType.LABEL_REPEATED
        )
        for name in shapes.load():
            if not name.startswith(DEFINITIONS):
                self._add_shape(shapes.of(name))
        pool = descriptor_pool.DescriptorPool()
        pool.Add(self._file)
        self.classes = {
            name: message_factory.GetMessageClass(pool.FindMessageTypeByName("k." + identifier(name)))
            for name in self._messages
        }

    def _message(self, name: str) -> Any:
        if name not in self._messages:
            self._messages[name] = self._file.message_type.add(name=identifier(name))
        return self._messages[name]

    def _add_shape(self, shape: Shape) -> None:
        self._message(shape.name)
        for field, facts in shape.fields.items():
            place = shape.name
            for number in facts.numbers[:-1]:
                outer, place = self._message(place), f"{place}.{number}"
                if not any(known.number == number for known in outer.field):
                    self._declare(outer, f"inner{number}", number, place)
            if facts.numbers:
                self._declare_typed(self._message(place), field, facts.numbers[-1], facts.type)

    def _declare_typed(self, message: Any, name: str, number: int, type_: Type) -> None:
        if isinstance(type_, ListOf):
            self._declare(message, name, number, type_name(type_.of), label=FieldType.LABEL_REPEATED)
        elif isinstance(type_, MapOf):
            entry = message.nested_type.add(name=name[0].upper() + name[1:] + "Entry")
            entry.options.map_entry = True
            self._declare(entry, "key", 1, "string")
            self._declare(entry, "value", 2, type_name(type_.of))
            path = f".k.{message.name}.{entry.name}"
            message.field.add(
                name=name, number=number, type=FieldType.TYPE_MESSAGE, label=FieldType.LABEL_REPEATED, type_name=path
            )
        else:
            self._declare(message, name, number, type_name(type_))

    def _declare(self, message: Any, name: str, number: int, type_: str, label: Any = FieldType.LABEL_OPTIONAL) -> None:
        if type_ in SIMPLE:
            message.field.add(name=name, number=number, type=SIMPLE[type_], label=label)
        else:
            path = ".k." + identifier(type_)
            message.field.add(name=name, number=number, type=FieldType.TYPE_MESSAGE, label=label, type_name=path)


def identifier(name: str) -> str:
    return name.replace(".", "_").replace("-", "_")


def type_name(type_: Type) -> str:
    if isinstance(type_, ListOf):  # inside a map
        return "strings"
    assert isinstance(type_, Scalar | Shape)
    return type_.name


@cache
def library() -> Library:
    return Library()


def write(value: Any, shape: Shape) -> bytes:
    message = library().classes[shape.name]()
    fill(message, value, shape)
    written: bytes = message.SerializeToString()
    return written


def fill(message: Any, value: Any, shape: Shape) -> None:
    message.SetInParent()
    for name, item in value.items():
        field, inside = shape.fields[name], message
        for number in field.numbers[:-1]:
            inside = getattr(inside, f"inner{number}")
        if isinstance(field.type, ListOf):
            put_list(getattr(inside, name), item, field.type.of)
        elif isinstance(field.type, MapOf):
            put_map(getattr(inside, name), item, field.type.of)
        elif isinstance(field.type, Scalar) and field.type.name in SIMPLE:
            setattr(inside, name, simple(item, field.type.name))
        else:
            put(getattr(inside, name), item, field.type)


def put_list(into: Any, items: Any, of: Type) -> None:
    for item in items:
        if isinstance(of, Scalar):
            into.append(simple(item, of.name))
        else:
            put(into.add(), item, of)


def put_map(into: Any, items: Any, of: Type) -> None:
    for key, item in items.items():
        if isinstance(of, Scalar) and of.name in SIMPLE:
            into[key] = simple(item, of.name)
        elif isinstance(of, ListOf):
            into[key].items.extend(item)
        else:
            put(into[key], item, of)


def simple(value: Any, name: str) -> Any:
    return binascii.a2b_base64(value) if name == "bytes" else value


def put(message: Any, value: Any, type_: Type) -> None:
    """A value that is a message of its own."""
    if isinstance(type_, Shape):
        fill(message, value, type_)
        return
    assert isinstance(type_, Scalar)
    message.SetInParent()
    match type_.name:
        case "quantity":
            message.string = value
        case "int-or-string":
            message.type, message.intVal, message.strVal = (1, 0, value) if isinstance(value, str) else (0, value, "")
        case "any":
            message.raw = json.dumps(value).encode()
        case "time" | "microtime":
            seconds = times.parse(value)
            message.seconds, message.nanos = int(seconds // 1), round(seconds % 1 * 1e6) * 1000


# --- the same object, both ways --------------------------------------------------------------------

SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    "bytes": st.binary(max_size=4).map(lambda raw: binascii.b2a_base64(raw, newline=False).decode()),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "bool": st.booleans(),
    "time": st.integers(0, 2**32).map(times.text),
    "microtime": st.integers(0, 2**41).map(lambda micros: times.micro_text(micros / 10**6)),
    "quantity": st.sampled_from(["0", "1", "100m", "1.5Gi", "1e3", "-7Ki", "0.0001"]),
    "int-or-string": st.integers(-5, 70000) | st.text("ab%1", max_size=3),
    "any": st.dictionaries(st.text("ab.", max_size=2), st.none() | st.integers(-5, 5) | st.just({}), max_size=2),
}


def values(type_: Type, depth: int = 5) -> st.SearchStrategy[Any]:
    if isinstance(type_, Scalar):
        return SCALARS[type_.name]
    if isinstance(type_, ListOf):
        return st.lists(values(type_.of, depth), max_size=2)
    if isinstance(type_, MapOf):
        # Protobuf does not tell an empty list in a map from none at all.
        items = values(type_.of, depth).filter(lambda item: item != [])
        return st.dictionaries(SCALARS["string"], items, max_size=2)
    if depth == 0:
        return st.just({})
    numbered = sorted(name for name, field in type_.fields.items() if field.numbers)
    if not numbered:
        return st.just({})
    return st.lists(st.sampled_from(numbered), max_size=4, unique=True).flatmap(
        lambda names: st.fixed_dictionaries({name: values(type_.fields[name].type, depth - 1) for name in names})
    )


def as_go_writes(value: Any, shape: Shape) -> Any:
    """With the fields Go writes even if they are empty: all that are no pointers, lists or maps."""
    out = dict(value)
    for name, field in shape.fields.items():
        plain = bool(field.numbers) and field.zero in (Zero.DROP, Zero.FILL)
        if isinstance(field.type, Shape) and (name in out or plain):
            out[name] = as_go_writes(out.get(name, {}), field.type)
        elif isinstance(field.type, Scalar) and field.type.name in ("string", "int32", "int64", "bool") and plain:
            out.setdefault(name, {"string": "", "bool": False}.get(field.type.name, 0))
    return out


def read(raw: bytes, kind: Kind, content_type: str = body.PROTOBUF) -> Any:
    return intake.conformed(body.read(raw, content_type, kind), kind, "Strict")


@given(st.data())
def test_protobuf_means_what_json_means(data: st.DataObject) -> None:
    kind = EVERY_KIND[data.draw(st.sampled_from(sorted(EVERY_KIND)))]
    shape = kind.shape
    value = data.draw(values(shape))
    # JSON keeps an empty list of an Ingress's rules, for the sentence that refuses it; protobuf has no empty lists.
    assume(kind.resource.kind != "Ingress" or value.get("spec", {}).get("rules") != [])
    written = as_go_writes(value, shape) if data.draw(st.booleans()) else value
    wrapped = envelope(kind.resource.api_version, kind.resource.kind, write(written, shape))
    assert read(wrapped, kind) == read(json.dumps(value).encode(), kind, body.JSON)


@pytest.mark.parametrize("kind", ONLY_REQUESTS)
@given(data=st.data())
def test_so_do_kinds_that_are_only_requests(kind: str, data: st.DataObject) -> None:
    sent = ONLY_REQUESTS[kind]
    value = data.draw(values(sent.shape))
    wrapped = envelope(sent.resource.api_version, kind, write(value, sent.shape))
    assert read(wrapped, sent) == read(json.dumps(value).encode(), sent, body.JSON)


def delete_options(raw: bytes, content_type: str = body.PROTOBUF) -> Any:
    """The options, or what is wrong with them."""
    try:
        return body.read_deletion(raw, content_type)
    except Invalid as error:
        return error.message


@pytest.mark.parametrize("api_version", ["v1", "apps/v1", "discovery.k8s.io/v1"])
@given(value=values(shapes.of(DELETE_OPTIONS)))
def test_so_do_the_options_of_a_deletion_whatever_their_group(api_version: str, value: Any) -> None:
    header = {"kind": "DeleteOptions", "apiVersion": api_version}
    wrapped = envelope(api_version, "DeleteOptions", write(value, shapes.of(DELETE_OPTIONS)))
    assert delete_options(wrapped) == delete_options(json.dumps({**header, **value}).encode(), body.JSON)


def test_the_media_type_may_have_parameters_and_the_kind_may_be_left_out() -> None:
    config_map = kind_of("v1 ConfigMap")
    wrapped = envelope("", "", write({"metadata": {"name": "a"}}, config_map.shape))
    assert read(wrapped, config_map, body.PROTOBUF + "; charset=utf-8")[0]["metadata"] == {"name": "a"}


# --- peculiar, but right ---------------------------------------------------------------------------


def pod(message: bytes) -> Any:
    return read(envelope("v1", "Pod", message), kind_of("v1 Pod"))[0]


def test_a_message_in_two_parts_is_one_and_the_last_value_counts() -> None:
    first = member(1, member(1, b"first") + member(3, b"here"))
    assert pod(first + member(1, member(1, b"second")))["metadata"] == {"name": "second", "namespace": "here"}
    assert pod(first + member(1, member(3, b"")))["metadata"] == {"name": "first"}


def test_integers_wrap_as_in_go() -> None:
    service = kind_of("v1 Service")
    ports = member(2, member(1, member(3, 2**32 + 80)) + member(1, member(3, -(2**31))) + member(1, member(3, -1)))
    read_ports = read(envelope("v1", "Service", ports), service)[0]["spec"]["ports"]
    assert [port["port"] for port in read_ports] == [80, -(2**31), -1]
    options = envelope("v1", "DeleteOptions", member(1, -(2**63)))
    assert delete_options(options).grace_seconds == -(2**63)


def test_the_zero_time_is_no_time() -> None:
    assert pod(member(3, member(7, b"")))["status"] == {}
    assert pod(member(3, member(7, member(1, -62135596800))))["status"] == {}
    assert pod(member(3, member(7, member(1, 0))))["status"] == {"startTime": "1970-01-01T00:00:00Z"}


def test_managed_fields_and_revisions_hold_json() -> None:
    entry = member(1, b"m") + member(6, b"FieldsV1") + member(7, member(1, b'{"f:spec":{}}'))
    assert pod(member(1, member(17, entry)))["metadata"]["managedFields"][0]["fieldsV1"] == {"f:spec": {}}
    revision = envelope("apps/v1", "ControllerRevision", member(2, member(1, b'{"spec":[1]}')) + member(3, 7))
    read_revision = read(revision, kind_of("apps/v1 ControllerRevision"))[0]
    assert (read_revision["data"], read_revision["revision"]) == ({"spec": [1]}, 7)


# --- what cannot be read ---------------------------------------------------------------------------


def refused(raw: bytes, kind: str = "v1 Pod") -> str:
    with pytest.raises(errors.BadRequest) as caught:
        read(raw, kind_of(kind))
    return caught.value.message


UNRECOGNIZED = "the object provided is unrecognized (must be of type Pod): "


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "empty data (<empty>)"),
        (b"k8s\x00", "empty body (6b387300)"),
        (b"k8s", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (6b3873)"),
        (b"k8s\x00\x0a\x05v", "unexpected EOF (6b3873000a0576)"),
        (b"k8s\x00" + b"\xff" * 12, f"proto: integer overflow (6b387300{'ff' * 12})"),
    ],
)
def test_without_an_envelope_nothing_is_known(raw: bytes, sentence: str) -> None:
    assert refused(raw) == UNRECOGNIZED + sentence


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        (member(2, b"\x52"), "unexpected EOF"),
        (b"\x12\x05", "unexpected EOF"),
        (member(2, b"\x52\x80") + member(3, b""), "unexpected EOF"),  # its length ends in the next field
        (b"\x02\x00", "proto: illegal tag 0 (wire type 2)"),
        (b"\xa3\xf1\x04", "proto: illegal wireType 3"),
        (member(2, 7), "proto: wrong wireType = 0 for field spec"),
        (member(2, member(4, b"30")), "proto: wrong wireType = 2 for field terminationGracePeriodSeconds"),
        (member(2, member(10, b"\xff")), "a text is not UTF-8"),
        (member(1, member(8, member(1, 2**62))), "time out of range"),
        (member(1, member(17, member(7, member(1, b"{")))), "a free-form value is not JSON"),
        (member(1, member(17, member(7, member(1, b"[" * 5000)))), "a free-form value is not JSON"),
    ],
)
def test_a_bad_message_is_told_with_its_kind(message: bytes, sentence: str) -> None:
    assert refused(envelope("v1", "Pod", message)) == f'Pod in version "v1" cannot be handled as a Pod: {sentence}'


def test_a_quantity_must_be_one() -> None:
    limits = member(1, member(1, b"cpu") + member(2, member(1, b"many")))
    assert "quantities must match" in refused(envelope("v1", "Pod", member(2, member(2, member(8, limits)))))


def test_other_kinds_are_refused() -> None:
    assert refused(envelope("v1", "Secret", b"\xff")).endswith(
        "converting (v1.Secret) to (core.Pod): unknown conversion"
    )
    assert 'no kind "Pod" is registered for version "v2"' in refused(envelope("v2", "Pod", b""))
    assert "unexpected GroupVersion string: a/b/c" in refused(envelope("a/b/c", "Pod", b""))
    with pytest.raises(errors.BadRequest, match='no kind "Pod" is registered'):
        delete_options(envelope("v1", "Pod", b""))


POD = write(
    as_go_writes(
        {
            "metadata": {"name": "web", "labels": {"app": "web"}, "creationTimestamp": "2026-01-02T03:04:05Z"},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}}}],
                "securityContext": {"supplementalGroups": [1, 2**40]},
                "volumes": [{"name": "v", "configMap": {"name": "m"}}],
            },
        },
        shapes.of(CORE + "Pod"),
    ),
    shapes.of(CORE + "Pod"),
)
SENT = envelope("v1", "Pod", POD)


def whole(message: bytes) -> set[int]:
    """The sizes at which a message may end."""
    sizes = [len(member(number, value)) for number, value in members(message)]
    return {sum(sizes[:count]) for count in range(len(sizes) + 1)}


def test_a_message_cut_short_is_refused() -> None:
    for size in set(range(len(POD))) - whole(POD):
        assert refused(envelope("v1", "Pod", POD[:size])).endswith(": unexpected EOF"), size


def test_an_envelope_cut_short_is_refused() -> None:
    start = len(protobuf.MAGIC)
    for size in set(range(start + 1, len(SENT))) - {start + end for end in whole(SENT[start:])}:
        assert refused(SENT[:size]).startswith(UNRECOGNIZED + "unexpected EOF"), size


@given(st.lists(st.tuples(st.integers(0, len(SENT) - 1), st.integers(0, 255)), min_size=1, max_size=5))
def test_a_damaged_body_is_an_object_or_a_bad_request(damage: list[tuple[int, int]]) -> None:
    raw = bytearray(SENT)
    for position, byte in damage:
        raw[position] = byte
    try:
        obj, _ = read(bytes(raw), kind_of("v1 Pod"))
    except errors.BadRequest:
        return
    json.dumps(obj).encode()


@given(st.sampled_from(sorted(EVERY_KIND)), st.binary(max_size=200))
def test_any_message_is_an_object_or_a_bad_request(name: str, message: bytes) -> None:
    kind = EVERY_KIND[name]
    try:
        obj, _ = read(envelope(kind.resource.api_version, kind.resource.kind, message), kind)
    except errors.BadRequest:
        return
    assert (obj["apiVersion"], obj["kind"]) == (kind.resource.api_version, kind.resource.kind)


# --- media types -----------------------------------------------------------------------------------


def test_other_types_are_told_what_is_accepted() -> None:
    with pytest.raises(errors.UnsupportedMediaType) as caught:
        body.format_of("text/plain")
    assert caught.value.message == (
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    )


def test_answers_are_json_for_those_who_take_it() -> None:
    assert negotiate(f"{body.PROTOBUF},application/json", NONE).content_type == "application/json"
    with pytest.raises(errors.NotAcceptable):
        negotiate(body.PROTOBUF, NONE)


def test_packed_integers_are_read_too() -> None:
    context = member(14, member(4, varint(1) + varint(2**40) + varint(-1)))
    assert pod(member(2, context))["spec"]["securityContext"] == {"supplementalGroups": [1, 2**40, -1]}
