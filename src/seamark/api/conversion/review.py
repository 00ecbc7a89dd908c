"""The ConversionReview that a webhook receives, and the objects in its answer; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from seamark.api.webhooks.review import LONGEST_SHOWN, Refused, found_in_go
from seamark.errors import Object
from seamark.kinds.language.scalars import DecodeError, check_depth
from seamark.kinds.values.fields import one_message
from seamark.kinds.values.metadata import validate_annotations, validate_labels

GROUP = "apiextensions.k8s.io"
KIND = "ConversionReview"
VERSIONS = ("v1", "v1beta1")
REVIEWS = tuple((f"{GROUP}/{version}", KIND) for version in VERSIONS)

# Kubernetes sends the answer along, still empty.
_UNANSWERED: Object = {"uid": "", "convertedObjects": None, "result": {"metadata": {}}}


def review(objects: Sequence[Object], *, wanted: str, version: str, uid: str) -> bytes:
    """The review that asks for these objects in the apiVersion ``wanted``; ``version`` is that of the review."""
    asked = {"uid": uid, "desiredAPIVersion": wanted, "objects": objects}
    head = {"kind": KIND, "apiVersion": f"{GROUP}/{version}"}
    return msgspec.json.encode({**head, "request": asked, "response": _UNANSWERED})


class _Result(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct):
    uid: str = ""
    convertedObjects: list[Any] | None = None  # noqa: N815  # the field's name
    result: _Result = _Result()


def answered(answer: Object, *, version: str, uid: str) -> Sequence[Any]:
    """The objects in the answer to a review of this version; raises :class:`Refused`."""
    if version == "v1" and answer["apiVersion"] != f"{GROUP}/v1":
        got = f"{answer['apiVersion']}, Kind={answer['kind']}"
        raise Refused(f"expected webhook response of {GROUP}/v1, Kind={KIND}, got {got}")
    if answer.get("response") is None:
        raise Refused("no response provided")
    try:
        response = msgspec.convert(answer["response"], _Response)
    except msgspec.ValidationError as error:
        raise Refused(f"json: cannot unmarshal response: {error}") from error
    if version == "v1" and response.uid != uid:
        raise Refused(f'expected response.uid="{uid}", got "{response.uid}"')
    if (status := response.result.status) != "Success":
        raise Refused(response.result.message or f"response.result.status was '{status}', not 'Success'")
    return response.convertedObjects or ()


def checked(original: Object, converted: Any, *, wanted: str) -> Object:
    """A converted object with the metadata of the original, but for labels and annotations; raises :class:`Refused`.

    The sentences go on after "conversion webhook for …".
    """
    try:
        check_depth(converted)
    except DecodeError as error:
        raise Refused(f"returned invalid object at index 0: {error}") from error
    if not isinstance(converted, dict) or not converted.get("kind"):
        text = msgspec.json.encode(converted).decode()[:LONGEST_SHOWN]
        raise Refused(f"returned invalid object at index 0: Object 'Kind' is missing in '{text}'")
    for key, name in (("apiVersion", "groupVersion"), ("kind", "kind")):
        expected = wanted if key == "apiVersion" else original["kind"]
        if converted.get(key) != expected:
            got = str(converted.get(key, ""))[:LONGEST_SHOWN]
            raise Refused(f"returned invalid object at index 0: invalid {name} (expected {expected}, received {got})")
    meta, answered = original["metadata"], converted.get("metadata")
    if answered is not None and not isinstance(answered, dict):
        said = f"invalid metadata of type {found_in_go(answered)} in converted object"
        raise Refused(f"returned invalid metadata: {said}")
    for key, word in (("name", "name"), ("namespace", "namespace"), ("uid", "UID")):
        before, after = meta.get(key, ""), (answered or {}).get(key, "")
        if before != after:
            raise Refused(
                f"returned invalid object: must have the same {word}: {before} != {str(after)[:LONGEST_SHOWN]}"
            )
    if answered is None:
        raise Refused("returned invalid metadata: missing metadata in converted object")
    return {**converted, "metadata": _restored(meta, answered)}


def _restored(original: Object, answered: Object) -> Object:
    """The metadata of the original with the labels and annotations of the answer."""
    meta = dict(original)
    for field, validate in (("labels", validate_labels), ("annotations", validate_annotations)):
        given = answered.get(field)
        if given is None:
            meta.pop(field, None)
            continue
        if not isinstance(given, dict):
            said = f"invalid metadata.{field} of type {found_in_go(given)} in converted object"
            raise Refused(f"returned invalid metadata: {said}")
        for key, value in given.items():
            if not isinstance(value, str):
                said = f"metadata.{field}[{key}] must be a string, but is {found_in_go(value)} in converted object"
                raise Refused(f"returned invalid metadata: {said}")
        if given != (original.get(field) or {}) and (wrong := validate(given, f"metadata.{field}")):
            raise Refused(f"returned invalid metadata: {one_message([f'{e.field}: {e.message}' for e in wrong])}")
        meta[field] = given
    return meta
