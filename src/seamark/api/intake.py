"""Makes objects from the documents of requests, or raises the 400, 409 or 422 that Kubernetes would answer.

    conformed         the document of a create or update, which must be of the expected kind
    conform_patched   the result of a patch
    applied           the configuration of a server-side apply
    check_*           check that name, namespace and uid are those of the path or of the stored object

Documents are decoded JSON: HTTP bodies are parsed by :mod:`seamark.api.http.body`, components hand over Python values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from seamark.api.call import DeleteOptions, Target, delete_options
from seamark.api.fields.patch import unusable
from seamark.api.fields.strategic import remains
from seamark.errors import ApiError, BadRequest, Object
from seamark.kinds.kind import Kind
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import DecodeError, conform, found
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.subresource import Part
from seamark.kinds.values.fields import immutable, invalid, refuse

# Kubernetes reports at most this many unknown fields.
MOST_MISTAKES = 100

# The Go struct that Kubernetes reads the kind of a body into; its errors print it.
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SCHEME = 'in scheme "pkg/api/legacyscheme/scheme.go:30"'

DELETE_OPTIONS = Resource("", "v1", "deleteoptions", "DeleteOptions")


def delete_options_shape() -> Shape:
    return shapes.of("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions")


class MalformedDocument(ValueError):
    """A document that cannot be read; the text is the one that Kubernetes' Go code has for it."""


class Unframed(MalformedDocument):
    """A document that is neither valid YAML nor a protobuf envelope, so that its kind could not be looked for."""


class Document(msgspec.Struct, frozen=True):
    """A decoded document.  ``body`` is the text it was read from, which some error messages show."""

    value: Any
    body: bytes = b""

    @property
    def json(self) -> bool:
        """Whether ``body`` is JSON."""
        return True

    def mistakes(self, unknown: Sequence[str]) -> list[str]:
        """Sentences about unknown fields, given by their paths."""
        return [f'unknown field "{path}"' for path in unknown[:MOST_MISTAKES]]

    def sentence(self, mistakes: Sequence[str]) -> str:
        """What strict validation says about those."""
        return ", ".join(mistakes)


# --- whole objects ---------------------------------------------------------------------------------


def conformed(document: Document, kind: Kind, field_validation: str) -> tuple[Object, list[str]]:
    """The object in its normal form, with ``kind`` and ``apiVersion``, and warnings for the user.

    ``field_validation`` says how to treat unknown and repeated fields: ``Strict`` raises, ``Ignore`` drops them
    silently, anything else drops them with a warning.  The document is not edited.
    """
    resource, value = kind.resource, document.value
    try:
        api_version, word = type_meta(value, resource)
    except MalformedDocument as fault:
        raise unrecognized(fault, resource, document.body) from fault
    if not kind.built_in and document.body and not (value or {}).get("kind"):
        raise _without_kind(document.body, resource)
    handled = cannot_handle(api_version, word, resource)
    if word == resource.kind and api_version in kind.older_versions:
        api_version = resource.api_version
    if (api_version, word) != (resource.api_version, resource.kind):
        raise _other_kind(api_version, word, kind, handled) if kind.built_in else _other_data(value, kind)
    try:
        obj, unknown = kind.conform({} if value is None else value)
    except DecodeError as error:
        raise BadRequest(handled + str(error)) from error
    obj["kind"], obj["apiVersion"] = word, api_version
    if field_validation == "Ignore":
        return obj, []
    mistakes = document.mistakes(unknown)
    if mistakes and field_validation == "Strict":
        raise BadRequest(f"{handled}strict decoding error: {document.sentence(mistakes)}")
    return obj, mistakes


def type_meta(value: Any, resource: Resource) -> tuple[str, str]:
    """The apiVersion and kind of a document; by default those of the resource."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise MalformedDocument(f"json: cannot unmarshal {found(value)} into Go value of type {_TYPE_META}")
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    for name, given in (("apiVersion", api_version), ("kind", kind)):
        if not isinstance(given, str):
            raise MalformedDocument(
                f"json: cannot unmarshal {found(given)} into Go struct field .{name} of type string"
            )
    if api_version.count("/") > 1:
        raise MalformedDocument(f"unexpected GroupVersion string: {api_version}")
    return api_version or resource.api_version, kind or resource.kind


def cannot_handle(api_version: str, kind: str, resource: Resource) -> str:
    return f'{kind} in version "{api_version.rpartition("/")[2]}" cannot be handled as a {resource.kind}: '


def unreadable(fault: MalformedDocument) -> str:
    return str(fault) if isinstance(fault, Unframed) else f"couldn't get version/kind; json parse error: {fault}"


def unrecognized(fault: MalformedDocument, resource: Resource, body: bytes) -> BadRequest:
    return BadRequest(
        f"the object provided is unrecognized (must be of type {resource.kind}): {unreadable(fault)} ({_summary(body)})"
    )


def _summary(body: bytes) -> str:
    """The beginning of an unreadable body, for the error message."""
    if not body:
        return "<empty>"
    more = " ..." if len(body) > 30 else ""
    start = body[:30]
    return (start.decode(errors="replace") if start.startswith(b"{") else start.hex()) + more


def _other_kind(api_version: str, word: str, kind: Kind, handled: str) -> BadRequest:
    """The error for a document of the kind ``word`` where this built-in kind is expected."""
    resource = kind.resource
    if (api_version, word) not in shapes.load().kinds:
        return BadRequest(f'{handled}no kind "{word}" is registered for version "{api_version}" {_SCHEME}')
    if word == resource.kind:
        return _other_version(api_version, resource)
    package = resource.group.partition(".")[0] or "core"
    version = api_version.rpartition("/")[2]
    return BadRequest(f"{handled}converting ({version}.{word}) to ({package}.{resource.kind}): unknown conversion")


def _without_kind(body: bytes, resource: Resource) -> BadRequest:
    """The error for a custom resource that does not say what it is."""
    lacks = f"Object 'Kind' is missing in '{body.decode(errors='replace')}'"
    return BadRequest(
        f"the object provided is unrecognized (must be of type {resource.kind}): {lacks} ({_summary(body)})"
    )


def _other_data(value: Object, kind: Kind) -> ApiError:
    """As :func:`_other_kind`, for a kind that was added while the server runs.

    Kubernetes decodes a custom resource of any kind, and finds the wrong one only when it validates the object.
    """
    resource = kind.resource
    api_version, word = type_meta(value, resource)
    if api_version != resource.api_version:
        return _other_version(api_version, resource)
    meta = value.get("metadata")
    name = meta.get("name") if isinstance(meta, dict) else ""
    sent = msgspec.structs.replace(resource, kind=word)
    return refuse(sent, str(name or ""), [invalid("kind", word, f"must be {resource.kind}")])


def _other_version(api_version: str, resource: Resource) -> BadRequest:
    return BadRequest(
        f"the API version in the data ({api_version}) does not match the expected API version ({resource.api_version})"
    )


def deleting(document: Mapping[str, Any]) -> DeleteOptions:
    """The options of a deletion, from a DeleteOptions document."""
    try:
        api_version, kind = type_meta(document, DELETE_OPTIONS)
        if kind != DELETE_OPTIONS.kind:
            raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}" {_SCHEME}')
        return delete_options(conform({} if document is None else document, delete_options_shape())[0])
    except MalformedDocument as fault:
        raise BadRequest(unreadable(fault)) from fault
    except DecodeError as error:
        raise BadRequest(str(error)) from error


# --- patches and apply -----------------------------------------------------------------------------


def conform_patched(
    patched: Object,
    kind: Kind,
    part: Part,
    *,
    current: Object,
    strategic: Object | None,
    field_validation: str,
    mistakes: Sequence[str],
    warnings: list[str],
) -> Object:
    """The result of a patch in its normal form; sets ``warnings`` to sentences about unknown fields.

    ``mistakes`` were found in the patch document itself.  It is ``strategic`` if it is a strategic merge patch: errors
    show it then, and not the result.  ``current`` is the object before the patch.  To save time, values that the result
    shares with it (managedFields, and all that a write to this ``part`` cannot change) are not checked again: they are
    in their normal form already.
    """
    changed, same, managed_fields = _without_known_parts(patched, current, part)
    try:
        obj, unknown = kind.conform(changed)
    except DecodeError as error:
        if strategic is not None:
            raise unusable(remains(strategic), error.restoring) from error
        resource = kind.resource
        handled = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise unusable(patched, f"{handled}: {error}") from error
    if (unknown or mistakes) and field_validation != "Ignore":
        mistakes = [*mistakes, *(f'unknown field "{path}"' for path in unknown[:MOST_MISTAKES])]
        if field_validation == "Strict":
            shown = patched if strategic is None else remains(strategic)
            raise unusable(shown, f"strict decoding error: {', '.join(mistakes)}")
        # Replace, not extend: the patch is applied again after a conflict, with the same mistakes.
        warnings[:] = mistakes
    obj.update(same)
    if managed_fields is not None:
        obj["metadata"]["managedFields"] = managed_fields
    return obj


def _without_known_parts(patched: Object, current: Object, part: Part) -> tuple[Object, Object, list[Any] | None]:
    """The patched object without values it shares with ``current``; these values; and shared managedFields, if any."""
    same: Object = {}
    if part.touches:
        same = {k: v for k, v in patched.items() if v is current.get(k) and k not in part.touches}
    changed = {name: value for name, value in patched.items() if name not in same} if same else patched
    known = current["metadata"].get("managedFields")
    meta = patched.get("metadata")
    if known is None or not isinstance(meta, dict) or meta.get("managedFields") is not known:
        return changed, same, None
    rest = {name: value for name, value in meta.items() if name != "managedFields"}
    return {**changed, "metadata": rest}, same, known


def applied(config: Any, kind: Kind) -> Object:
    """The configuration as the client wrote it, without defaults: apply must know which fields it names."""
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise BadRequest(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal "
            f"{found(config)} into Go value of type map[string]interface {{}}"
        )
    meta = config.get("metadata")
    if meta is None:
        return {**config, "metadata": {}}
    if not isinstance(meta, dict):
        raise BadRequest(
            f"json: cannot unmarshal {found(meta)} into Go struct field {kind.resource.kind}.metadata of type "
            "v1.ObjectMeta"
        )
    return {**config, "metadata": dict(meta)}


# --- identity --------------------------------------------------------------------------------------


def check_name(meta: Object, target: Target) -> None:
    """Raise unless the object has the name and namespace of the path."""
    name = meta.get("name", "")
    if name == target.name and meta.get("namespace", target.namespace) == target.namespace:
        return
    if not name:
        raise BadRequest(
            f"the name of the object ({target.name} based on URL) was undeterminable: name must be provided"
        )
    _check_same_name(name, target)
    check_namespace(meta, target.namespace)


def check_applied(meta: Object, target: Target) -> None:
    """As :func:`check_name`, but a configuration that leaves out its name or namespace is given those of the path."""
    _check_same_name(meta.get("name", target.name), target)
    meta["name"] = target.name
    check_namespace(meta, target.namespace)
    if target.kind.resource.namespaced and target.kind.built_in:
        meta["namespace"] = target.namespace


def _check_same_name(name: str, target: Target) -> None:
    if name != target.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({target.name})")


def check_namespace(meta: Object, namespace: str) -> None:
    """Raise if the object names another namespace than the path; of a kind that is in none, the name is dropped."""
    if not namespace:
        meta.pop("namespace", None)
    elif meta.get("namespace", namespace) != namespace:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")


def check_uid(kind: Kind, meta: Object, old: Object) -> None:
    """Raise if a patch changes the uid."""
    if meta.get("uid", old["uid"]) != old["uid"]:
        wrong = [immutable("metadata.uid", meta["uid"])]
        raise refuse(kind.stored_as or kind.resource, old["name"], wrong)
