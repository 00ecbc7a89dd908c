"""A schema compiled into a validator of instances, with Kubernetes' words for every mistake.

``validator(schema)`` is a function that adds mistakes to a list.  Each part of the schema becomes one nested function.
Paths are linked tuples until a mistake needs the text.  ``quick`` says faster whether there are mistakes at all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from seamark.errors import Object
from seamark.kinds.extensions.formats import CHECKS
from seamark.kinds.extensions.regex import compiled
from seamark.kinds.extensions.schemas import EMBEDDED, INT_OR_STRING, LIST_KEYS, LIST_TYPE, extra, items, word_of
from seamark.kinds.values.fields import (
    Errors,
    FieldError,
    duplicate,
    invalid,
    not_supported,
    required,
    show,
    too_long,
    too_many,
)
from seamark.kinds.values.metadata import validate_annotations, validate_labels

At = tuple["At", str | int] | None
# Arguments: the value, the value at this place before an update (ABSENT if there was none), the place, the mistakes.
Check = Callable[[Any, Any, At, Errors], None]

ABSENT: Any = object()

_INT32 = range(-(2**31), 2**31)
_INT64 = range(-(2**63), 2**63)
_CLASSES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def path_text(at: At) -> str:
    """``spec.list[0].name``"""
    if at is None:
        return ""
    before, step = path_text(at[0]), at[1]
    if isinstance(step, int):
        return f"{before}[{step}]"
    return f"{before}.{step}" if before else step


def validator(schema: Object) -> Check:
    """The check of a schema.  What an update leaves as it was is not checked, if the old value is given."""
    checks = [made for make in _MAKERS if (made := make(schema)) is not None]
    type_mistake = _type_check(schema)
    nullable = bool(schema.get("nullable"))

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if old is not ABSENT and old == value:
            return
        if value is None and nullable:
            return
        if type_mistake is not None and type_mistake(value, at, errors):
            return
        for inner in checks:
            inner(value, old, at, errors)

    return check


def later(schema: Object) -> Check:
    """As :func:`validator`, made when the first value needs it: most fields of a large schema are never used."""
    made: Check | None = None

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        nonlocal made
        if made is None:
            made = validator(schema)
        made(value, old, at, errors)

    return check


# --- types ------------------------------------------------------------------------------------------


def _type_check(schema: Object) -> Callable[[Any, At, Errors], bool] | None:
    """Returns whether the value is of the wrong type, so that nothing else is worth saying."""
    word = schema.get("type") or ""
    if schema.get(INT_OR_STRING):
        word = "integer,string"
        classes: tuple[type, ...] = (int, str)
    elif word in _CLASSES:
        classes = _CLASSES[word]
    else:
        return None
    whole = word == "integer"

    def wrong(value: Any, at: At, errors: Errors) -> bool:
        kind = value.__class__
        if kind in classes or (kind is float and whole and value.is_integer()):
            return False
        found, path = word_of(value), path_text(at)
        errors.append(_type_invalid(path, found, f"{path} in body must be of type {word}: {show(found)}"))
        if whole and kind is float:
            errors.append(_nowhere(f"Checked value must be of type integer (default format) in {path}"))
        return True

    return wrong


def _type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(path, "FieldValueTypeInvalid", f"Invalid value: {show(value)}: {detail}")


def _nowhere(detail: str) -> FieldError:
    """A mistake that Kubernetes reports without a field."""
    return FieldError("<nil>", "FieldValueInvalid", f'Invalid value: "": {detail}')


# --- one kind of value each -------------------------------------------------------------------------


def _text_check(schema: Object) -> Check | None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    word = schema.get("format", "").replace("-", "") if schema.get("format") != "date-time" else "date-time"
    format_check = CHECKS.get(schema.get("format", "")) or CHECKS.get(word)
    if longest is None and not shortest and not pattern and format_check is None:
        return None
    matches = compiled(pattern) if pattern else None

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if value.__class__ is not str:
            return
        if longest is not None and len(value) > longest:
            errors.append(too_long(path_text(at), longest))
        if shortest is not None and len(value) < shortest:
            path = path_text(at)
            errors.append(invalid(path, value, f"{path} in body should be at least {shortest} chars long"))
        if matches is not None and not matches(value):
            path = path_text(at)
            errors.append(invalid(path, value, f"{path} in body should match '{pattern}'"))
        if format_check is not None and not format_check(value):
            path = path_text(at)
            detail = f"{path} in body must be of type {schema['format']}: {show(value)}"
            errors.append(_type_invalid(path, value, detail))

    return check


def _number_check(schema: Object) -> Check | None:
    least, most, step = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    allowed = {"int32": _INT32, "int64": _INT64}.get(schema.get("format", ""))
    if schema.get("type") != "integer":
        allowed = None
    if least is None and most is None and not step and allowed is None:
        return None
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if value.__class__ not in (int, float):
            return
        wrong = []
        if allowed is not None and not allowed[0] <= value <= allowed[-1]:
            detail = f"Checked value must be of type integer with format {schema['format']} in {path_text(at)}"
            errors.append(_nowhere(detail))
        if most is not None and (value >= most if below else value > most):
            wrong.append(f"less than {'' if below else 'or equal to '}{_number(most)}")
        if least is not None and (value <= least if above else value < least):
            wrong.append(f"greater than {'' if above else 'or equal to '}{_number(least)}")
        if step and (value / step) % 1:
            wrong.append(f"a multiple of {_number(step)}")
        for detail in wrong:
            path = path_text(at)
            errors.append(invalid(path, value, f"{path} in body should be {detail}"))

    return check


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)


def _enum_check(schema: Object) -> Check | None:
    choices = schema.get("enum")
    if not choices:
        return None
    texts = [choice if isinstance(choice, str) else show(choice) for choice in choices]
    allowed = {_comparable(choice) for choice in choices}

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if _comparable(value) not in allowed:
            errors.append(not_supported(path_text(at), value, texts))

    return check


def _comparable(value: Any) -> Hashable:
    """What equal values have in common, for looking them up; 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, dict):
        return "object", frozenset((name, _comparable(item)) for name, item in value.items())
    if isinstance(value, list):
        return "array", tuple(map(_comparable, value))
    return ("boolean", value) if isinstance(value, bool) else value


# --- lists and objects ------------------------------------------------------------------------------


def _list_check(schema: Object) -> Check | None:
    elements = items(schema)
    most, least = schema.get("maxItems"), schema.get("minItems")
    element = None if elements is None else later(elements)
    list_type, keys = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or ()
    if element is None and most is None and not least:
        return None

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if value.__class__ is not list:
            return
        if most is not None and len(value) > most:
            errors.append(too_many(path_text(at), len(value), most))
        if least is not None and len(value) < least:
            path = path_text(at)
            errors.append(invalid(path, len(value), f"{path} in body should have at least {least} items"))
        if element is not None:
            before = _by_key(old, keys) if list_type == "map" else {}
            for index, item in enumerate(value):
                previous = before.get(_key(item, keys), ABSENT) if before else ABSENT
                element(item, previous, (at, index), errors)
        if list_type in ("set", "map"):
            check_unique(value, keys, list_type, at, errors)

    return check


def _key(item: Any, keys: Any) -> str:
    return show({key: item.get(key) for key in sorted(keys)}) if isinstance(item, dict) else ""


def _by_key(value: Any, keys: Any) -> dict[str, Any]:
    return {_key(item, keys): item for item in value} if isinstance(value, list) else {}


def check_unique(value: list[Any], keys: Any, list_type: str, at: At, errors: Errors) -> None:
    """Report every value that comes a second time, once."""
    seen: dict[str, int] = {}
    for index, item in enumerate(value):
        if list_type == "map":
            if not isinstance(item, dict):
                continue
            item = {key: item[key] for key in keys if key in item}
        text = show(item)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            errors.append(duplicate(path_text((at, index)), item))


def _object_check(schema: Object) -> Check | None:
    given = schema.get("properties") or {}
    properties = {name: later(inner) for name, inner in given.items()}
    needed = tuple(schema.get("required") or ())
    others = extra(schema)
    other = None if others is None else later(others)
    most, least = schema.get("maxProperties"), schema.get("minProperties")
    closed = schema.get("additionalProperties") is False
    if not properties and not needed and other is None and most is None and not least and not closed:
        return None

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if value.__class__ is not dict:
            return
        if most is not None and len(value) > most:
            errors.append(too_many(path_text(at), len(value), most))
        if least is not None and len(value) < least:
            path = path_text(at)
            errors.append(invalid(path, len(value), f"{path} in body should have at least {least} properties"))
        for name in needed:
            if name not in value:
                errors.append(required(path_text((at, name))))
        before = old if old.__class__ is dict else None
        for name, item in value.items():
            inner = properties.get(name, other)
            if inner is not None:
                inner(item, ABSENT if before is None else before.get(name, ABSENT), (at, name), errors)
            elif closed and name not in properties:
                path = path_text(at)
                errors.append(
                    FieldError(
                        path, "FieldValueInvalid", f'Invalid value: "": {path}.{name} in body is a forbidden property'
                    )
                )

    return check


def _embedded_check(schema: Object) -> Check | None:
    if not schema.get(EMBEDDED):
        return None
    from seamark.kinds.extensions.definition import kind_mistakes

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        if value.__class__ is not dict:
            return
        path = path_text(at)
        for name in ("apiVersion", "kind"):
            if not value.get(name):
                errors.append(required(f"{path}.{name}"))
        api_version, word = value.get("apiVersion"), value.get("kind")
        if isinstance(api_version, str) and api_version.count("/") > 1:
            detail = f"unexpected GroupVersion string: {api_version}"
            errors.append(invalid(f"{path}.apiVersion", api_version, detail))
        if word and isinstance(word, str):
            errors += (invalid(f"{path}.kind", word, mistake) for mistake in kind_mistakes(word))
        meta = value.get("metadata")
        if isinstance(meta, dict):
            errors += validate_labels(meta.get("labels") or {}, f"{path}.metadata.labels")
            errors += validate_annotations(meta.get("annotations") or {}, f"{path}.metadata.annotations")

    return check


# --- combinations -----------------------------------------------------------------------------------


def _junctor_check(schema: Object) -> Check | None:
    all_of = [validator(inner) for inner in schema.get("allOf") or ()]
    any_of = [validator(inner) for inner in schema.get("anyOf") or ()]
    one_of = [validator(inner) for inner in schema.get("oneOf") or ()]
    unwanted = None if schema.get("not") is None else validator(schema["not"])
    if not (all_of or any_of or one_of or unwanted):
        return None

    def check(value: Any, old: Any, at: At, errors: Errors) -> None:
        path = f'"{path_text(at)}"'
        if any_of:
            found = [_mistakes(inner, value, at) for inner in any_of]
            if all(found):
                errors.append(_nowhere(f"{path} must validate at least one schema (anyOf)"))
                errors.extend(_fewest(found))
        if one_of:
            found = [_mistakes(inner, value, at) for inner in one_of]
            passed = sum(not mistakes for mistakes in found)
            if passed != 1:
                count = f"{passed} valid alternatives" if passed else "none valid"
                errors.append(_nowhere(f"{path} must validate one and only one schema (oneOf). Found {count}"))
                if not passed:
                    errors.extend(_fewest(found))
        if all_of:
            found = [_mistakes(inner, value, at) for inner in all_of]
            if any(found):
                few = "" if any(not mistakes for mistakes in found) else ". None validated"
                errors.append(_nowhere(f"{path} must validate all the schemas (allOf){few}"))
                for mistakes in found:
                    errors.extend(mistakes)
        if unwanted is not None and not _mistakes(unwanted, value, at):
            errors.append(_nowhere(f"{path} must not validate the schema (not)"))

    return check


def _mistakes(check: Check, value: Any, at: At) -> Errors:
    errors: Errors = []
    check(value, ABSENT, at, errors)
    return errors


def _fewest(found: list[Errors]) -> Errors:
    """The mistakes of the alternative that fits best."""
    return min(found, key=lambda mistakes: len(mistakes))


_MAKERS = (_text_check, _number_check, _enum_check, _list_check, _object_check, _embedded_check, _junctor_check)
