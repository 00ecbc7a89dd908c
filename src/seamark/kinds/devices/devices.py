"""DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate and ResourceSlice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from seamark.clock import SYSTEM_CLOCK
from seamark.errors import Object
from seamark.kinds.counted import CountedKind, keep_status, reset_status
from seamark.kinds.devices.claims import keep_allocated, spec_mistakes, status_mistakes
from seamark.kinds.devices.parts import (
    configuration_mistakes,
    each,
    name_mistakes,
    pool_name_mistakes,
    selectors_mistakes,
    taint_mistakes,
)
from seamark.kinds.devices.printed import printed_claim, printed_template
from seamark.kinds.devices.slices import slice_mistakes
from seamark.kinds.kind import Column, Kind
from seamark.kinds.pod.resources import is_extended
from seamark.kinds.resource import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.conditions import conditions_mistakes
from seamark.kinds.values.fields import Errors, immutable, invalid, show, too_many
from seamark.kinds.values.metadata import validate_annotations, validate_labels
from seamark.kinds.values.times import age, text

_NAME_AND_AGE = (Column("Name", format="name"), Column("Age"))
_MOST_CONFIGURATIONS = 32
_MOST_CONDITIONS = 8


def _named_row(obj: Object, now: float) -> Sequence[Any]:
    meta = obj["metadata"]
    return [meta.get("name", ""), age(now, meta.get("creationTimestamp"))]


class DeviceClassKind(CountedKind):
    resource = DEVICE_CLASSES
    singular = "deviceclass"
    shape_name = "io.k8s.api.resource.v1.DeviceClass"
    columns = _NAME_AND_AGE
    delete_answers_object = True

    @property
    def costly(self) -> bool:
        return True  # expressions are compiled

    def validate(self, obj: Object) -> Errors:
        return self._mistakes(obj["spec"], {})

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return self._mistakes(obj["spec"], old["spec"])

    @staticmethod
    def _mistakes(spec: Object, old: Object) -> Errors:
        selectors, stored = spec.get("selectors") or [], old.get("selectors") or []
        errors = selectors_mistakes(selectors, "spec.selectors", stored=stored)
        errors += each(spec.get("config") or [], _MOST_CONFIGURATIONS, configuration_mistakes, "spec.config")
        extended = spec.get("extendedResourceName")
        if extended is not None and not is_extended(extended):
            sentence = "must be a valid extended resource name"
            errors.append(invalid("spec.extendedResourceName", extended, sentence))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _named_row(obj, now)


class DeviceTaintRuleKind(CountedKind):
    resource = DEVICE_TAINT_RULES
    singular = "devicetaintrule"
    shape_name = "io.k8s.api.resource.v1.DeviceTaintRule"
    columns = _NAME_AND_AGE
    subresources = (bare_status_of("DeviceTaintRule"),)
    unconditional_update: ClassVar[bool] = False
    new_status: ClassVar[Object | None] = {}

    def default(self, obj: Object) -> None:
        if (taint := obj["spec"].get("taint")) is not None:
            _default_taint(taint)

    def validate(self, obj: Object) -> Errors:
        spec, at = obj["spec"], "spec.deviceSelector"
        errors: Errors = []
        judges = (("driver", driver_name_mistakes), ("pool", pool_name_mistakes), ("device", name_mistakes))
        for field, judge in judges:
            if (name := (spec.get("deviceSelector") or {}).get(field)) is not None:
                errors += judge(name, f"{at}.{field}")
        return errors + taint_mistakes(spec.get("taint") or {}, "spec.taint")

    def validate_status(self, obj: Object, old: Object) -> Errors:
        conditions = (obj.get("status") or {}).get("conditions") or []
        errors = conditions_mistakes(conditions, "status.conditions")
        if len(conditions) > _MOST_CONDITIONS:
            errors.append(too_many("status.conditions", len(conditions), _MOST_CONDITIONS))
        return errors

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _named_row(obj, now)


class ResourceClaimKind(Kind):
    resource = RESOURCE_CLAIMS
    singular = "resourceclaim"
    shape_name = "io.k8s.api.resource.v1.ResourceClaim"
    subresources = (bare_status_of("ResourceClaim"),)
    columns = (Column("Name", format="name"), Column("State"), Column("Age"))
    delete_answers_object = True

    @property
    def costly(self) -> bool:
        return True  # expressions are compiled

    def default(self, obj: Object) -> None:
        _default_requests(obj["spec"])

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, {})

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate(self, obj: Object) -> Errors:
        return spec_mistakes(obj["spec"], "spec")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return [] if obj["spec"] == old["spec"] else [immutable("spec", printed_claim(obj["spec"]))]

    def default_status(self, obj: Object) -> None:
        super().default_status(obj)
        allocation = (obj.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            _default_tolerations(result)

    def prepare_status(self, obj: Object, old: Object) -> None:
        super().prepare_status(obj, old)
        keep_allocated(obj, old)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return status_mistakes(obj, old)

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, status = obj["metadata"], obj.get("status") or {}
        deleted, allocated = bool(meta.get("deletionTimestamp")), status.get("allocation") is not None
        words = {
            "deleted": deleted,
            "pending": not (allocated or deleted),
            "allocated": allocated,
            "reserved": allocated and bool(status.get("reservedFor")),
        }
        states = [word for word, said in words.items() if said]
        return [meta.get("name", ""), ",".join(states), age(now, meta.get("creationTimestamp"))]


class ResourceClaimTemplateKind(Kind):
    resource = RESOURCE_CLAIM_TEMPLATES
    singular = "resourceclaimtemplate"
    shape_name = "io.k8s.api.resource.v1.ResourceClaimTemplate"
    columns = _NAME_AND_AGE
    delete_answers_object = True

    @property
    def costly(self) -> bool:
        return True  # expressions are compiled

    def default(self, obj: Object) -> None:
        _default_requests(obj["spec"].get("spec") or {})

    def validate(self, obj: Object) -> Errors:
        meta = obj["spec"].get("metadata") or {}
        errors = validate_labels(meta.get("labels") or {}, "spec.metadata.labels")
        errors += validate_annotations(meta.get("annotations") or {}, "spec.metadata.annotations")
        return errors + spec_mistakes(obj["spec"].get("spec") or {}, "spec.spec")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return [] if obj["spec"] == old["spec"] else [immutable("spec", printed_template(obj["spec"]))]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _named_row(obj, now)


class ResourceSliceKind(CountedKind):
    resource = RESOURCE_SLICES
    singular = "resourceslice"
    shape_name = "io.k8s.api.resource.v1.ResourceSlice"
    columns = (Column("Name", format="name"), Column("Node"), Column("Driver"), Column("Pool"), Column("Age"))
    delete_answers_object = True
    field_names = ("spec.nodeName", "spec.driver")

    def default(self, obj: Object) -> None:
        for device in obj["spec"].get("devices") or ():
            for taint in device.get("taints") or ():
                _default_taint(taint)

    def validate(self, obj: Object) -> Errors:
        return slice_mistakes(obj["spec"])

    def validate_update(self, obj: Object, old: Object) -> Errors:
        return slice_mistakes(obj["spec"], old["spec"])

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        driver = obj["spec"].get("driver", "")
        if driver == driver.lower():
            return []
        return [f"spec.driver: driver names should be lowercase; {show(driver)} contains uppercase characters"]

    def fields(self, obj: Object) -> Mapping[str, str]:
        spec = obj["spec"]
        return {"spec.nodeName": spec.get("nodeName") or "", "spec.driver": spec.get("driver", "")}

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec = obj["metadata"], obj["spec"]
        pool = (spec.get("pool") or {}).get("name", "")
        node = spec.get("nodeName") or "<unset>"
        return [meta.get("name", ""), node, spec.get("driver", ""), pool, age(now, meta.get("creationTimestamp"))]


def _default_requests(spec: Object) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for wanted in (request.get("exactly"), *(request.get("firstAvailable") or ())):
            if wanted is not None:
                if not wanted.get("allocationMode"):
                    wanted["allocationMode"] = "ExactCount"
                if wanted["allocationMode"] == "ExactCount" and not wanted.get("count"):
                    wanted["count"] = 1
                _default_tolerations(wanted)


def _default_tolerations(holder: Object) -> None:
    for toleration in holder.get("tolerations") or ():
        if not toleration.get("operator"):
            toleration["operator"] = "Equal"


def _default_taint(taint: Object) -> None:
    if not taint.get("timeAdded"):
        taint["timeAdded"] = text(SYSTEM_CLOCK.time())


DEVICE_CLASS = DeviceClassKind()
DEVICE_TAINT_RULE = DeviceTaintRuleKind()
RESOURCE_CLAIM = ResourceClaimKind()
RESOURCE_CLAIM_TEMPLATE = ResourceClaimTemplateKind()
RESOURCE_SLICE = ResourceSliceKind()
