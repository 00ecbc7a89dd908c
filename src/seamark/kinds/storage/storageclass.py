"""StorageClass: how new volumes are made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.pod.warnings import DEPRECATED_LABELS
from seamark.kinds.resource import STORAGE_CLASSES
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    immutable,
    invalid,
    not_supported,
    repeated,
    required,
    too_long,
)
from seamark.kinds.values.metadata import qualified_name
from seamark.kinds.values.times import age

DEFAULT_ANNOTATION = "storageclass.kubernetes.io/is-default-class"
_OLD_DEFAULT_ANNOTATION = "storageclass.beta.kubernetes.io/is-default-class"

_POLICIES = ("Delete", "Retain")
_MODES = ("Immediate", "WaitForFirstConsumer")
_MOST_PARAMETERS = 512
_LARGEST_PARAMETERS = 256 * 1024
_FIXED = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")


class StorageClassKind(Kind):
    resource = STORAGE_CLASSES
    singular = "storageclass"
    shape_name = "io.k8s.api.storage.v1.StorageClass"
    short_names = ("sc",)
    columns = (
        Column("Name", format="name"),
        Column("Provisioner"),
        Column("ReclaimPolicy"),
        Column("VolumeBindingMode"),
        Column("AllowVolumeExpansion"),
        Column("Age"),
    )
    delete_answers_object = True

    def default(self, obj: Object) -> None:
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Object) -> Errors:
        provisioner = obj.get("provisioner", "").lower()
        errors: Errors = []
        if provisioner:
            errors += [invalid("provisioner", provisioner, sentence) for sentence in qualified_name(provisioner)]
        errors += parameter_mistakes(obj.get("parameters") or {}, "parameters")
        for field, choices in (("reclaimPolicy", _POLICIES), ("volumeBindingMode", _MODES)):
            if obj[field] not in choices:
                errors.append(not_supported(field, obj[field], choices))
        errors += _topology_mistakes(obj.get("allowedTopologies") or [])
        # Declared rules are checked after all others.
        return errors if provisioner else [*errors, required("provisioner")]

    def validate_update(self, obj: Object, old: Object) -> Errors:
        changed = [field for field in _FIXED if obj.get(field) != old.get(field)]
        return self.validate(obj) + [immutable(field, None) for field in changed]

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        sentences = []
        for i, term in enumerate(obj.get("allowedTopologies") or ()):
            for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
                if (key := expression.get("key", "")) in DEPRECATED_LABELS:
                    at = f"allowedTopologies[{i}].matchLabelExpressions[{j}].key"
                    sentences.append(f"{at}: {DEPRECATED_LABELS[key]}")
        return sentences

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [
            meta.get("name", "") + (" (default)" if is_default(obj) else ""),
            obj.get("provisioner", ""),
            obj.get("reclaimPolicy", ""),
            obj.get("volumeBindingMode", ""),
            bool(obj.get("allowVolumeExpansion")),
            age(now, meta.get("creationTimestamp")),
        ]


def is_default(obj: Object) -> bool:
    """Whether claims that name no class get this one."""
    annotations = obj["metadata"].get("annotations") or {}
    return "true" in (annotations.get(DEFAULT_ANNOTATION), annotations.get(_OLD_DEFAULT_ANNOTATION))


def parameter_mistakes(parameters: dict[str, str], path: str) -> Errors:
    """What is wrong with the parameters of a class."""
    if len(parameters) > _MOST_PARAMETERS:
        return [too_long(path, _MOST_PARAMETERS)]
    errors = [invalid(path, "", "field can not be empty.")] if "" in parameters else []
    if sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items()) > _LARGEST_PARAMETERS:
        errors.append(too_long(path, _LARGEST_PARAMETERS))
    return errors


def _topology_mistakes(terms: list[Object]) -> Errors:
    errors: Errors = []
    # Kubernetes takes a term without labels for one that it has seen already.
    seen: set[frozenset[tuple[str, frozenset[str]]]] = {frozenset()}
    for i, term in enumerate(terms):
        found: dict[str, frozenset[str]] = {}
        for j, expression in enumerate(term.get("matchLabelExpressions") or ()):
            at = f"allowedTopologies[{i}].matchLabelExpressions[{j}]"
            key, values = expression.get("key", ""), expression.get("values") or []
            if not values:
                errors.append(required(f"{at}.values"))
            errors += [duplicate(f"{at}.values[{k}]", values[k]) for k in repeated(values)]
            errors += [invalid(f"{at}.key", key, sentence) for sentence in qualified_name(key)]
            if key in found:
                errors.append(duplicate(f"{at}.key", key))
            found[key] = frozenset(values)
        term_of = frozenset(found.items())
        if term_of in seen:
            errors.append(duplicate(f"allowedTopologies[{i}].matchLabelExpressions", ""))
        seen.add(term_of)
    return errors


STORAGE_CLASS = StorageClassKind()
