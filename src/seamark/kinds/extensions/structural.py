"""What a schema must satisfy to be structural: every field has a type, and combinations only restrict values."""

from __future__ import annotations

from seamark.errors import Object
from seamark.haste import spend
from seamark.kinds.extensions import filling
from seamark.kinds.extensions.checking import ABSENT, validator
from seamark.kinds.extensions.regex import PatternError, compiled
from seamark.kinds.extensions.schemas import (
    EMBEDDED,
    INT_OR_STRING,
    LIST_KEYS,
    LIST_TYPE,
    MAP_TYPE,
    PRESERVE,
    RULES,
    below,
    has_rules,
    items,
)
from seamark.kinds.language.decode import DecodeError
from seamark.kinds.values.fields import Errors, FieldError, forbidden, invalid, not_supported, required

_STEPS = 500  # how many steps it takes to check one part of a schema
_TYPES = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED = ("definitions", "dependencies", "patternProperties", "additionalItems", "id")
_JUNCTORS = ("allOf", "anyOf", "oneOf", "not")

# What may not be inside a combination, and what must be there instead.
_NOT_INSIDE = {
    "type": "empty",
    "description": "empty",
    "title": "empty",
    "default": "undefined",
    "additionalProperties": "undefined",
    "nullable": "false",
    PRESERVE: "false",
    EMBEDDED: "false",
    INT_OR_STRING: "false",
    LIST_TYPE: "undefined",
    LIST_KEYS: "empty",
    MAP_TYPE: "undefined",
    RULES: "empty",
}
# What the schema of an object may say of itself when its status has an address of its own.
_WITH_STATUS = (
    *("description", "type", "format", "title", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"),
    *("maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems", "multipleOf", "required", "items"),
    *("properties", "externalDocs", "example", PRESERVE, RULES),
)
_NUMBER_OR_TEXT = [{"type": "integer"}, {"type": "string"}]


def mistakes(schema: Object, at: str, *, has_status: bool = False) -> Errors:
    """Everything wrong with the schema of a version, which is at this path of the definition."""
    errors: Errors = []
    if has_status and any(value and field not in _WITH_STATUS for field, value in schema.items()):
        allowed = " ".join(field[:1].upper() + field[1:] for field in _WITH_STATUS[:-2])
        detail = f"only [{allowed} XPreserveUnknownFields XValidations] fields are allowed at the root of the schema"
        errors.append(invalid(at, schema, f"{detail} if the status subresource is enabled"))
    if schema.get("nullable"):
        errors.append(forbidden(f"{at}.nullable", "nullable cannot be true at the root"))
    return errors + _root_mistakes(schema, at)


def _root_mistakes(schema: Object, at: str) -> Errors:
    word = schema.get("type", "")
    if not word:
        return [required(f"{at}.type", "must not be empty at the root")]
    if word != "object":
        return [invalid(f"{at}.type", word, "must be object at the root")]
    if schema.get("additionalProperties") is not None:
        return [forbidden(f"{at}.additionalProperties", "must not be used at the root")]
    errors = _fixed_fields(schema, at) + _schema_mistakes(schema, at)
    # A default is checked by the schema around it, which must be in order for that.
    errors = errors or _default_mistakes(schema, at)
    if errors or not has_rules(schema):
        return errors
    from seamark.kinds.extensions import rule_checks

    return rule_checks.mistakes(schema, at)


def _fixed_fields(schema: Object, at: str) -> Errors:
    """What is wrong with apiVersion, kind and metadata, which every object has."""
    errors: Errors = []
    for name, word in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        field = (schema.get("properties") or {}).get(name)
        if field is None:
            continue
        path = f"{at}.properties[{name}]"
        if field.get("type", word) != word:
            errors.append(invalid(f"{path}.type", field["type"], f"must be {word}"))
        elif name == "metadata" and not _only_names(field):
            detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(path, detail))
    return errors


def _only_names(field: Object) -> bool:
    words = set(field) - {"type", "description", "properties"}
    return not words and set(field.get("properties") or ()) <= {"name", "generateName"}


def _schema_mistakes(schema: Object, at: str) -> Errors:
    errors = _type_mistakes(schema, at) + _keyword_mistakes(schema, at) + _list_mistakes(schema, at)
    for name in _JUNCTORS:
        errors += _junctor_mistakes(schema, name, at)
    for path, inner in below(schema):
        if path.partition("[")[0] in _JUNCTORS:
            continue
        place = f"{at}.{path}"
        if not inner.get("type") and not inner.get(INT_OR_STRING) and not inner.get(PRESERVE):
            what = "array items" if path == "items" else "object fields"
            errors.append(required(f"{place}.type", f"must not be empty for specified {what}"))
            continue
        errors += _schema_mistakes(inner, place)
    return errors


def _type_mistakes(schema: Object, at: str) -> Errors:
    errors: Errors = []
    word = schema.get("type", "")
    if word == "null":
        errors.append(forbidden(f"{at}.type", "type cannot be set to null, use nullable as an alternative"))
    if word and word not in _TYPES:
        errors.append(not_supported(f"{at}.type", word, _TYPES))
    if word == "array" and schema.get("items") is None:
        errors.append(required(f"{at}.items", "must be specified"))
    if isinstance(schema.get("items"), list):
        errors.append(forbidden(f"{at}.items", "items must be a schema object and not an array"))
    if schema.get(PRESERVE) is False:
        errors.append(invalid(f"{at}.{PRESERVE}", False, "must be true or undefined"))
    if schema.get(EMBEDDED):
        if word != "object":
            errors.append(invalid(f"{at}.type", word, f"must be object if {EMBEDDED} is true"))
        if not schema.get("properties") and not schema.get(PRESERVE):
            errors.append(required(f"{at}.properties", f"must not be empty if {EMBEDDED} is true without {PRESERVE}"))
    map_type = schema.get(MAP_TYPE)
    if map_type is not None:
        if map_type not in ("atomic", "granular"):
            errors.append(not_supported(f"{at}.{MAP_TYPE}", map_type, ("atomic", "granular")))
        if word != "object":
            errors.append(invalid(f"{at}.type", word, f"must be object if {MAP_TYPE} is specified"))
    return errors


def _keyword_mistakes(schema: Object, at: str) -> Errors:
    spend(_STEPS)
    errors = [forbidden(f"{at}.{word}", f"{word} is not supported") for word in _UNSUPPORTED if schema.get(word)]
    if schema.get("$ref") is not None:
        errors.append(forbidden(f"{at}.$ref", "$ref is not supported"))
    if schema.get("uniqueItems"):
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        errors.append(forbidden(f"{at}.uniqueItems", detail))
    if schema.get("additionalProperties") is not None and schema.get("properties"):
        detail = "additionalProperties and properties are mutual exclusive"
        errors.append(forbidden(f"{at}.additionalProperties", detail))
    if pattern := schema.get("pattern"):
        try:
            compiled(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            errors.append(invalid(f"{at}.pattern", pattern, detail))
    return errors


def _list_mistakes(schema: Object, at: str) -> Errors:
    list_type, keys, elements = schema.get(LIST_TYPE), schema.get(LIST_KEYS) or [], items(schema) or {}
    if list_type is None:
        if keys:
            return [required(f"{at}.{LIST_TYPE}", f"must be map if {LIST_KEYS} is non-empty")]
        return []
    if schema.get("type") != "array":
        word = schema.get("type", "")
        return [invalid(f"{at}.type", word, f"must be array if {LIST_TYPE} is specified")]
    if list_type not in ("atomic", "set", "map"):
        return [not_supported(f"{at}.{LIST_TYPE}", list_type, ("atomic", "set", "map"))]
    if list_type == "map":
        return _map_list_mistakes(keys, elements, at)
    errors: Errors = []
    if keys:
        errors.append(invalid(f"{at}.{LIST_TYPE}", list_type, f"must be map if {LIST_KEYS} is non-empty"))
    if list_type == "set":
        for word, key in (("object", MAP_TYPE), ("array", LIST_TYPE)):
            if elements.get("type") == word and elements.get(key, word == "array" and "atomic") != "atomic":
                detail = f"must be atomic as item of a list with {LIST_TYPE}=set"
                errors.append(invalid(f"{at}.items.{key}", elements.get(key), detail))
        if elements.get("nullable"):
            errors.append(forbidden(f"{at}.items.nullable", f"cannot be nullable when {LIST_TYPE} is set"))
    return errors


def _map_list_mistakes(keys: list[str], elements: Object, at: str) -> Errors:
    if elements.get("type") != "object":
        detail = f"must be object if parent array's {LIST_TYPE} is map"
        return [invalid(f"{at}.items.type", elements.get("type", ""), detail)]
    if not keys:
        return [required(f"{at}.{LIST_KEYS}", f"must not be empty if {LIST_TYPE} is map")]
    errors: Errors = []
    properties, needed = elements.get("properties") or {}, elements.get("required") or ()
    if not set(keys) <= set(properties):
        errors.append(invalid(f"{at}.{LIST_KEYS}", keys, "entries must all be names of item properties"))
    if len(set(keys)) != len(keys):
        errors.append(invalid(f"{at}.{LIST_KEYS}", keys, "must not contain duplicate entries"))
    for key in keys:
        field = properties.get(key)
        if field is None:
            continue
        path = f"{at}.items.properties[{key}]"
        if field.get("type") in ("array", "object"):
            detail = f"must be a scalar type if parent array's {LIST_TYPE} is map"
            errors.append(invalid(f"{path}.type", "object", detail))
        if "default" not in field and key not in needed:
            detail = f"this property is in {LIST_KEYS}, so it must have a default or be a required property"
            errors.append(required(f"{path}.default", detail))
        if field.get("nullable"):
            detail = f"this property is in {LIST_KEYS}, so it cannot be nullable"
            errors.append(forbidden(f"{path}.nullable", detail))
    return errors


# --- combinations -----------------------------------------------------------------------------------


def _junctor_mistakes(schema: Object, name: str, at: str) -> Errors:
    given = schema.get(name)
    if not given:
        return []
    places = [(f"{at}.{name}", given)] if name == "not" else [(f"{at}.{name}[{i}]", s) for i, s in enumerate(given)]
    if schema.get(INT_OR_STRING):
        if name == "anyOf" and given == _NUMBER_OR_TEXT:
            return []
        if name == "allOf" and given[0].get("anyOf") == _NUMBER_OR_TEXT:
            places[0] = places[0][0], {word: value for word, value in given[0].items() if word != "anyOf"}
    return [mistake for place, inner in places for mistake in _inside_mistakes(inner, place)]


def _inside_mistakes(schema: Object, at: str) -> Errors:
    errors = [
        forbidden(f"{at}.{word}", f"must be {instead} to be structural")
        for word, instead in _NOT_INSIDE.items()
        if schema.get(word) or (word in ("default", "additionalProperties") and schema.get(word) is not None)
    ]
    errors += _keyword_mistakes({word: value for word, value in schema.items() if word != "additionalProperties"}, at)
    for path, inner in below(schema):
        if path != "additionalProperties":
            errors += _inside_mistakes(inner, f"{at}.{path}")
    return errors


# --- defaults ---------------------------------------------------------------------------------------


def _default_mistakes(schema: Object, at: str) -> Errors:
    errors: Errors = []
    for path, inner in below(schema):
        place = f"{at}.{path}"
        if "default" in inner:
            errors += _default_mistake(inner, f"{place}.default")
        errors += _default_mistakes(inner, place)
    return errors


def _default_mistake(schema: Object, at: str) -> Errors:
    """What the schema says of its own default."""
    value = schema["default"]
    unknown: filling.Unknown = []
    wrapped = {"type": "object", "properties": {"value": {**schema, "default": None}}}
    try:
        filling.pruner(wrapped)({"value": value}, None, unknown)
    except DecodeError as error:
        return [invalid(at, value, str(error))]
    if unknown:
        return [invalid(at, value, "must not have unknown fields")]
    errors: Errors = []
    validator(schema)(value, ABSENT, None, errors)
    return [FieldError(f"{at}{_below(error.field)}", error.reason, error.message) for error in errors]


def _below(field: str) -> str:
    if not field or field == "<nil>":
        return ""
    return field if field.startswith("[") else f".{field}"
