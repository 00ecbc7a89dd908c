"""Validation of ``metadata``: names, labels, annotations, owners and finalizers, the same for every kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, alike, forbidden, immutable, invalid, repeated, required, too_long

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_label = re.compile(_LABEL)
_LETTER_FIRST = "[a-z]([-a-z0-9]*[a-z0-9])?"
_letter_first = re.compile(_LETTER_FIRST)
_subdomain = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_qualified = re.compile(_QUALIFIED)
_label_value = re.compile(f"({_QUALIFIED})?")

TOTAL_ANNOTATIONS_LIMIT = 256 * 1024
_OWNER_FIELDS = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")  # in Go's order


def _length(limit: int, unit: str = "characters") -> str:
    # Kubernetes 1.38 counts bytes in labels and still says characters of names.
    return f"must be no more than {limit} {unit}"


def _masked(name: str, prefix: bool) -> str:
    """A name to validate; in a generateName the trailing dash is replaced, because characters will follow it."""
    return name[:-1] + "a" if prefix and len(name) > 1 and name.endswith("-") else name


def dns_label(name: str, *, prefix: bool = False) -> list[str]:
    """What is wrong with an RFC 1123 label; empty if nothing."""
    name = _masked(name, prefix)
    wrong = [_length(63)] if len(name) > 63 else []
    if _label.fullmatch(name):
        return wrong
    if _subdomain.fullmatch(name):
        wrong.append("must not contain dots")
    else:
        wrong.append(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and "
            "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            f"'{_LABEL}')"
        )
    return wrong


def dns_1035_label(name: str) -> list[str]:
    """What is wrong with an RFC 1035 label, which begins with a letter; empty if nothing."""
    wrong = [_length(63)] if len(name) > 63 else []
    if not _letter_first.fullmatch(name):
        wrong.append(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
            f"validation is '{_LETTER_FIRST}')"
        )
    return wrong


def dns_subdomain(name: str, *, prefix: bool = False, unit: str = "characters") -> list[str]:
    """What is wrong with an RFC 1123 subdomain; empty if nothing."""
    name = _masked(name, prefix)
    wrong = [_length(253, unit)] if len(name) > 253 else []
    if not _subdomain.fullmatch(name):
        wrong.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            rf"'{_LABEL}(\.{_LABEL})*')"
        )
    return wrong


def path_segment(name: str, *, prefix: bool = False) -> list[str]:
    """Why a name cannot be one segment of a URL path; empty if it can."""
    wrong = []
    if not prefix and name in (".", ".."):
        wrong.append(f"may not be '{name}'")
    wrong += [f"may not contain '{char}'" for char in "/%" if char in name]
    if "\0" in name:  # Kubernetes allows it; our stores do not
        wrong.append("may not contain NUL")
    return wrong


def qualified_name(value: str) -> list[str]:
    """What is wrong with a label key, ``prefix/name``; empty if nothing."""
    if _qualified.fullmatch(value) and len(value) <= 63:
        return []
    wrong = []
    parts = value.split("/")
    if len(parts) > 2:
        return [
            "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
            "an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            wrong.append("prefix part must be non-empty")
        else:
            wrong += [f"prefix part {sentence}" for sentence in dns_subdomain(parts[0], unit="bytes")]
    name = parts[-1]
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name) > 63:
        wrong.append(f"name part {_length(63, 'bytes')}")
    if not _qualified.fullmatch(name):
        wrong.append(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
            "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
            f"'{_QUALIFIED}')"
        )
    return wrong


def label_value(value: str) -> list[str]:
    """What is wrong with a label's value; empty if nothing."""
    wrong = [_length(63, "bytes")] if len(value) > 63 else []
    if not _label_value.fullmatch(value):
        wrong.append(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            f"validation is '({_QUALIFIED})?')"
        )
    return wrong


def validate_labels(labels: dict[str, str], path: str) -> Errors:
    errors: Errors = []
    for key, value in labels.items():
        errors += [invalid(path, key, sentence) for sentence in qualified_name(key)]
        errors += [invalid(path, value, sentence) for sentence in label_value(value)]
    return errors


def validate_annotations(annotations: dict[str, str], path: str) -> Errors:
    errors: Errors = []
    size = 0
    for key, value in annotations.items():
        size += len(key.encode()) + len(value.encode())
        # Unlike a label key, an annotation key may have upper case in its prefix.
        errors += [invalid(path, key, sentence) for sentence in qualified_name(key.lower())]
    if size > TOTAL_ANNOTATIONS_LIMIT:
        errors.append(too_long(path, TOTAL_ANNOTATIONS_LIMIT))
    return errors


def _in_order(owner: Object) -> Object:
    """An owner reference with its fields in Go's order, for messages."""
    return {field: owner[field] for field in _OWNER_FIELDS if field in owner}


def drop_repeated_owners(meta: Object, *, patched: bool = False) -> list[str]:
    """Remove repeated owner references; returns a warning about them, if there were any."""
    owners = meta.get("ownerReferences") or ()
    again = repeated(map(alike, owners)) if len(owners) > 1 else ()
    if not again:
        return []
    left_out, uids = set(again), [owners[i].get("uid", "") for i in again]
    meta["ownerReferences"] = [owner for i, owner in enumerate(owners) if i not in left_out]
    # Kubernetes checks a patch only after mutating admission, and its message says so.
    moment = " after mutating admission happens" if patched else ""
    return [
        f".metadata.ownerReferences contains duplicate entries{moment}; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        f"{', '.join(uids)}"
    ]


def _validate_owners(owners: list[Any], path: str) -> Errors:
    errors: Errors = []
    controllers: list[str] = []
    for i, owner in enumerate(owners):
        at = f"{path}[{i}]"
        group, _, version = owner.get("apiVersion", "").rpartition("/")
        if not version or "/" in group:
            errors.append(invalid(f"{at}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        if not owner.get("kind"):
            errors.append(required(f"{at}.kind", "must not be empty"))
        if not owner.get("name"):
            errors.append(required(f"{at}.name", "must not be empty"))
        if not owner.get("uid"):
            errors.append(required(f"{at}.uid", "must not be empty"))
        if (group, owner.get("kind")) == ("", "Event"):
            errors.append(invalid(at, _in_order(owner), "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind', '')}/{owner.get('name', '')}")
    if len(controllers) > 1:
        errors.append(
            invalid(
                path,
                [_in_order(owner) for owner in owners],
                'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controllers[0]} and {controllers[1]}",
            )
        )
    return errors


def validate(
    meta: Object,
    check_name: Callable[..., list[str]],
    *,
    namespaced: bool,
    plain: bool = False,
    path: str = "metadata",
) -> Errors:
    """Everything that is wrong with the metadata of a new object; ``plain`` allows finalizers without a domain."""
    errors: Errors = []
    name, generate = meta.get("name", ""), meta.get("generateName", "")
    if generate:
        errors += [invalid(f"{path}.generateName", generate, s) for s in check_name(generate, prefix=True)]
    if not name:
        errors.append(required(f"{path}.name", "name or generateName is required"))
    else:
        errors += [invalid(f"{path}.name", name, s) for s in check_name(name, prefix=False)]
    if namespaced:
        namespace = meta.get("namespace", "")
        if not namespace:
            errors.append(required(f"{path}.namespace"))
        else:
            errors += [invalid(f"{path}.namespace", namespace, s) for s in dns_label(namespace)]
    elif meta.get("namespace"):
        errors.append(forbidden(f"{path}.namespace", "not allowed on this type"))
    return errors + _validate_accessories(meta, {}, path, plain=plain)


def _validate_accessories(meta: Object, old: Object, path: str, *, plain: bool) -> Errors:
    """Validate generation, labels, annotations, owners and finalizers; values that did not change are not checked."""
    errors: Errors = []
    if meta.get("generation", 0) < 0:
        errors.append(invalid(f"{path}.generation", meta["generation"], "must be greater than or equal to 0"))
    for field, check in _ACCESSORIES:
        value = meta.get(field)
        if value and value != old.get(field):
            errors += check(value, f"{path}.{field}")
    return [error for error in errors if not error.message.endswith(_UNQUALIFIED)] if plain else errors


_UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"


def _validate_finalizers(finalizers: list[str], path: str) -> Errors:
    errors: Errors = []
    standard = {"orphan", "foregroundDeletion"}
    for i, finalizer in enumerate(finalizers):
        at = f"{path}[{i}]"
        wrong = qualified_name(finalizer)
        errors += [invalid(path, finalizer, sentence) for sentence in wrong]
        if not wrong and "/" not in finalizer and finalizer not in standard:
            errors.append(invalid(at, finalizer, _UNQUALIFIED))
    if standard <= set(finalizers):
        errors.append(invalid(path, finalizers, "finalizer orphan and foregroundDeletion cannot be both set"))
    return errors


_ACCESSORIES: tuple[tuple[str, Callable[[Any, str], Errors]], ...] = (
    ("labels", validate_labels),
    ("annotations", validate_annotations),
    ("ownerReferences", _validate_owners),
    ("finalizers", _validate_finalizers),
)


def keep_accessories(meta: Object, old: Object) -> None:
    """Restore labels, annotations, owners and finalizers from ``old``, for writes that may not change them."""
    for field, _ in _ACCESSORIES:
        meta.pop(field, None)
        if field in old:
            meta[field] = old[field]


def validate_update(meta: Object, old: Object, *, plain: bool) -> Errors:
    """Everything that is wrong with a change of metadata; the write path has restored read-only fields before.

    ``plain`` allows finalizers without a domain.
    """
    errors: Errors = []
    if old.get("deletionTimestamp"):
        before = old.get("finalizers") or []
        added = [f for f in meta.get("finalizers") or [] if f not in before]
        if added:
            # Go prints the slice with %#v; clients compare the text.
            listed = ", ".join(f'"{f}"' for f in added)
            errors.append(
                forbidden(
                    "metadata.finalizers",
                    "no new finalizers can be added if the object is being deleted, found new finalizers "
                    f"[]string{{{listed}}}",
                )
            )
    if meta.get("generation", 0) < old.get("generation", 0):
        errors.append(invalid("metadata.generation", meta.get("generation", 0), "must not be decremented"))
    for key in ("name", "namespace", "uid", "creationTimestamp"):
        if meta.get(key) != old.get(key):
            errors.append(immutable(f"metadata.{key}", meta.get(key)))
    return errors + _validate_accessories(meta, old, "metadata", plain=plain)


def newest(listed: Iterable[Object]) -> str:
    """The name in the newest of several objects' metadata; of those made in the same second, the first by name."""
    in_order = sorted(listed, key=lambda meta: str(meta["name"]))
    return str(max(in_order, key=lambda meta: meta.get("creationTimestamp") or "")["name"])
