"""VolumeAttributesClass: attributes of volumes that their driver can change while they are used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import VOLUME_ATTRIBUTES_CLASSES
from seamark.kinds.storage.storageclass import parameter_mistakes
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.values.fields import Errors, forbidden, immutable, required
from seamark.kinds.values.times import age

_DEFAULT_ANNOTATION = "volumeattributesclass.alpha.kubernetes.io/is-default-class"


class VolumeAttributesClassKind(Kind):
    resource = VOLUME_ATTRIBUTES_CLASSES
    singular = "volumeattributesclass"
    shape_name = "io.k8s.api.storage.v1.VolumeAttributesClass"
    short_names = ("vac",)
    columns = (Column("Name", format="name"), Column("DriverName"), Column("Age"))
    delete_answers_object = True

    def validate(self, obj: Object) -> Errors:
        errors = driver_name_mistakes(obj.get("driverName", ""), "driverName")
        if not obj.get("parameters"):
            return [*errors, required("parameters", "must contain at least one key/value pair")]
        return errors + parameter_mistakes(obj["parameters"], "parameters")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors: Errors = []
        if obj.get("driverName") != old.get("driverName"):
            errors.append(immutable("driverName", obj.get("driverName", "")))
        if obj.get("parameters") != old.get("parameters"):
            errors.append(forbidden("parameters", "updates to parameters are forbidden."))
        return self.validate(obj) + errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        marked = (meta.get("annotations") or {}).get(_DEFAULT_ANNOTATION) == "true"
        name = meta.get("name", "") + (" (default)" if marked else "")
        return [name, obj.get("driverName", ""), age(now, meta.get("creationTimestamp"))]


VOLUME_ATTRIBUTES_CLASS = VolumeAttributesClassKind()
