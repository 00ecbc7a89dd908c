"""Patches: a document that says how to change an object, in one of three languages.

    json       RFC 6902: a list of operations on JSON pointers
    merge      RFC 7386: the object again, only what changes; null removes, lists are replaced
    strategic  Kubernetes' own: as merge, but lists are merged by key (:mod:`.strategic`)

(The fourth, server-side apply, is more than a patch: :mod:`.apply`.)  Errors are those of Kubernetes, which answers any
operation that cannot be carried out with the same 422.
"""

from __future__ import annotations

import re
from typing import Any, Literal

import msgspec

from seamark.api.fields import strategic
from seamark.api.fields.values import copied
from seamark.errors import BadRequest, Cause, Invalid, Object, RequestEntityTooLarge
from seamark.kinds.language.scalars import found
from seamark.kinds.language.shape import Shape
from seamark.kinds.resource import Resource
from seamark.kinds.values.fields import invalid, refuse
from seamark.kinds.values.numbers import int64

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")

PatchType = Literal["json", "merge", "strategic"]

MOST_OPERATIONS = 10_000
MOST_COPIED_BYTES = 3 * 1024 * 1024

REJECTED = "the server rejected our request due to an error in our request"
MAP_TYPE = "map[string]interface {}"
HEADER_TYPE = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'


def apply_patch(type: PatchType, document: Any, current: Object, shape: Shape) -> Object:
    """``current`` as changed by ``document``: a new object that shares unchanged parts with both.

    The result still has to be decoded, which makes it independent; failures of that become :func:`unusable`.
    """
    try:
        if type == "strategic":
            return _strategic(document, current, shape)
        result = json_patch(document, current) if type == "json" else merge_patch(document, current)
    except RecursionError as error:
        raise BadRequest("exceeded max depth") from error
    if not isinstance(result, dict):
        raise unusable(
            result,
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{found(result)} into Go value of type {HEADER_TYPE}",
        )
    _check_type(result, current, shape)
    return result


def _strategic(document: Any, current: Object, shape: Shape) -> Object:
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise BadRequest(f"json: cannot unmarshal {found(document)} into Go value of type {MAP_TYPE}")
    patched = strategic.merge(current, document, shape)
    # A strategic merge patch cannot change them.
    for key in ("apiVersion", "kind"):
        if key in current:
            patched[key] = current[key]
        else:
            patched.pop(key, None)
    return patched


def unusable(patched: Any, why: str) -> Invalid:
    """The 422 for a patch whose result is not an object of its kind; ``why`` is what decoding said."""
    shown = patched if isinstance(patched, str) else msgspec.json.encode(patched).decode()
    wrong = invalid("patch", shown, why)
    return Invalid(
        f' "" is invalid: patch: {wrong.message}',
        details={},
        causes=[Cause(reason=wrong.reason, message=wrong.message, field=wrong.field)],
    )


def _check_type(result: Object, current: Object, shape: Shape) -> None:
    """Objects in storage may be without apiVersion and kind; one that has them must keep them."""
    for key, name in (("kind", "Kind"), ("apiVersion", "apiVersion")):
        if key in current and not result.get(key):
            raise unusable(result, f"Object '{name}' is missing in '{msgspec.json.encode(result).decode()}'")
    kind, version = result.get("kind", shape.go_name), result.get("apiVersion", "")
    if shape.schema is not None and isinstance(kind, str) and kind != shape.go_name:
        sent = Resource(version.rpartition("/")[0], "", "", kind)
        raise refuse(sent, current["metadata"]["name"], [invalid("kind", kind, f"must be {shape.go_name}")])
    if kind != shape.go_name or version != current.get("apiVersion", version):
        raise unusable(result, f'{kind} in version "{version}" cannot be handled as a {shape.go_name}')


# --- RFC 7386 ---------------------------------------------------------------------------------------

_SCALARS = frozenset((str, int, bool, float, type(None)))
_SEQUENCES = frozenset((list, tuple))
_PLAIN = _SCALARS | _SEQUENCES | {dict}


def merge_patch(document: Any, current: Object) -> Object:
    if document is None:
        raise BadRequest("Invalid JSON Patch")
    if not isinstance(document, dict):
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {found(document)} into Go value of type {MAP_TYPE}"
        )
    return _merged(current, document)


def _merged(target: Object, document: Object) -> Object:
    out = dict(target)
    for key, value in document.items():
        if type(value) not in _PLAIN:
            value = msgspec.to_builtins(value)
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = _merged(out[key], value)
        else:
            out[key] = _pruned(value)
    return out


def _pruned(value: Any) -> Any:
    """A copy without the nulls in objects, which have nothing to remove here.

    Typed values become plain.  They come from our own components, and a null in them goes when the result is decoded.
    """
    kind = type(value)
    if kind in _SCALARS:
        return value
    # Scalars are told apart here, because a call for every text and number would cost more.
    if kind is dict:
        pairs = value.items()
        return {k: item if type(item) in _SCALARS else _pruned(item) for k, item in pairs if item is not None}
    if kind in _SEQUENCES:
        return [item if type(item) in _SCALARS else _pruned(item) for item in value]
    return msgspec.to_builtins(value)


# --- RFC 6902 ---------------------------------------------------------------------------------------


class Inapplicable(Exception):
    """An operation does not fit the document.  Kubernetes tells a webhook which, in these words, but not a client."""


class TestFailed(Inapplicable):
    """A ``test`` operation found another value."""

    __test__ = False  # no tests, as its name might say


class _MissingPath(Exception):
    """What an operation is about is not there."""


def json_patch(document: Any, current: Object) -> Any:
    """``current`` after all operations; they happen together or not at all."""
    operations = _operations(document)
    try:
        return edited(operations, current)
    except Inapplicable as error:
        raise Invalid(REJECTED, details={}) from error


def edited(operations: list[Object], current: Object) -> Any:
    """As :func:`json_patch`, of operations; raises :class:`Inapplicable`."""
    target = _Target(current)
    for operation in operations:
        try:
            target.run(operation)
        except _MissingPath:
            word, path = operation.get("op"), operation.get("path")
            raise Inapplicable(
                f'{word} operation does not apply: doc is missing path: "{path}": missing value'
            ) from None
    return target.root


def _operations(document: Any) -> list[Object]:
    if document is None:
        return []
    if not isinstance(document, list):
        raise _undecodable(document, "value of type []handlers.jsonPatchOp")
    for operation in document:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            raise _undecodable(operation, "value of type handlers.jsonPatchOp")
        for key in ("op", "path", "from"):
            if not isinstance(operation.get(key) or "", str):
                raise _undecodable(operation[key], f"struct field jsonPatchOp.{key} of type string")
    if len(document) > MOST_OPERATIONS:
        raise RequestEntityTooLarge(
            "Request entity too large: The allowed maximum operations in a JSON patch is "
            f"{MOST_OPERATIONS}, got {len(document)}"
        )
    return [operation or {} for operation in document]


def _undecodable(value: Any, into: str) -> BadRequest:
    return BadRequest(f"error decoding patch: json: cannot unmarshal {found(value)} into Go {into}")


class _Target:
    """A document under patching.  Containers are copied before they are edited, each once."""

    def __init__(self, root: Any) -> None:
        self.root = root.copy()
        self._own = {id(self.root): self.root}
        self._copied_bytes = 0

    def run(self, operation: Object) -> None:
        match operation.get("op"):
            case "add":
                self._add(_pointer(operation, "path"), operation.get("value"))
            case "remove":
                self._remove(_pointer(operation, "path"))
            case "replace":
                self._replace(_pointer(operation, "path"), operation.get("value"))
            case "move":
                source = _pointer(operation, "from")
                value = self._get(source)
                self._remove(source)
                self._add(_pointer(operation, "path"), value)
            case "copy":
                # A real copy: parts of it may have been copied before, and would now be edited in both places.
                value = copied(self._get(_pointer(operation, "from")))
                self._copied_bytes += len(msgspec.json.encode(value))
                if self._copied_bytes > MOST_COPIED_BYTES:
                    raise Inapplicable("too much copied")
                self._add(_pointer(operation, "path"), value)
            case "test":
                self._test(operation)
            case other:
                raise Inapplicable(f"unexpected kind: {other}")

    def _parent(self, path: list[str]) -> tuple[dict[str, Any] | list[Any], str]:
        """The container in which the last step of ``path`` is to be found."""
        if not path:
            raise Inapplicable("the whole document cannot be meant here")
        container = self.root
        for step in path[:-1]:
            child = _child(container, step)
            if not isinstance(child, dict | list):
                raise _MissingPath
            if id(child) not in self._own:
                child = child.copy()
                self._own[id(child)] = child
                container[step if isinstance(container, dict) else _index(step, len(container))] = child
            container = child
        return container, path[-1]

    def _get(self, path: list[str]) -> Any:
        return _child(*self._parent(path))

    def _add(self, path: list[str], value: Any) -> None:
        container, step = self._parent(path)
        if isinstance(container, dict):
            container[step] = value
        elif step == "-":
            container.append(value)
        else:
            container.insert(_index(step, len(container) + 1), value)

    def _replace(self, path: list[str], value: Any) -> None:
        if not path:
            if not isinstance(value, dict | list):
                raise Inapplicable("only an object or a list can replace the whole document")
            self.root = value.copy()
            self._own[id(self.root)] = self.root
            return
        container, step = self._parent(path)
        if isinstance(container, dict):
            # Not RFC 6902, but what Kubernetes does: replacing what is not there adds it.
            container[step] = value
        else:
            container[_index(step, len(container))] = value

    def _remove(self, path: list[str]) -> None:
        container, step = self._parent(path)
        if isinstance(container, dict):
            if step not in container:
                shown = "/".join(("", *path))
                raise Inapplicable(
                    f"error in remove for path: '{shown}': Unable to remove nonexistent key: {step}: missing value"
                )
            del container[step]
        else:
            del container[_index(step, len(container))]

    def _test(self, operation: Object) -> None:
        path = _pointer(operation, "path")
        value = self._get(path) if path else self.root
        if not _identical(value, operation.get("value")):
            raise TestFailed(f"testing value {operation.get('path')} failed: test failed")


def _pointer(operation: Object, key: str) -> list[str]:
    """An RFC 6901 pointer as its steps."""
    text = operation.get(key)
    if text is None:
        raise Inapplicable(f"operation without {key}")
    if text and "/" not in text:
        raise Inapplicable(f"not a pointer: {text}")
    # Kubernetes ignores what stands before the first slash.
    steps: list[str] = text.split("/")[1:]
    return [step.replace("~1", "/").replace("~0", "~") for step in steps]


def _child(container: dict[str, Any] | list[Any], step: str) -> Any:
    if isinstance(container, dict):
        return container.get(step)
    return container[_index(step, len(container))]


def _index(step: str, length: int) -> int:
    """A position in a list; negative ones count from its end."""
    place = int64(step) if _INTEGER.fullmatch(step) else None
    if place is None or not -length <= place < length:
        raise Inapplicable(f"invalid index {step!r}")
    return place % length


def _identical(one: Any, other: Any) -> bool:
    """Equal as JSON texts are: 1 is neither 1.0 nor true."""
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_identical(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_identical, one, other))
    return bool(one == other)
