"""Request bodies: bytes → decoded documents, or the 400 or 415 Kubernetes would answer.

    read            a body that is one object: POST, PUT
    read_patch      a JSON, merge or strategic merge patch
    read_applied    the configuration of a server-side apply
    read_deletion   the optional body of DELETE

Fast where it matters: a good JSON body is parsed once by msgspec.  Repeated keys are looked for exactly only when a
count of keys says there may be some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from seamark.api.call import DeleteOptions
from seamark.api.fields.patch import PatchType
from seamark.api.intake import (
    DELETE_OPTIONS,
    MOST_MISTAKES,
    Document,
    MalformedDocument,
    Unframed,
    cannot_handle,
    delete_options_shape,
    deleting,
    unreadable,
    unrecognized,
)
from seamark.errors import BadRequest, UnsupportedMediaType
from seamark.kinds.kind import Kind
from seamark.kinds.language import json_scan, shapes
from seamark.kinds.language.decode import DecodeError
from seamark.kinds.language.scalars import check_depth
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
APPLY = "application/apply-patch+yaml"

Format = Literal["JSON", "YAML", "protobuf"]
_FORMATS: dict[str, Format] = {
    "": "JSON",
    JSON: "JSON",
    YAML: "YAML",
    PROTOBUF: "protobuf",
}


class Body(Document, frozen=True):
    """A document read from a body.  ``repeated`` are sentences about keys that occur twice, if its parser tells.

    Objects of ``built_in`` kinds are read by their types, so that all mistakes are found in the order of the text;
    others are read before their schema is looked at, so that repeated keys come first.
    """

    format: Format = "JSON"
    repeated: Sequence[str] = ()
    built_in: bool = True

    @property
    def json(self) -> bool:
        return self.format == "JSON"

    def mistakes(self, unknown: Sequence[str]) -> list[str]:
        if self.json and _may_repeat_keys(self.body, self.value):
            if self.built_in:
                return _mistakes_in_order(self.body, frozenset(unknown))
            repeated = _mistakes_in_order(self.body, frozenset())
            return [*repeated, *Document.mistakes(self, unknown)][:MOST_MISTAKES]
        return [*self.repeated, *Document.mistakes(self, unknown)][:MOST_MISTAKES]

    def sentence(self, mistakes: Sequence[str]) -> str:
        count = len(self.repeated)
        return Document.sentence(self, [_all_repeated(mistakes[:count]), *mistakes[count:]] if count else mistakes)


def _all_repeated(sentences: Sequence[str]) -> str:
    """One sentence about all the keys that YAML repeats, as strict decoding has it."""
    return "\n  ".join(["yaml: unmarshal errors:", *sentences])


def read(body: bytes, content_type: str, kind: Kind) -> Body:
    """The object in a body, not yet checked against its kind."""
    format = format_of(content_type)
    resource = kind.resource
    try:
        value, repeated = _parse(body, format, resource, kind.shape)
    except MalformedDocument as fault:
        raise unrecognized(fault, resource, body) from fault
    except DecodeError as error:  # protobuf only: its messages are read by shape
        raise BadRequest(cannot_handle(resource.api_version, resource.kind, resource) + str(error)) from error
    return Body(value, body, format, repeated, kind.built_in)


def read_deletion(body: bytes, content_type: str) -> DeleteOptions:
    """The options in the body of a DELETE."""
    try:
        return deleting(_parse(body, format_of(content_type), DELETE_OPTIONS, delete_options_shape())[0])
    except MalformedDocument as fault:
        raise BadRequest(unreadable(fault)) from fault
    except DecodeError as error:
        raise BadRequest(str(error)) from error


def format_of(content_type: str) -> Format:
    """How a body of this media type is written, or a 415.  No type at all means JSON."""
    found = _FORMATS.get(content_type.partition(";")[0].strip().lower())
    if found is None:
        accepted = ", ".join((JSON, YAML, PROTOBUF))
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    return found


def _parse(body: bytes, format: Format, resource: Resource, shape: Shape) -> tuple[Any, list[str]]:
    """The value of a body, and sentences about keys it repeats if its parser tells."""
    if format == "YAML":
        return _parse_yaml(body)
    return (_parse_json(body) if format == "JSON" else _parse_protobuf(body, resource, shape)), []


def _parse_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError as error:
        raise MalformedDocument("the text is not UTF-8") from error
    except RecursionError as error:
        raise MalformedDocument("exceeded max depth") from error
    except (msgspec.MsgspecError, ValueError) as error:
        try:
            json_scan.check(body)
        except json_scan.SyntaxFault as fault:
            raise MalformedDocument(str(fault)) from error
        # JSON, but nothing we can hold: half a surrogate pair, or a number beyond every type.
        raise MalformedDocument(str(error)) from error


def _parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    # Clients send JSON; the YAML parser is loaded for the first one that does not.
    from seamark.kinds.language.yaml_body import YamlFault, read

    try:
        return read(body)
    except YamlFault as fault:
        raise Unframed(str(fault)) from fault


def _parse_protobuf(body: bytes, resource: Resource, shape: Shape) -> Any:
    from seamark.kinds.language import protobuf

    try:
        api_version, kind, message = protobuf.unwrap(body)
    except protobuf.ProtobufError as error:
        raise Unframed(str(error)) from error
    header = {"apiVersion": api_version, "kind": kind}
    another = api_version != resource.api_version and (api_version, kind) in shapes.load().kinds
    if another or kind not in ("", resource.kind):
        return header  # enough to say what is wrong
    try:
        return header | protobuf.read(message, shape)
    except protobuf.ProtobufError as error:
        raise DecodeError(str(error)) from error


# --- repeated keys ---------------------------------------------------------------------------------


def _may_repeat_keys(body: bytes, value: Any) -> bool:
    """Whether the text has more keys than what was read from it.

    Every key has its colon, and colons inside texts are still there when the value is encoded again.
    """
    try:
        return body.count(b":") != msgspec.json.encode(value).count(b":")
    except RecursionError:
        return True  # too deep to encode: only an exact look can tell


def _mistakes_in_order(body: bytes, unknown: frozenset[str]) -> list[str]:
    """Sentences about unknown and repeated fields; what is inside an unknown field is not looked at."""
    mistakes: dict[str, None] = {}
    inside: tuple[str, str] | None = None
    for path, repeated in json_scan.keys(body):
        if inside and path.startswith(inside):
            continue
        if path in unknown:
            inside = f"{path}.", f"{path}["
            mistakes[f'unknown field "{path}"'] = None
        elif repeated:
            mistakes[f'duplicate field "{path}"'] = None
        if len(mistakes) == MOST_MISTAKES:
            break
    # The scan does not look at the end of a very long text.
    mistakes.update(dict.fromkeys(f'unknown field "{path}"' for path in unknown))
    return list(mistakes)[:MOST_MISTAKES]


# --- patches ---------------------------------------------------------------------------------------

_OPERATION_FIELDS = {"op", "path", "from", "value"}


def read_patch(body: bytes, type: PatchType, field_validation: str) -> tuple[Any, Sequence[str]]:
    """The document of a JSON, merge or strategic merge patch.

    Also sentences about keys it repeats, and about fields that an operation of a JSON patch does not have.
    """
    try:
        document = _parse_json(body)
        check_depth(document)
    except (MalformedDocument, DecodeError) as fault:
        raise BadRequest(str(fault) if type == "strategic" else f"error decoding patch: {fault}") from fault
    if field_validation == "Ignore":
        return document, ()
    unknown = _odd_operation_fields(document) if type == "json" else frozenset()
    if not unknown and not _may_repeat_keys(body, document):
        return document, ()
    prefix = "json patch " if type == "json" else ""
    return document, [prefix + sentence for sentence in _mistakes_in_order(body, unknown)]


def _odd_operation_fields(document: Any) -> frozenset[str]:
    operations = document if isinstance(document, list) else []
    return frozenset(
        f"[{i}].{field}"
        for i, operation in enumerate(operations)
        if isinstance(operation, dict)
        for field in operation.keys() - _OPERATION_FIELDS
    )


def read_applied(body: bytes, field_validation: str) -> tuple[Any, Sequence[str]]:
    """What a client applies, and sentences about keys it repeats."""
    try:
        config, repeated = _read_yaml_or_json(body)
        check_depth(config)
    except (MalformedDocument, DecodeError) as fault:
        raise BadRequest(f"error decoding YAML: {fault}") from fault
    if repeated and field_validation == "Strict":
        raise BadRequest(f"error strict decoding YAML: error converting YAML to JSON: {_all_repeated(repeated)}")
    return config, () if field_validation == "Ignore" else repeated


def _read_yaml_or_json(body: bytes) -> tuple[Any, list[str]]:
    """JSON is YAML, but a hundred times faster to read."""
    if _looks_like_json(body):
        try:
            value = _parse_json(body)
        except MalformedDocument:
            return _parse_yaml(body)
        if not _may_repeat_keys(body, value):
            return value, []
    return _parse_yaml(body)


def _looks_like_json(body: bytes) -> bool:
    return body.lstrip()[:1] == b"{"
