"""Strategic merge patch: a merge patch that knows which lists are merged, by which key, and a few directives.

    $patch: replace | delete          on a map: take the patch as it is, or empty the map
    {$patch: delete, <key>: …}        in a merged list: remove that element
    {$patch: replace}                 in a merged list: the patch's other elements are the whole list
    $retainKeys: […]                  on a map: drop every key that is not listed
    $deleteFromPrimitiveList/x: […]   remove these values from the list x
    $setElementOrder/x: […]           put the elements of the list x into this order

Without an order of its own a merged list has the patch's elements in the patch's order; the others stay before those
that followed them.  Kubernetes answers some mistakes with 400 or 422, and most with a bare 500: so does this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from seamark.api.fields import values
from seamark.errors import ApiError, BadRequest, Invalid, Object
from seamark.kinds.language.shape import Field, ListOf, MapOf, Shape, Type

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_PREFIX = "$deleteFromPrimitiveList"
ORDER_PREFIX = "$setElementOrder"

_REJECTED = "the server rejected our request due to an error in our request"


def merge(original: Object, patch: Object, type_: Type) -> Object:
    """``original`` with ``patch`` merged into it; the result shares unchanged parts with both."""
    if DIRECTIVE in patch:
        return _directed(patch)
    original, patch = dict(original), dict(patch)
    _retain_keys(original, patch)
    _merge_ordered(original, patch, type_)
    deletions = [key for key in patch if key.startswith(DELETE_PREFIX)]
    for key in [*(key for key in patch if not key.startswith(DELETE_PREFIX)), *deletions]:
        name = _field_after(key, DELETE_PREFIX) if key in deletions else key
        value = patch[key]
        if value is None:
            original.pop(name, None)
        elif isinstance(value, dict) and isinstance(original.get(name), dict):
            original[name] = _merge_maps(original[name], value, name, type_)
        elif isinstance(value, list) and isinstance(original.get(name), list):
            original[name] = _merge_lists(original[name], value, name, type_, deleting=key in deletions)
        elif key not in deletions:
            _take(original, name, value)
    return original


def remains(patch: Object) -> str:
    """The patch as messages show it: merging it, Kubernetes takes directives and ordered lists out of it."""
    return values.plain(_remains(patch))


def _remains(value: Any) -> Any:
    if isinstance(value, list):
        return [_remains(item) for item in value]
    if not isinstance(value, dict):
        return value
    if DIRECTIVE in value:
        return _directed(value) if value[DIRECTIVE] == "replace" else value
    ordered = {key.removeprefix(f"{ORDER_PREFIX}/") for key in value if key.startswith(ORDER_PREFIX)}
    return {
        key: _remains(item)
        for key, item in value.items()
        if key != RETAIN_KEYS and key not in ordered and not key.startswith(ORDER_PREFIX)
    }


def _directed(patch: Object) -> Object:
    directive = patch[DIRECTIVE]
    if directive == "replace":
        return {key: value for key, value in patch.items() if key != DIRECTIVE}
    if directive == "delete":
        return {}
    raise _unknown_directive(patch)


def _take(original: Object, name: str, value: Any) -> None:
    """A value that has nothing to be merged with."""
    if isinstance(value, dict) and DIRECTIVE in value:
        original.pop(name, None)
    else:
        original[name] = _undirected(value)


def _undirected(value: Any) -> Any:
    """Without nulls and without parts that are directives: there is nothing for them to remove or replace."""
    if isinstance(value, dict):
        return {
            key: _undirected(item)
            for key, item in value.items()
            if item is not None and not (isinstance(item, dict) and DIRECTIVE in item)
        }
    if isinstance(value, list):
        return [_undirected(item) for item in value if not (isinstance(item, dict) and DIRECTIVE in item)]
    return value


def _retain_keys(original: Object, patch: Object) -> None:
    if RETAIN_KEYS not in patch:
        return
    keys = patch.pop(RETAIN_KEYS)
    if not isinstance(keys, list):
        raise BadRequest("invalid patch format of retainKeys")
    for key, value in patch.items():
        if value is not None and not key.startswith((DELETE_PREFIX, ORDER_PREFIX)) and key not in keys:
            raise BadRequest("invalid patch format of retainKeys")
    for key in [key for key in original if key not in keys]:
        del original[key]


# --- what the shape says ----------------------------------------------------------------------------


def _field(name: str, type_: Type) -> Field | None:
    """The field of this name in a struct; None inside maps, because their values have no rules."""
    if not isinstance(type_, Shape):
        return None
    field = type_.fields.get(name)
    if field is None:
        raise ApiError(f'unable to find api field in struct {type_.go_name} for the json field "{name}"')
    return field


def _strategy(field: Field | None) -> str:
    """``merge``, ``replace`` or ""; the strategy retainKeys matters only to clients that make patches."""
    words = field.patch_strategy.split(",") if field else []
    return next((word for word in words if word != "retainKeys"), "")


def _field_after(key: str, prefix: str) -> str:
    word, slash, name = key.partition("/")
    if word == prefix and slash:
        return name
    what = "primitive list" if prefix == DELETE_PREFIX else "setElementOrder list"
    raise BadRequest(f"invalid patch format of {what}")


# --- merging ----------------------------------------------------------------------------------------


def _merge_maps(original: Object, patch: Object, name: str, type_: Type) -> Object:
    field = _field(name, type_)
    if _strategy(field) == "replace":
        return patch
    if field is None:
        return merge(original, patch, type_.of if isinstance(type_, MapOf) else type_)
    return merge(original, patch, field.type)


def _merge_lists(original: list[Any], patch: list[Any], name: str, type_: Type, *, deleting: bool) -> list[Any]:
    field = _field(name, type_)
    if field is None or _strategy(field) != "merge":
        return patch
    if not original and not patch:
        return original
    if not _are_maps(original, patch):
        if deleting:
            unwanted = {_token(item) for item in patch}
            return [item for item in original if _token(item) not in unwanted]
        both = {_token(item): item for item in [*original, *patch]}
        return _arranged(list(both.values()), patch, original, _token)
    key = field.merge_key
    if not key:
        raise ApiError("cannot merge lists without merge key for struct")
    of = field.type.of if isinstance(field.type, ListOf) else field.type
    original, patch = _without_directives(original, patch, key)
    server_order = list(original)
    return _arranged(_merge_elements(original, patch, key, of), patch, server_order, _keyed(key))


def _without_directives(original: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """The original after the patch's deletions, and the patch's plain elements."""
    rest: list[Any] = []
    deleted: set[Token] = set()
    replace = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if DIRECTIVE not in item:
            rest.append(item)
        elif directive == "delete":
            if key not in item:
                raise _no_key(item, key)
            deleted.add(_token(item[key]))
        elif directive == "replace":
            replace = True
        elif directive == "merge":
            raise ApiError("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(item)
    if replace:
        return rest, []
    return [item for item in original if key not in item or _token(item[key]) not in deleted], rest


def _merge_elements(original: list[Any], patch: list[Any], key: str, of: Type) -> list[Any]:
    merged = list(original)
    # Of several elements with the same key only the first is merged with.
    places: dict[Token, int] = {}
    for place, item in enumerate(merged):
        if key in item:
            places.setdefault(_token(item[key]), place)
    for item in patch:
        if key not in item:
            raise _no_key(item, key)
        token = _token(item[key])
        if token in places:
            merged[places[token]] = merge(merged[places[token]], item, of)
        else:
            places[token] = len(merged)
            merged.append(item)
    return merged


# --- order ------------------------------------------------------------------------------------------

# A hashable key for a value: values that differ as JSON (1, 1.0, true) have different tokens.
Token = str | tuple[type, bytes]


def _token(value: Any) -> Token:
    return value if value.__class__ is str else (value.__class__, msgspec.json.encode(value))


def _keyed(key: str) -> Callable[[Any], Token]:
    def token(item: Any) -> Token:
        if not isinstance(item, dict):
            raise _wrong_type("map[string]interface {}", item)
        if key not in item:
            raise _no_key(item, key)
        return _token(item[key])

    return token


def _places(items: list[Any], token: Callable[[Any], Token]) -> dict[Token, int]:
    places: dict[Token, int] = {}
    for place, item in enumerate(items):
        places.setdefault(token(item), place)
    return places


def _arranged(items: list[Any], order: list[Any], server_order: list[Any], token: Callable[[Any], Token]) -> list[Any]:
    """Items that ``order`` lists, in its order, and the others in the server's, each before what followed it there."""
    wanted, places = _places(order, token), _places(server_order, token)
    chosen = sorted((item for item in items if token(item) in wanted), key=lambda item: wanted[token(item)])
    others = [item for item in items if token(item) not in wanted]
    others.sort(key=lambda item: places.get(token(item), len(places)))
    out: list[Any] = []
    i = j = 0
    while i < len(chosen) and j < len(others):
        mine, theirs = places.get(token(others[j])), places.get(token(chosen[i]))
        if mine is not None and theirs is not None and mine < theirs:
            out.append(others[j])
            j += 1
        else:
            out.append(chosen[i])
            i += 1
    return out + chosen[i:] + others[j:]


def _merge_ordered(original: Object, patch: Object, type_: Type) -> None:
    """Carries out ``$setElementOrder`` directives, together with the lists they are about."""
    for directive in [key for key in patch if key.startswith(ORDER_PREFIX)]:
        order = patch.pop(directive)
        _must_be_list(order)
        name = _field_after(directive, ORDER_PREFIX)
        for owner in (original, patch):
            if name in owner:
                _must_be_list(owner[name])
        field = _field(name, type_)
        key = field.merge_key if field else ""
        token = _keyed(key) if key else _token
        mine, theirs = original.get(name), patch.get(name)
        _check_order(theirs or [], order, token)
        if mine is None and theirs is None:
            continue
        server_order = list(mine or [])
        if theirs is None:
            merged = server_order
        elif mine is None:
            merged = theirs
        else:
            merged = _merge_lists(mine, theirs, name, type_, deleting=False)
        _are_maps(server_order, theirs or [])
        original[name] = _arranged(merged, order, server_order, token)
        patch.pop(name, None)


def _check_order(patch: list[Any], order: list[Any], token: Callable[[Any], Token]) -> None:
    """The patch's elements must come in the same order in the list that orders them."""
    if not patch or not order:
        return
    plain = [item for item in patch if not (isinstance(item, dict) and DIRECTIVE in item)]
    matched = 0
    for item in order:
        if matched < len(plain) and token(plain[matched]) == token(item):
            matched += 1
    if matched < len(plain):
        raise ApiError(
            f"The order in patch list:\n{values.plain(patch)}\n doesn't match {ORDER_PREFIX} list:\n"
            f"{values.plain(order)}\n"
        )


# --- mistakes ---------------------------------------------------------------------------------------


def _are_maps(*lists: list[Any]) -> bool:
    """Whether the elements are maps; all of them must be of one type, and not lists."""
    types = {values.type_name(item) for list_ in lists for item in list_}
    if not types:
        raise ApiError("no elements in any of the given slices")
    if "[]interface {}" in types:
        raise Invalid(_REJECTED, details={})
    if len(types) > 1 or "<nil>" in types:
        raise ApiError(f"list element types are not identical: {values.plain(list(lists))}")
    return "map[string]interface {}" in types


def _must_be_list(value: Any) -> None:
    if not isinstance(value, list):
        raise _wrong_type("[]interface {}", value)


def _wrong_type(expected: str, value: Any) -> ApiError:
    received = "%!s(<nil>)" if value is None else values.type_name(value)
    return ApiError(f"expected a {expected}, but received a {received}")


def _no_key(item: Object, key: str) -> ApiError:
    return ApiError(f"map: {values.plain(item)} does not contain declared merge key: {key}")


def _unknown_directive(patch: Object) -> ApiError:
    return ApiError(f"unknown patch type: {values.plain(patch[DIRECTIVE])} in map: {values.plain(patch)}")
