"""VolumeAttachment: that a volume is to be attached to a node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import keep_status, reset_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import VOLUME_ATTACHMENTS
from seamark.kinds.storage.volume_sources import driver_name_mistakes, source_mistakes
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.fields import Errors, forbidden, immutable, invalid, required, too_long
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.times import age

_LARGEST_METADATA = 256 * 1024
_LONGEST_MESSAGE = 1024
_EXACTLY_ONE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class VolumeAttachmentKind(Kind):
    resource = VOLUME_ATTACHMENTS
    singular = "volumeattachment"
    shape_name = "io.k8s.api.storage.v1.VolumeAttachment"
    subresources = (bare_status_of("VolumeAttachment"),)
    columns = (
        Column("Name", format="name"),
        Column("Attacher", format="name"),
        Column("PV"),
        Column("Node"),
        Column("Attached", "boolean"),
        Column("Age"),
    )
    unconditional_update: ClassVar[bool] = False
    delete_answers_object = True

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, {"attached": False})

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = _source_mistakes(spec.get("source") or {}, "spec.source")
        node = spec.get("nodeName", "")
        errors += [invalid("spec.nodeName", node, sentence) for sentence in dns_subdomain(node)]
        volume = (spec.get("source") or {}).get("persistentVolumeName")
        if volume:
            at = "spec.source.persistentVolumeName"
            errors += [invalid(at, volume, sentence) for sentence in dns_subdomain(volume)]
        # Declared rules are checked after all others.
        return errors + driver_name_mistakes(spec.get("attacher", ""), "spec.attacher")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        return errors if obj["spec"] == old["spec"] else [*errors, immutable("spec", None)]

    def validate_status(self, obj: Object, old: Object) -> Errors:
        status = obj.get("status") or {}
        errors: Errors = []
        told = status.get("attachmentMetadata") or {}
        if sum(len(key.encode()) + len(value.encode()) for key, value in told.items()) > _LARGEST_METADATA:
            errors.append(too_long("status.attachmentMetadata", _LARGEST_METADATA))
        for field in ("attachError", "detachError"):
            if len(((status.get(field) or {}).get("message") or "").encode()) > _LONGEST_MESSAGE:
                # Kubernetes names the limit of the metadata.
                errors.append(too_long(f"status.{field}.message", _LARGEST_METADATA))
            if (code := (status.get(field) or {}).get("errorCode") or 0) < 0:
                sentence = "must be between 0 and 2147483647, inclusive"
                errors.append(invalid(f"status.{field}.errorCode", code, sentence))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        return [
            meta.get("name", ""),
            spec.get("attacher", ""),
            (spec.get("source") or {}).get("persistentVolumeName", ""),
            spec.get("nodeName", ""),
            bool((obj.get("status") or {}).get("attached")),
            age(now, meta.get("creationTimestamp")),
        ]


def _source_mistakes(source: Object, at: str) -> Errors:
    inline, volume = source.get("inlineVolumeSpec"), source.get("persistentVolumeName")
    if inline is None and volume is None:
        return [required(at, _EXACTLY_ONE)]
    if inline is not None and volume is not None:
        return [forbidden(at, _EXACTLY_ONE)]
    if inline is None:
        sentence = "must specify non empty persistentVolumeName"
        return [] if volume else [required(f"{at}.persistentVolumeName", sentence)]
    return _inline_mistakes(inline, f"{at}.inlineVolumeSpec")


def _inline_mistakes(spec: Object, at: str) -> Errors:
    """A volume that is part of a Pod has no claim, capacity or class of its own."""
    errors: Errors = []
    context = "in the context of inline volumes"
    for field in ("claimRef", "capacity"):
        if spec.get(field):
            errors.append(forbidden(f"{at}.{field}", f"may not be specified {context}"))
    if spec.get("csi") is None:
        errors.append(required(f"{at}.csi", f"has to be specified {context}"))
    if not spec.get("accessModes"):
        errors.append(required(f"{at}.accessModes"))
    if spec.get("persistentVolumeReclaimPolicy") not in (None, "", "Retain"):
        errors.append(forbidden(f"{at}.persistentVolumeReclaimPolicy", f"may only be Retain {context}"))
    if spec.get("nodeAffinity") is not None:
        errors.append(forbidden(f"{at}.nodeAffinity", f"may not be specified {context}"))
    errors += source_mistakes(spec, at, name="")
    if spec.get("storageClassName"):
        errors.append(forbidden(f"{at}.storageClassName", f"may not be specified {context}"))
    if spec.get("volumeMode") not in (None, "Filesystem"):
        sentence = f"may not specify volumeMode other than Filesystem {context}"
        errors.append(forbidden(f"{at}.volumeMode", sentence))
    return errors


VOLUME_ATTACHMENT = VolumeAttachmentKind()
