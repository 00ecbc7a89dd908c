"""PersistentVolumeClaim: a request for a volume."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.counted import keep_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.pod.defaults import default_claim
from seamark.kinds.pod.resources import is_native
from seamark.kinds.pod.warnings import fraction_warnings
from seamark.kinds.resource import PERSISTENT_VOLUME_CLAIMS
from seamark.kinds.storage.claim_spec import claim_mistakes
from seamark.kinds.subresource import status_of
from seamark.kinds.values.differences import difference
from seamark.kinds.values.fields import Errors, forbidden, immutable, invalid, not_supported
from seamark.kinds.values.metadata import qualified_name
from seamark.kinds.values.quantity import amount
from seamark.kinds.values.times import age

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"  # how the class was named before spec.storageClassName

_SHORT_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}
_PLAIN_SOURCES = (("", "PersistentVolumeClaim"), ("snapshot.storage.k8s.io", "VolumeSnapshot"))
_FIXED = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
_ATTRIBUTES = "volumeAttributesClassName"
_CURRENT = "currentVolumeAttributesClassName"
_RESIZING = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)


class PersistentVolumeClaimKind(Kind):
    resource = PERSISTENT_VOLUME_CLAIMS
    singular = "persistentvolumeclaim"
    shape_name = "io.k8s.api.core.v1.PersistentVolumeClaim"
    short_names = ("pvc",)
    subresources = (status_of("PersistentVolumeClaim"),)
    columns = (
        Column("Name", format="name"),
        Column("Status"),
        Column("Volume"),
        Column("Capacity"),
        Column("Access Modes"),
        Column("StorageClass"),
        Column("VolumeAttributesClass"),
        Column("Age"),
        Column("VolumeMode", priority=1),
    )
    delete_answers_object = True
    field_names = ("name",)

    def default(self, obj: Object) -> None:
        default_claim(obj["spec"])
        if not obj["status"].get("phase"):
            obj["status"]["phase"] = "Pending"

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending"}
        _agree_on_source(obj["spec"], None)

    def validate(self, obj: Object) -> Errors:
        return claim_mistakes(obj["spec"], "spec")

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)
        _agree_on_source(obj["spec"], old["spec"])

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return claim_mistakes(obj["spec"], "spec", any_group=_has_source(old["spec"])) + _change_mistakes(obj, old)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status = obj["status"]
        errors = _negative(status.get("capacity") or {}, "status.capacity")
        path = "status.allocatedResourceStatuses"
        for name, resizing in (status.get("allocatedResourceStatuses") or {}).items():
            errors += _name_mistakes(name, path)
            if resizing not in _RESIZING:
                errors.append(not_supported(path, name, _RESIZING))
        path = "status.allocatedResources"
        for name, quantity in (status.get("allocatedResources") or {}).items():
            errors += _name_mistakes(name, path) or _negative({name: quantity}, path)
        return errors

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        fractions = fraction_warnings(_requests(obj["spec"]), "spec.resources.requests", ("storage",))
        return [*class_annotation_warnings(obj), *fractions]

    def fields(self, obj: Object) -> Mapping[str, str]:
        return {"name": obj["metadata"].get("name", "")}  # Kubernetes keeps this mistake for old clients

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        bound = bool(spec.get("volumeName"))
        return [
            meta.get("name", ""),
            "Terminating" if meta.get("deletionTimestamp") else status.get("phase", ""),
            spec.get("volumeName", ""),
            (status.get("capacity") or {}).get("storage", "0") if bound else "",
            modes_cell(status.get("accessModes") or ()) if bound else "",
            class_of(obj),
            spec.get(_ATTRIBUTES, "<unset>"),
            age(now, meta.get("creationTimestamp")),
            spec.get("volumeMode") or "<unset>",
        ]


def modes_cell(modes: Iterable[str]) -> str:
    return ",".join(short for mode, short in _SHORT_MODES.items() if mode in set(modes))


def class_of(obj: Object) -> str:
    """The StorageClass of a claim or a volume; the annotation of former days counts first."""
    annotations = obj["metadata"].get("annotations") or {}
    return str(annotations.get(CLASS_ANNOTATION, obj["spec"].get("storageClassName", "")))


def class_annotation_warnings(obj: Object) -> list[str]:
    if CLASS_ANNOTATION not in (obj["metadata"].get("annotations") or {}):
        return []
    where = f"metadata.annotations[{CLASS_ANNOTATION}]"
    return [f'{where}: deprecated since v1.8; use "storageClassName" attribute instead']


# --- data sources -------------------------------------------------------------------------------------------------


def _has_source(spec: Object) -> bool:
    return spec.get("dataSource") is not None or spec.get("dataSourceRef") is not None


def _agree_on_source(spec: Object, before: Object | None) -> None:
    """Fill in the one of the two fields that is absent; drop what the older field cannot mean."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if before is None or not _has_source(before):
        if source is not None and (source.get("apiGroup") or "", source.get("kind", "")) not in _PLAIN_SOURCES:
            del spec["dataSource"]
            source = None
        if reference is not None and reference.get("namespace"):  # a feature that is off by default
            del spec["dataSourceRef"]
            reference = None
    if source is not None and reference is None:
        spec["dataSourceRef"] = dict(source)
    elif reference is not None and source is None and not reference.get("namespace"):
        spec["dataSource"] = {key: value for key, value in reference.items() if key != "namespace"}


# --- changes ------------------------------------------------------------------------------------------------------


def _change_mistakes(obj: Object, old: Object) -> Errors:
    errors: Errors = []
    spec, before = obj["spec"], old["spec"]
    annotation = (obj["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION, "")
    annotated = (old["metadata"].get("annotations") or {}).get(CLASS_ANNOTATION, "")
    upgraded = bool(annotated) and "storageClassName" not in before and spec.get("storageClassName") == annotated
    if annotation != annotated and not (upgraded and not annotation):
        errors.append(immutable(f"metadata.annotations.{CLASS_ANNOTATION}", annotation))
    bound = obj["status"].get("phase") == "Bound"
    allowed: Object = {}
    if not before.get("volumeName"):
        allowed["volumeName"] = spec.get("volumeName")
    if upgraded or (not annotated and "storageClassName" not in before):
        allowed["storageClassName"] = spec.get("storageClassName")
    after_requests, requests = _requests(spec), _requests(before)
    kept, was = dict(spec), {**before, **{field: value for field, value in allowed.items() if value is not None}}
    if bound:
        kept.pop(_ATTRIBUTES, None)
        was.pop(_ATTRIBUTES, None)
    if bound and after_requests:
        kept["resources"] = {**kept["resources"], "requests": {**after_requests, "storage": requests.get("storage")}}
    if kept != was:
        errors.append(forbidden("spec", f"{_FIXED}\n{difference(was, kept)}"))
    size, size_before = amount(after_requests.get("storage", "0")), amount(requests.get("storage", "0"))
    if size < size_before and size <= amount((old["status"].get("capacity") or {}).get("storage", "0")):
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    if spec.get("volumeMode") != before.get("volumeMode"):
        errors.append(immutable("volumeMode", spec.get("volumeMode")))
    if old["status"].get(_CURRENT) is not None and spec.get(_ATTRIBUTES) != before.get(_ATTRIBUTES):
        errors += _attributes_mistakes(spec.get(_ATTRIBUTES))
    return errors


def _attributes_mistakes(chosen: str | None) -> Errors:
    """A class of volume attributes that is in force may be exchanged, but not taken back."""
    if chosen:
        return []
    what = "nil" if chosen is None else "empty string"
    return [forbidden(f"spec.{_ATTRIBUTES}", f"update to {what} is forbidden when status.{_CURRENT} is not nil")]


def _negative(quantities: dict[str, str], path: str) -> Errors:
    return [
        invalid(f"{path}[{name}]", int(amount(quantity)), "must be a valid resource quantity")
        for name, quantity in quantities.items()
        if amount(quantity) < 0
    ]


def _name_mistakes(name: str, path: str) -> Errors:
    """Of the resources that Kubernetes names itself, a claim has storage only."""
    if sentences := qualified_name(name):
        return [invalid(path, name, sentence) for sentence in sentences]
    return [not_supported(path, name, ("storage",))] if is_native(name) and name != "storage" else []


def _requests(spec: Object) -> dict[str, str]:
    return (spec.get("resources") or {}).get("requests") or {}


PERSISTENT_VOLUME_CLAIM = PersistentVolumeClaimKind()
