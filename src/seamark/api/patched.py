"""Bodies of PATCH: what was sent, and what a patched object must still be."""

from __future__ import annotations

from typing import Any

from seamark import errors
from seamark.api import body
from seamark.errors import Object
from seamark.kinds import shapes
from seamark.kinds.decode import DecodeError, conform
from seamark.kinds.fields import show
from seamark.kinds.kind import Kind


def read_patch(data: bytes) -> Any:
    """The patch document, whatever it is."""
    try:
        return body.parse(data)
    except body.Malformed as error:
        raise errors.BadRequest(f"error decoding patch: {error}") from error


def conform_patched(patched: Any, kind: Kind, field_validation: str, warnings: list[str]) -> Object:
    """A patched object in its normal form; unknown fields are refused or warned about as the client wished."""
    try:
        obj, unknown = conform(patched, shapes.of(kind.shape))
    except DecodeError as error:
        raise _invalid(patched, str(error)) from error
    if unknown and field_validation != "Ignore":
        sentences = [f'unknown field "{path}"' for path in unknown]
        if field_validation == "Strict":
            raise _invalid(patched, f"strict decoding error: {', '.join(sentences)}")
        warnings[:] = sentences
    return obj


def _invalid(patched: Any, sentence: str) -> errors.Invalid:
    """A patch is refused as a whole: the field is ``patch``, and no object is named."""
    message = f"Invalid value: {show(show(patched))}: {sentence}"
    cause = errors.Cause(reason="FieldValueInvalid", message=message, field="patch")
    return errors.Invalid(f' "" is invalid: patch: {message}', details={}, causes=[cause])


def read_applied(data: bytes, kind: Kind, field_validation: str) -> tuple[Object, list[str]]:
    """The configuration of a server-side apply: YAML or JSON, and it must say what it is.

    It is checked against its shape but kept as sent: apply owns what was written, not what defaults would add.
    """
    try:
        value = body.parse(data, body.YAML)
    except body.Malformed as error:
        raise errors.BadRequest(f"error decoding YAML: {error}") from error
    if not isinstance(value, dict):
        raise errors.BadRequest("error decoding YAML: the body is no object")
    resource = kind.resource
    given = (value.get("apiVersion"), value.get("kind"))
    if given != (resource.api_version, resource.kind):
        if not all(given):
            missing = "apiVersion" if not given[0] else "kind"
            raise errors.BadRequest(f"Object '{missing}' is missing in '{show(value)}'")
        raise errors.BadRequest(
            f"the object provided is {given[0]} {given[1]}, not {resource.api_version} {resource.kind}"
        )
    metadata = value.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        raise errors.BadRequest("metadata is no object")
    try:
        _, unknown = conform(value, shapes.of(kind.shape))
    except DecodeError as error:
        raise errors.BadRequest(str(error)) from error
    sentences = [f'unknown field "{path}"' for path in unknown]
    if sentences and field_validation == "Strict":
        raise errors.BadRequest(f"strict decoding error: {', '.join(sentences)}")
    return value, [] if field_validation == "Ignore" else sentences
