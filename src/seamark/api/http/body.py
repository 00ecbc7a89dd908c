"""Request bodies: bytes → the object a client meant, or the 400, 415 or 422 Kubernetes would answer.

    read_object            a body that must be one kind: POST, PUT
    read_any               the same for what is no kind of its own: Binding, Scale, Eviction
    read_delete_options    the optional body of DELETE
    read_patch             a JSON, merge or strategic merge patch; its result goes through conform_patched
    read_applied           the configuration of server-side apply

Fast where it matters: a good JSON body is parsed once by msgspec and walked once by ``language.decode``.
Repeated keys are looked for exactly only when a count of keys says there may be some.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from seamark.api.fields.patch import unusable
from seamark.api.http.protocol import Request
from seamark.errors import BadRequest, Object, UnsupportedMediaType
from seamark.kinds.kind import Kind
from seamark.kinds.language import json_scan, shapes
from seamark.kinds.language.decode import DecodeError, conform, found
from seamark.kinds.language.scalars import check_depth
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"

Mistakes = Sequence[str]  # about fields that a body has twice, or its kind not at all

Format = Literal["JSON", "YAML", "protobuf"]
_FORMATS: dict[str, Format] = {
    "": "JSON",
    JSON: "JSON",
    YAML: "YAML",
    PROTOBUF: "protobuf",
}

# Go stops counting there.
_MOST_MISTAKES = 100

# What Go looks for first in a body, as its errors print it.
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'

_SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'


class Malformed(ValueError):
    """The body cannot be read; the text is Go's sentence."""


class Unframed(Malformed):
    """It is not even JSON after conversion from YAML or protobuf, so nobody looked for its kind yet."""


def format_of(content_type: str) -> Format:
    """How a body of this media type is written, or a 415.  No type at all means JSON."""
    found = _FORMATS.get(content_type.partition(";")[0].strip().lower())
    if found is None:
        accepted = ", ".join((JSON, YAML, PROTOBUF))
        raise UnsupportedMediaType(
            f"the body of the request was in an unknown format - accepted media types include: {accepted}"
        )
    return found


def _parse_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except UnicodeDecodeError as error:
        raise Malformed("the text is not UTF-8") from error
    except RecursionError as error:
        raise Malformed("exceeded max depth") from error
    except (msgspec.MsgspecError, ValueError) as error:
        try:
            json_scan.check(body)
        except json_scan.SyntaxFault as fault:
            raise Malformed(str(fault)) from error
        # JSON, but nothing we can hold: half a surrogate pair, or a number beyond every type.
        raise Malformed(str(error)) from error


def _parse_yaml(body: bytes) -> tuple[Any, list[str]]:
    # Clients send JSON; the YAML parser is loaded for the first one that does not.
    from seamark.kinds.language import yaml_body

    try:
        return yaml_body.read(body)
    except yaml_body.YamlFault as fault:
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


# --- objects ---------------------------------------------------------------------------------------


def read_object(body: bytes, content_type: str, kind: Kind, field_validation: str) -> tuple[Object, list[str]]:
    """The object in its normal form, with ``kind`` and ``apiVersion``, and the warnings it deserves.

    ``field_validation`` says what becomes of unknown and repeated fields: ``Strict`` refuses the object, ``Ignore`` is
    silent, anything else warns.
    """
    return _read(body, content_type, kind.resource, kind.shape, field_validation)


def read_any(request: Request, api_version: str, kind: str, field_validation: str) -> tuple[Object, list[str]]:
    """An object of a kind that exists only as a request, and the warnings it deserves."""
    group, _, version = api_version.rpartition("/")
    resource = Resource(group, version, kind.lower() + "s", kind)
    shape = shapes.of(shapes.load().kinds[api_version, kind])
    return _read(request.body, request.headers.get("content-type", ""), resource, shape, field_validation)


def _read(
    body: bytes, content_type: str, resource: Resource, shape: Shape, field_validation: str
) -> tuple[Object, list[str]]:
    format = format_of(content_type)
    try:
        value, repeated = _parse(body, format, resource, shape)
        api_version, kind = _type_meta(value, resource)
    except Malformed as fault:
        raise BadRequest(
            f"the object provided is unrecognized (must be of type {resource.kind}): {_unreadable(fault)} "
            f"({_summary(body)})"
        ) from fault
    except DecodeError as error:  # protobuf only: it is read by shape, once the kind is known to be right
        raise BadRequest(_handled(resource.api_version, resource.kind, resource) + str(error)) from error
    handled = _handled(api_version, kind, resource)
    if (api_version, kind) != (resource.api_version, resource.kind):
        raise _other_kind(api_version, kind, resource, handled)
    try:
        obj, unknown = conform({} if value is None else value, shape)
    except DecodeError as error:
        raise BadRequest(handled + str(error)) from error
    obj["kind"], obj["apiVersion"] = kind, api_version
    if field_validation == "Ignore":
        return obj, []
    if format == "JSON" and _may_repeat_keys(body, value):
        mistakes = _mistakes_in_order(body, frozenset(unknown))
    else:
        mistakes = (repeated + [f'unknown field "{path}"' for path in unknown])[:_MOST_MISTAKES]
    if mistakes and field_validation == "Strict":
        raise BadRequest(f"{handled}strict decoding error: {', '.join(mistakes)}")
    return obj, mistakes


def _parse(body: bytes, format: Format, resource: Resource, shape: Shape) -> tuple[Any, list[str]]:
    """The value of a body, and sentences about keys it repeats if its parser tells."""
    if format == "YAML":
        return _parse_yaml(body)
    return (_parse_json(body) if format == "JSON" else _parse_protobuf(body, resource, shape)), []


def _handled(api_version: str, kind: str, resource: Resource) -> str:
    return f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {resource.kind}: '


def _unreadable(fault: Malformed) -> str:
    return str(fault) if isinstance(fault, Unframed) else f"couldn't get version/kind; json parse error: {fault}"


def _type_meta(value: Any, resource: Resource) -> tuple[str, str]:
    """The apiVersion and kind of a body; those of the resource where it leaves them out."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise Malformed(f"json: cannot unmarshal {found(value)} into Go value of type {_TYPE_META}")
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    for name, given in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(given, str):
            raise Malformed(f"json: cannot unmarshal {found(given)} into Go struct field .{name} of type string")
    if api_version.count("/") > 1:
        raise Malformed(f"unexpected GroupVersion string: {api_version}")
    return api_version or resource.api_version, kind or resource.kind


def _other_kind(api_version: str, kind: str, resource: Resource, handled: str) -> BadRequest:
    """What is wrong with a body of this kind where another is expected."""
    known = shapes.load().kinds
    if (api_version, kind) not in known:
        return BadRequest(f'{handled}no kind "{kind}" is registered for version "{api_version}" {_SCHEME}')
    if kind == resource.kind:
        return BadRequest(
            f"the API version in the data ({api_version}) does not match the expected API version "
            f"({resource.api_version})"
        )
    package = resource.group.partition(".")[0] or "core"
    version = api_version.rpartition("/")[2]
    return BadRequest(f"{handled}converting ({version}.{kind}) to ({package}.{resource.kind}): unknown conversion")


def _summary(body: bytes) -> str:
    """The beginning of a body nobody could read, to recognise it by."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > 30 else ""
    start = body[:30]
    return (start.decode(errors="replace") if start.startswith(b"{") else start.hex()) + more


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
    """Sentences about unknown and repeated fields; what is inside an unknown one is nobody's business."""
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
        if len(mistakes) == _MOST_MISTAKES:
            break
    return list(mistakes)


# --- patches ---------------------------------------------------------------------------------------

_OPERATION_FIELDS = {"op", "path", "from", "value"}


def read_patch(body: bytes, type: Literal["json", "merge", "strategic"], field_validation: str) -> tuple[Any, Mistakes]:
    """The document of a JSON, merge or strategic merge patch, and what it repeats or a JSON patch has no field for."""
    try:
        document = _parse_json(body)
        check_depth(document)
    except (Malformed, DecodeError) as fault:
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


def conform_patched(
    patched: Object,
    kind: Kind,
    field_validation: str,
    warnings: list[str],
    current: Object | None = None,
    *,
    subresource: str = "",
    mistakes: Mistakes = (),
) -> Object:
    """The result of a patch in its normal form; adds to ``warnings`` what a patch set that its kind does not have.

    ``mistakes`` are those of the patch itself.  ``current`` is what was patched, if known.  What is still the very same
    of it is in its normal form already and not walked again: the managedFields, and in a write through ``status`` all
    that such a write leaves alone.
    """
    changed, same, managed_fields = _without_known_parts(patched, current, subresource)
    try:
        obj, unknown = conform(changed, kind.shape)
    except DecodeError as error:
        resource = kind.resource
        handled = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise unusable(patched, f"{handled}: {error}") from error
    if (unknown or mistakes) and field_validation != "Ignore":
        mistakes = [*mistakes, *(f'unknown field "{path}"' for path in unknown[:_MOST_MISTAKES])]
        if field_validation == "Strict":
            raise unusable(patched, f"strict decoding error: {', '.join(mistakes)}")
        # A patch is made again when somebody else was faster; its mistakes stay the same.
        warnings[:] = mistakes
    obj.update(same)
    if managed_fields is not None:
        obj["metadata"]["managedFields"] = managed_fields
    return obj


def _without_known_parts(
    patched: Object, current: Object | None, subresource: str
) -> tuple[Object, Object, list[Any] | None]:
    """The patched object without what is the very same in ``current``; those parts; and the same managedFields."""
    if current is None or not isinstance(patched, dict):
        return patched, {}, None
    same: Object = {}
    if subresource == "status":
        same = {k: v for k, v in patched.items() if v is current.get(k) and k not in ("metadata", "status")}
    changed = {name: part for name, part in patched.items() if name not in same} if same else patched
    known = current["metadata"].get("managedFields")
    meta = patched.get("metadata")
    if known is None or not isinstance(meta, dict) or meta.get("managedFields") is not known:
        return changed, same, None
    rest = {name: value for name, value in meta.items() if name != "managedFields"}
    return {**changed, "metadata": rest}, same, known


def read_applied(body: bytes, kind: Kind, field_validation: str) -> tuple[Object, list[str]]:
    """What a client applies, as it was written: apply itself must know which fields were named."""
    try:
        config, repeated = _read_yaml_or_json(body)
        check_depth(config)
    except (Malformed, DecodeError) as fault:
        raise BadRequest(f"error decoding YAML: {fault}") from fault
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise BadRequest(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{found(config)} into Go value of type map[string]interface {{}}"
        )
    if config.get("metadata") is None:
        config["metadata"] = {}
    elif not isinstance(config["metadata"], dict):
        raise BadRequest(
            f"json: cannot unmarshal {found(config['metadata'])} into Go struct field {kind.resource.kind}.metadata "
            "of type v1.ObjectMeta"
        )
    if repeated and field_validation == "Strict":
        raise BadRequest(f"error strict decoding YAML: {'; '.join(repeated)}")
    return config, [] if field_validation == "Ignore" else repeated


def _read_yaml_or_json(body: bytes) -> tuple[Any, list[str]]:
    """JSON is YAML, but a hundred times faster to read."""
    if body.lstrip()[:1] == b"{":
        try:
            value = _parse_json(body)
        except Malformed:
            return _parse_yaml(body)
        if not _may_repeat_keys(body, value):
            return value, []
    return _parse_yaml(body)


# --- options ---------------------------------------------------------------------------------------

_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def read_delete_options(request: Request) -> Object | None:
    """The options in the body of a DELETE, None if it is empty.  Every group version has its own DeleteOptions."""
    if not request.body:
        return None
    resource, shape = Resource("", "v1", "deleteoptions", "DeleteOptions"), shapes.of(_DELETE_OPTIONS)
    try:
        value, _ = _parse(request.body, format_of(request.headers.get("content-type", "")), resource, shape)
        api_version, kind = _type_meta(value, resource)
        if kind != "DeleteOptions":
            raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}" {_SCHEME}')
        return conform({} if value is None else value, shape)[0]
    except Malformed as fault:
        raise BadRequest(_unreadable(fault)) from fault
    except DecodeError as error:
        raise BadRequest(str(error)) from error
