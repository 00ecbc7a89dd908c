"""Removes from objects what their schema does not know, and fills in its defaults.

Both are compiled once from a schema, into nested functions; a part of the schema that has nothing to do is None.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from seamark.errors import Object
from seamark.kinds.extensions.schemas import EMBEDDED, PRESERVE, extra, items
from seamark.kinds.language import shapes
from seamark.kinds.language.decode import conform

# Returns the value without its unknown fields, whose paths it adds to the list.  The value itself is not edited.
Prune = Callable[[Any, str, list[str]], Any]
# Fills in defaults and drops nulls, in place.
Fill = Callable[[Any], None]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_WHOLE = frozenset({"apiVersion", "kind", "metadata"})


def pruner(schema: Object) -> Prune:
    """The function that removes unknown fields from whole instances; apiVersion, kind and metadata always stay."""
    return _object_pruner(schema, _WHOLE)


def _pruner(schema: Object) -> Prune | None:
    if schema.get(EMBEDDED):
        return _embedded_pruner(schema)
    if schema.get("properties") or extra(schema) is not None or schema.get("type") == "object":
        if schema.get(PRESERVE) and not schema.get("properties"):
            return None
        return _object_pruner(schema, frozenset())
    elements = items(schema)
    inner = None if elements is None else _pruner(elements)
    if inner is None:
        return None

    def prune_list(value: Any, at: str, unknown: list[str]) -> Any:
        if value.__class__ is not list:
            return value
        return [inner(item, f"{at}[{index}]", unknown) for index, item in enumerate(value)]

    return prune_list


def _object_pruner(schema: Object, always: frozenset[str]) -> Prune:
    known = {name: _pruner(inner) for name, inner in (schema.get("properties") or {}).items()}
    known |= dict.fromkeys(always)
    others = extra(schema)
    keeps = bool(schema.get(PRESERVE)) or others is not None or schema.get("additionalProperties") is True
    prune_other = None if others is None else _pruner(others)

    def prune_object(value: Any, at: str, unknown: list[str]) -> Any:
        if value.__class__ is not dict:
            return value
        out = {}
        for name, item in value.items():
            if name in known:
                inner = known[name]
            elif keeps:
                inner = prune_other
            else:
                unknown.append(f"{at}.{name}" if at else name)
                continue
            if inner is not None and item.__class__ in (dict, list):
                item = inner(item, f"{at}.{name}" if at else name, unknown)
            out[name] = item
        return out

    return prune_object


def _embedded_pruner(schema: Object) -> Prune:
    """An object inside an object: its metadata is that of any object."""
    prune = _object_pruner(schema, _WHOLE)

    def prune_embedded(value: Any, at: str, unknown: list[str]) -> Any:
        out = prune(value, at, unknown)
        if isinstance(out, dict) and isinstance(meta := out.get("metadata"), dict):
            out["metadata"], more = conform(meta, shapes.of(_META))
            if not meta.get("creationTimestamp"):
                out["metadata"].pop("creationTimestamp", None)
            unknown += (f"{at}.metadata.{path}" for path in more)
        return out

    return prune_embedded


def filler(schema: Object) -> Fill | None:
    """The function that fills in the defaults of a schema and drops nulls where the schema allows none."""
    properties = schema.get("properties") or {}
    defaults = [(name, inner["default"]) for name, inner in properties.items() if "default" in inner]
    fills = [(name, fill) for name, inner in properties.items() if (fill := filler(inner)) is not None]
    not_null = frozenset(name for name, inner in properties.items() if not _nullable(inner))
    others, elements = extra(schema), items(schema)
    fill_other = None if others is None else filler(others)
    fill_element = None if elements is None else filler(elements)
    others_not_null = others is not None and not _nullable(others)

    def fill_object(value: Any) -> None:
        if value.__class__ is not dict:
            return
        nulls = [name for name, item in value.items() if item is None]
        for name in nulls:
            if name in not_null or (others_not_null and name not in properties):
                del value[name]
        for name, default in defaults:
            if name not in value:
                value[name] = deepcopy(default)
        for name, fill in fills:
            if name in value:
                fill(value[name])
        if fill_other is not None:
            for name, item in value.items():
                if name not in properties:
                    fill_other(item)

    def fill_list(value: Any) -> None:
        if value.__class__ is list and fill_element is not None:
            for item in value:
                fill_element(item)

    if properties or others is not None:
        return fill_object
    return fill_list if fill_element is not None else None


def _nullable(schema: Object) -> bool:
    """Whether null may stay: if the schema says so, or says nothing of the type."""
    return bool(schema.get("nullable")) or not (schema.get("type") or "default" in schema)
