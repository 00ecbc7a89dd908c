"""What the versions of a definition must satisfy: their names, columns, subresources and selectable fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.extensions import jsonpaths, structural
from seamark.kinds.values.fields import Errors, duplicate, invalid, required, too_many
from seamark.kinds.values.metadata import dns_1035_label

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_LONGEST_WARNING = 256
_SELECTABLE = ("string", "boolean", "integer")
_version = re.compile(r"v(\d{1,63})(?:(alpha|beta)(\d{1,63}))?")


def priority(version: str) -> tuple[int, int, int, str]:
    """Sorts versions as clients prefer them: v2, v1, v1beta1, v1alpha1, then all others by name."""
    found = _version.fullmatch(version)
    if found is None:
        return 3, 0, 0, version
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return stage, -int(found[1]), -int(found[3] or 0), version


def mistakes(versions: Sequence[Any], before: Sequence[Any] = ()) -> Errors:
    """Everything wrong with the versions of a definition.

    A schema that is as it was ``before`` is not looked at again: it stays, whatever rules for schemas there are now.
    """
    errors: Errors = []
    known = {version.get("name"): version.get("schema") for version in before}
    names = [version.get("name", "") for version in versions]
    if len(set(names)) != len(names):
        errors.append(invalid("spec.versions", names, "must contain unique version names"))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        errors.append(invalid("spec.versions", versions, "must have exactly one version marked as storage version"))
    for index, version in enumerate(versions):
        is_new = version.get("schema") != known.get(version.get("name"))
        errors += _version_mistakes(version, index, alone=len(versions) == 1, is_new=is_new)
    return errors


def _version_mistakes(version: Object, index: int, *, alone: bool, is_new: bool) -> Errors:
    """``alone`` says that there is one version only: Kubernetes then names its parts as if they were of the spec.

    ``is_new`` says that its schema has changed.
    """
    errors: Errors = []
    at = f"spec.versions[{index}]"
    name = version.get("name", "")
    for mistake in dns_1035_label(name):
        errors += [invalid("spec.version", name, mistake)] if index == 0 else []
        errors.append(invalid(f"{at}.name", name, mistake))
    if (text := version.get("deprecationWarning")) is not None:
        wrong = _warning_mistakes(text) if version.get("deprecated") else ["can only be set for deprecated versions"]
        errors += (invalid(f"{at}.deprecationWarning", text, mistake) for mistake in wrong)
    place = "spec" if alone else at
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        errors.append(required(f"{at}.schema.openAPIV3Schema"))
    elif is_new:
        where = "spec.validation" if alone else f"{at}.schema"
        has_status = (version.get("subresources") or {}).get("status") is not None
        errors += structural.mistakes(schema, f"{where}.openAPIV3Schema", has_status=has_status)
    for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
        errors += _column_mistakes(column, f"{place}.additionalPrinterColumns[{number}]")
    if (scale := (version.get("subresources") or {}).get("scale")) is not None:
        errors += _scale_mistakes(scale, f"{place}.subresources.scale")
    return errors + _selectable_mistakes(version, schema or {}, f"{place}.selectableFields")


def _warning_mistakes(text: str) -> list[str]:
    found = []
    if len(text.encode()) > _LONGEST_WARNING:
        found.append(f"must be <= {_LONGEST_WARNING} characters long")
    if not text:
        found.append("must not be an empty string")
    for index, letter in enumerate(text):
        if not letter.isprintable():
            place = len(text[:index].encode())
            found.append(
                f"must only contain printable UTF-8 characters; non-printable character found at index {place}"
            )
            break
    return found


def _column_mistakes(column: Object, at: str) -> Errors:
    errors: Errors = []
    if not column.get("name"):
        errors.append(required(f"{at}.name"))
    word, form, path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    if not word:
        errors.append(required(f"{at}.type", f"must be one of {','.join(_COLUMN_TYPES)}"))
    elif word not in _COLUMN_TYPES:
        errors.append(invalid(f"{at}.type", word, f"must be one of {','.join(_COLUMN_TYPES)}"))
    if form and form not in _COLUMN_FORMATS:
        errors.append(invalid(f"{at}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}"))
    if not path:
        errors.append(required(f"{at}.JSONPath"))
    elif not path.startswith("."):  # No more is asked of it: such columns are then not shown.
        errors.append(invalid(f"{at}.JSONPath", path, "must be a simple json path starting with ."))
    return errors


def _path_mistakes(path: str, at: str) -> Errors:
    if not path:
        return [required(at)]
    return [] if jsonpaths.is_simple(path) else [invalid(at, path, "must be a simple json path starting with .")]


def _scale_mistakes(scale: Object, at: str) -> Errors:
    errors: Errors = []
    for field, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = scale.get(field, "")
        wrong = _path_mistakes(path, f"{at}.{field}")
        if not wrong and not path.startswith(f"{root}."):
            wrong = [invalid(f"{at}.{field}", path, f"should be a json path under {root}")]
        errors += wrong
    path = scale.get("labelSelectorPath") or ""
    if path:
        wrong = _path_mistakes(path, f"{at}.labelSelectorPath")
        if not wrong and not path.startswith((".spec.", ".status.")):
            detail = "should be a json path under either .spec or .status"
            wrong = [invalid(f"{at}.labelSelectorPath", path, detail)]
        errors += wrong
    return errors


def _selectable_mistakes(version: Object, schema: Object, at: str) -> Errors:
    errors: Errors = []
    seen = set()
    for index, field in enumerate(version.get("selectableFields") or ()):
        path, place = field.get("jsonPath", ""), f"{at}[{index}].jsonPath"
        if not path:
            errors.append(required(place))
        elif path in seen:
            errors.append(duplicate(place, path))
        elif mistake := _selectable_mistake(path, schema):
            errors.append(invalid(place, path, mistake))
        else:
            seen.add(path)
    return errors + ([too_many(at, len(seen), _MOST_SELECTABLE)] if len(seen) > _MOST_SELECTABLE else [])


def _selectable_mistake(path: str, schema: Object) -> str:
    if not path.startswith((".", "[")):
        return f"is an invalid path: expected [ or . but got: {path.partition('.')[0]}"
    steps = jsonpaths.steps(path)
    if steps is not None and not all(isinstance(step, str) for step in steps):
        return "is an invalid path: array notation is not allowed"
    found: Any = schema
    for step in steps or ("",):
        found = (found.get("properties") or {}).get(step)
        if found is None or step == "metadata":
            return "is an invalid path: does not refer to a valid field"
    if found.get("type") not in _SELECTABLE:
        allowed = "string, boolean or integer. Enum string fields and strings with formats are allowed."
        return f"must point to a field of type {allowed}"
    return ""
