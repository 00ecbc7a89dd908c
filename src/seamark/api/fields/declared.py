"""Whether an applied configuration fits its shape, and the sentences that say where it does not.

Ordinary writes are decoded leniently (unknown fields are dropped); apply is strict, because an unknown field cannot
have a manager.  The sentences are those of Kubernetes' structured-merge-diff library.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from seamark.api.fields import values
from seamark.api.fields.fieldsets import show_step
from seamark.api.fields.typed import Listing, key_defaults
from seamark.errors import Object
from seamark.kinds.language.shape import ListOf, MapOf, Scalar, Shape, Type

T = TypeVar("T")

_NUMBERS = ("int32", "int64", "float64")
_STRINGS = ("string", "bytes")


class Mistake:
    """One sentence and where it applies; the path is built backwards, on the way out."""

    __slots__ = ("path", "sentence")

    def __init__(self, sentence: str, path: str = "") -> None:
        self.sentence, self.path = sentence, path

    def __str__(self) -> str:
        return f"{self.path}: {self.sentence}" if self.path else self.sentence


def _at(prefix: str, mistakes: list[Mistake]) -> list[Mistake]:
    for mistake in mistakes:
        mistake.path = prefix + mistake.path
    return mistakes


def mistakes(value: Any, type_: Type) -> list[Mistake]:
    """Everything in ``value`` that its type does not declare."""
    if value is None:
        return []
    if isinstance(type_, Shape):
        return _struct_mistakes(value, type_)
    if isinstance(type_, MapOf):
        return _map_mistakes(value, type_)
    if isinstance(type_, ListOf):
        return _list_mistakes(value, type_)
    return _scalar_mistakes(value, type_)


def summary(found: list[Mistake]) -> str:
    if len(found) == 1:
        return str(found[0])
    return "\n".join(["errors:", *(f"  {mistake}" for mistake in found)])


class Untyped(Exception):
    """An object does not fit its shape; the text says where."""


def typed(step: Callable[[], T], obj: Object, shape: Shape) -> T:
    """What a step makes of an object as it is; raises :class:`Untyped` if that cannot be, because of its types.

    Nothing else is stored of built-in kinds, but the schema of custom resources may change beneath them, and admission
    sees them before they are validated.
    """
    try:
        return step()
    except (AttributeError, TypeError, LookupError):
        if found := mistakes(obj, shape):
            raise Untyped(summary(found)) from None
        raise


def _struct_mistakes(value: Any, shape: Shape) -> list[Mistake]:
    if not isinstance(value, dict):
        return [Mistake(f"expected map, got &{{{values.plain(value)}}}")]
    found: list[Mistake] = []
    for name, item in value.items():
        field = shape.fields.get(name)
        if field is None and shape.open:
            continue
        if field is None:
            found.append(Mistake("field not declared in schema", f".{name}"))
            break
        found += _at(f".{name}", mistakes(item, field.type))
    return found


def _map_mistakes(value: Any, map_: MapOf) -> list[Mistake]:
    if not isinstance(value, dict):
        return [Mistake(f"expected map, got &{{{values.plain(value)}}}")]
    return [mistake for key, item in value.items() for mistake in _at(f".{key}", mistakes(item, map_.of))]


def _list_mistakes(value: Any, list_: ListOf) -> list[Mistake]:
    if not isinstance(value, list):
        return [Mistake(f"expected list, got &{{{values.plain(value)}}}")]
    found: list[Mistake] = []
    keys = key_defaults(list_)
    listing = Listing(None, keys)
    seen: set[str] = set()
    for index, item in enumerate(value):
        if list_.type == "atomic":
            found += _at(f"[{index}]", mistakes(item, list_.of))
            continue
        sentence = _key_mistake(item, keys, list_) if keys else _set_mistake(item)
        if sentence:
            return [*found, Mistake(f"element {index}: {sentence}")]
        step = listing.step(item)
        if step in seen:
            found.append(Mistake(f"duplicate entries for key {show_step(step)}"))
        seen.add(step)
        found += _at(show_step(step), mistakes(item, list_.of))
    return found


def _key_mistake(item: Any, keys: tuple[tuple[str, Any], ...], list_: ListOf) -> str:
    if item is None:
        return "associative list with keys may not have a null element"
    if not isinstance(item, dict):
        return "associative list with keys may not have non-map elements"
    if any(name in item or default is not None for name, default in keys):
        return ""
    names = " ".join(f'"{name}"' for name in list_.keys)
    return (
        f"associative list with keys has an element that omits all key fields [{names}] "
        "(and doesn't have default values for any key fields)"
    )


def _set_mistake(item: Any) -> str:
    if isinstance(item, dict):
        return "associative list without keys has an element that's a map type"
    if isinstance(item, list):
        return "not supported: associative list with lists as elements"
    return "associative list without keys has an element that's an explicit null" if item is None else ""


def _scalar_mistakes(value: Any, scalar: Scalar) -> list[Mistake]:
    if scalar.name == "any":
        return []
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if scalar.name in _NUMBERS:
        right, sentence = number, f"expected numeric (int or float), got {values.type_name(value)}"
    elif scalar.name in _STRINGS:
        right = isinstance(value, str)
        sentence = f"expected string, got &value.valueUnstructured{{Value:{values.syntax(value)}}}"
    elif scalar.name == "bool":
        right, sentence = isinstance(value, bool), f"expected boolean, got &{{{values.plain(value)}}}"
    else:
        right = not isinstance(value, dict | list)
        sentence = f"expected any scalar, got &{{{values.plain(value)}}}"
    return [] if right else [Mistake(sentence)]


def described(config: Object) -> str:
    """``default/web; apps/v1, Kind=Deployment``: how messages name the object that was sent."""
    meta = config.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    return f"{meta.get('namespace') or ''}/{meta.get('name') or ''}; {group_version_kind(config)}"


def group_version_kind(config: Object) -> str:
    """``/v1, Kind=Service`` or ``apps/v1, Kind=Deployment``."""
    version, kind = config.get("apiVersion"), config.get("kind")
    version = version if isinstance(version, str) else ""
    version = version if "/" in version else "/" + version
    return f"{version}, Kind={kind if isinstance(kind, str) else ''}"
