"""DeviceClass, DeviceTaintRule, ResourceClaim, ResourceClaimTemplate and ResourceSlice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import CountedKind, keep_status, reset_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import (
    DEVICE_CLASSES,
    DEVICE_TAINT_RULES,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
)
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.subresource import bare_status_of
from seamark.kinds.values.fields import Errors, duplicate, immutable, invalid, repeated, required, too_many
from seamark.kinds.values.metadata import dns_label, dns_subdomain
from seamark.kinds.values.times import age

_NAME_AND_AGE = (Column("Name", format="name"), Column("Age"))
_MOST_REQUESTS = 32
_MOST_DEVICES = 128


def _named_row(obj: Object, now: float) -> Sequence[Any]:
    meta = obj["metadata"]
    return [meta.get("name", ""), age(now, meta.get("creationTimestamp"))]


class DeviceClassKind(CountedKind):
    resource = DEVICE_CLASSES
    singular = "deviceclass"
    shape_name = "io.k8s.api.resource.v1.DeviceClass"
    columns = _NAME_AND_AGE
    delete_answers_object = True

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

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _named_row(obj, now)


class ResourceClaimKind(Kind):
    resource = RESOURCE_CLAIMS
    singular = "resourceclaim"
    shape_name = "io.k8s.api.resource.v1.ResourceClaim"
    subresources = (bare_status_of("ResourceClaim"),)
    columns = (Column("Name", format="name"), Column("State"), Column("Age"))
    delete_answers_object = True

    def default(self, obj: Object) -> None:
        _default_requests(obj["spec"])

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, {})

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate(self, obj: Object) -> Errors:
        return _request_mistakes(obj["spec"], "spec.devices.requests")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        fixed = obj["spec"] == old["spec"]
        return self.validate(obj) + ([] if fixed else [immutable("spec", obj["spec"])])

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, status = obj["metadata"], obj.get("status") or {}
        states = [word for word in ("allocated",) if status.get("allocation") is not None] or ["pending"]
        if meta.get("deletionTimestamp"):
            states.insert(0, "deleted")
        if status.get("reservedFor"):
            states.append("reserved")
        return [meta.get("name", ""), ",".join(states), age(now, meta.get("creationTimestamp"))]


class ResourceClaimTemplateKind(Kind):
    resource = RESOURCE_CLAIM_TEMPLATES
    singular = "resourceclaimtemplate"
    shape_name = "io.k8s.api.resource.v1.ResourceClaimTemplate"
    columns = _NAME_AND_AGE
    delete_answers_object = True

    def default(self, obj: Object) -> None:
        _default_requests(obj["spec"].get("spec") or {})

    def validate(self, obj: Object) -> Errors:
        return _request_mistakes(obj["spec"].get("spec") or {}, "spec.spec.devices.requests")

    def validate_update(self, obj: Object, old: Object) -> Errors:
        fixed = obj["spec"] == old["spec"]
        return self.validate(obj) + ([] if fixed else [immutable("spec", obj["spec"])])

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        return _named_row(obj, now)


class ResourceSliceKind(CountedKind):
    resource = RESOURCE_SLICES
    singular = "resourceslice"
    shape_name = "io.k8s.api.resource.v1.ResourceSlice"
    columns = (Column("Name", format="name"), Column("Node"), Column("Driver"), Column("Pool"), Column("Age"))
    delete_answers_object = True
    field_names = ("spec.nodeName", "spec.driver")

    def validate(self, obj: Object) -> Errors:
        spec = obj["spec"]
        errors = driver_name_mistakes(spec.get("driver", ""), "spec.driver")
        pool = (spec.get("pool") or {}).get("name", "")
        if not pool:
            errors.append(required("spec.pool.name"))
        devices = spec.get("devices") or []
        if len(devices) > _MOST_DEVICES:
            errors.append(too_many("spec.devices", len(devices), _MOST_DEVICES))
        return errors + _name_mistakes(devices, "spec.devices")

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


def _request_mistakes(spec: Object, at: str) -> Errors:
    requests = (spec.get("devices") or {}).get("requests") or []
    errors = _name_mistakes(requests, at)
    if len(requests) > _MOST_REQUESTS:
        errors.append(too_many(at, len(requests), _MOST_REQUESTS))
    for i, request in enumerate(requests):
        exactly, first = request.get("exactly"), request.get("firstAvailable")
        if (exactly is None) == (not first):
            if exactly is None:
                errors.append(required(f"{at}[{i}]", "exactly one of `exactly` or `firstAvailable` is required"))
            else:
                sentence = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
                errors.append(invalid(f"{at}[{i}]", request, sentence))
        if exactly is not None:
            name, path = exactly.get("deviceClassName", ""), f"{at}[{i}].exactly.deviceClassName"
            errors += [invalid(path, name, s) for s in dns_subdomain(name)] if name else [required(path)]
    return errors


def _name_mistakes(entries: list[Object], at: str) -> Errors:
    errors: Errors = []
    again = set(repeated(entry.get("name", "") for entry in entries))
    for i, entry in enumerate(entries):
        name = entry.get("name", "")
        errors += (
            [invalid(f"{at}[{i}].name", name, s) for s in dns_label(name)] if name else [required(f"{at}[{i}].name")]
        )
        if name and i in again:
            errors.append(duplicate(f"{at}[{i}].name", name))
    return errors


DEVICE_CLASS = DeviceClassKind()
DEVICE_TAINT_RULE = DeviceTaintRuleKind()
RESOURCE_CLAIM = ResourceClaimKind()
RESOURCE_CLAIM_TEMPLATE = ResourceClaimTemplateKind()
RESOURCE_SLICE = ResourceSliceKind()
