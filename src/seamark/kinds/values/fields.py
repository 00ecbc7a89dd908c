"""Errors about single fields of an object, with Kubernetes' messages.

A validator collects :class:`FieldError` values in a list, so that a user sees every mistake at once.  Paths are plain
strings (``spec.ports[0].port``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar

import msgspec

from seamark.errors import Cause, Invalid, Object
from seamark.kinds.resource import Resource

T = TypeVar("T")


class FieldError(msgspec.Struct, frozen=True):
    """One mistake: ``reason`` is the machine-readable cause, ``message`` the text after the path."""

    field: str
    reason: str
    message: str

    def __post_init__(self) -> None:
        if (told := _told.get()) is not None:
            told.add(self)


Errors = list[FieldError]


class TooManyMistakes(Exception):
    """An object has more mistakes than are told; ``first`` are some of them."""

    def __init__(self, first: Errors) -> None:
        super().__init__()
        self.first = first


class _Told:
    """The mistakes that were found so far, as bytes that are left to tell further ones, and the first of them."""

    def __init__(self) -> None:
        self._left = MOST_MISTAKES_BYTES
        self._first: Errors = []

    def add(self, error: FieldError) -> None:
        self._left -= len(error.field) + len(error.message) + _LEAST_BYTES
        if len(self._first) < FIRST_MISTAKES:
            self._first.append(error)
        if self._left < 0:
            raise TooManyMistakes(self._first)


# A body of 3 MB can have a million empty entries, each with a dozen mistakes; all of them would be an answer of 1 GB.
MOST_MISTAKES_BYTES = 2 * 1024 * 1024
FIRST_MISTAKES = 100
_LEAST_BYTES = 64

_told: ContextVar[_Told | None] = ContextVar("told", default=None)


def limited(judge: Callable[[], T]) -> T:
    """What rules say; raises :class:`TooManyMistakes` as soon as that is very much."""
    before = _told.set(_Told())
    try:
        return judge()
    finally:
        _told.reset(before)


def show(value: Any) -> str:
    """A value as Go's ``field.Error`` prints it: strings in quotes, numbers without, structures as JSON."""
    return msgspec.json.encode(value).decode()


def invalid(field: str, value: Any, detail: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {show(value)}" + (f": {detail}" if detail else ""))


def omitted(field: str, detail: str) -> FieldError:
    """An invalid value that the message does not show."""
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {detail}")


def required(field: str, detail: str = "") -> FieldError:
    return FieldError(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))


def forbidden(field: str, detail: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {detail}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {show(value)}")


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """``supported`` is printed in the given order: pass it sorted where Kubernetes sorts."""
    listed = ", ".join(show(choice) for choice in supported)
    return FieldError(field, "FieldValueNotSupported", f"Unsupported value: {show(value)}: supported values: {listed}")


def not_found(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueNotFound", f"Not found: {show(value)}")


def too_long(field: str, limit: int) -> FieldError:
    unit = "bytes"
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} {unit}")


def immutable(field: str, value: Any) -> FieldError:
    """An update changed a field that stays as it was created."""
    return invalid(field, value, "field is immutable")


def too_many(field: str, count: int, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooMany", f"Too many: {count}: must have at most {limit} items")


def repeated(values: Iterable[Hashable]) -> list[int]:
    """Where a value comes that was there before.

    Each is looked up among the earlier ones.  Comparing it with each of them would take minutes for a long list.
    """
    seen: set[Hashable] = set()
    again = []
    for i, value in enumerate(values):
        if value in seen:
            again.append(i)
        seen.add(value)
    return again


def alike(value: Any) -> bytes:
    """A text that equal values have in common, for looking up lists and maps."""
    return msgspec.json.encode(value, order="deterministic")


def one_message(sentences: Sequence[str]) -> str:
    """Several mistakes as one message, in brackets as Kubernetes joins errors; a single one stands alone."""
    return sentences[0] if len(sentences) == 1 else f"[{', '.join(sentences)}]"


def refuse(resource: Resource, name: str, errors: Errors, again: Sequence[FieldError] = ()) -> Invalid:
    """The 422 error that lists these mistakes, each once; ``again`` are some that Kubernetes lists a second time."""
    seen: dict[tuple[str, str], FieldError] = {}
    for error in errors:
        seen.setdefault((error.field, error.message), error)
    unique = list(seen.values())
    text = one_message([f"{e.field}: {e.message}" for e in unique])
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    details: Object = {}
    if name:
        details["name"] = name
    if resource.group:
        details["group"] = resource.group
    if resource.kind:
        details["kind"] = resource.kind
    return Invalid(
        f'{qualified} "{name}" is invalid: {text}',
        details=details,
        causes=[Cause(reason=e.reason, message=e.message, field=e.field) for e in (*again, *unique)],
    )
