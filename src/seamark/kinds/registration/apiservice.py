"""APIService: which server answers for a version of an API group.  Every group of this server has a local one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from seamark.errors import Object
from seamark.kinds.counted import keep_status, reset_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import API_SERVICES
from seamark.kinds.subresource import status_of
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_1035_label, dns_subdomain, path_segment
from seamark.kinds.values.ports import port_number_mistakes
from seamark.kinds.values.times import age

AUTOMANAGED_LABEL = "kube-aggregator.kubernetes.io/automanaged"

_STATUSES = ("True", "False", "Unknown")

# The order in which clients prefer groups: (priority of the group, priority of its version).
PRIORITIES = {
    "": (18000, 1),
    "apps": (17800, 15),
    "events.k8s.io": (17750, 15),
    "authentication.k8s.io": (17700, 15),
    "authorization.k8s.io": (17600, 15),
    "autoscaling": (17500, 15),
    "batch": (17400, 15),
    "certificates.k8s.io": (17300, 15),
    "networking.k8s.io": (17200, 15),
    "policy": (17100, 15),
    "rbac.authorization.k8s.io": (17000, 15),
    "storage.k8s.io": (16800, 15),
    "apiextensions.k8s.io": (16700, 15),
    "admissionregistration.k8s.io": (16700, 15),
    "scheduling.k8s.io": (16600, 15),
    "coordination.k8s.io": (16500, 15),
    "node.k8s.io": (16300, 15),
    "discovery.k8s.io": (16200, 15),
    "flowcontrol.apiserver.k8s.io": (16100, 21),
    "resource.k8s.io": (15900, 15),
    "storagemigration.k8s.io": (15800, 15),
}

# Those of custom resources, which come after all built-in ones.
CUSTOM_PRIORITIES = (1000, 100)


class APIServiceKind(Kind):
    resource = API_SERVICES
    singular = "apiservice"
    shape_name = "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.APIService"
    categories = ("api-extensions",)
    subresources = (status_of("APIService", keeps_metadata=True),)
    columns = (Column("Name", format="name"), Column("Service"), Column("Available"), Column("Age"))
    unconditional_update: ClassVar[bool] = False

    def default(self, obj: Object) -> None:
        if (service := obj["spec"].get("service")) is not None and service.get("port") is None:
            service["port"] = 443

    def prepare_create(self, obj: Object) -> None:
        reset_status(obj, {})
        if obj["spec"].get("service") is None:
            _make_available(obj)

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        return path_segment(name, prefix=prefix)

    def validate(self, obj: Object) -> Errors:
        spec, errors = obj["spec"], Errors()
        group, version, name = spec.get("group", ""), spec.get("version", ""), obj["metadata"].get("name", "")
        if not path_segment(name) and name != f"{version}.{group}":
            sentence = f'must be `spec.version+"."+spec.group`: "{version}.{group}"'
            errors.append(invalid("metadata.name", name, sentence))
        if group:
            errors += [invalid("spec.group", group, sentence) for sentence in dns_subdomain(group)]
        elif version != "v1":
            sentence = "only v1 may have an empty group and it better be legacy kube"
            errors.append(required("spec.group", sentence))
        errors += [invalid("spec.version", version, sentence) for sentence in dns_1035_label(version)]
        for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            if not 0 < spec.get(field, 0) <= most:
                errors.append(invalid(f"spec.{field}", spec.get(field, 0), f"must be positive and less than {most}"))
        return errors + _service_mistakes(spec)

    def validate_status(self, obj: Object, old: Object) -> Errors:
        return [
            not_supported(f"status.conditions[{i}].status", condition.get("status", ""), _STATUSES)
            for i, condition in enumerate((obj.get("status") or {}).get("conditions") or ())
            if condition.get("status") not in _STATUSES
        ]

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, service = obj["metadata"], obj["spec"].get("service")
        conditions = (obj.get("status") or {}).get("conditions") or ()
        found = next((c for c in conditions if c.get("type") == "Available"), None)
        status = found.get("status", "") if found else "Unknown"
        if found and status != "True" and found.get("reason"):
            status = f"{status} ({found['reason']})"
        where = f"{service.get('namespace', '')}/{service.get('name', '')}" if service is not None else "Local"
        return [meta.get("name", ""), where, status, age(now, meta.get("creationTimestamp"))]


def _service_mistakes(spec: Object) -> Errors:
    service, bundle = spec.get("service"), spec.get("caBundle")
    unchecked, errors = spec.get("insecureSkipTLSVerify", False), Errors()
    if service is None:
        if bundle:
            said = f"{len(bundle) * 3 // 4 - bundle.count('=')} bytes"
            errors.append(invalid("spec.caBundle", said, "local APIServices may not have a caBundle"))
        if unchecked:
            sentence = "local APIServices may not have insecureSkipTLSVerify"
            errors.append(invalid("spec.insecureSkipTLSVerify", unchecked, sentence))
        return errors
    errors += [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    if port_number_mistakes("", service["port"]):
        sentence = "port is not valid: must be between 1 and 65535, inclusive"
        errors.append(invalid("spec.service.port", service["port"], sentence))
    if unchecked and bundle:
        errors.append(invalid("spec.insecureSkipTLSVerify", unchecked, "may not be true if caBundle is present"))
    return errors


def _make_available(obj: Object) -> None:
    obj["status"] = {
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "lastTransitionTime": obj["metadata"].get("creationTimestamp"),
                "reason": "Local",
                "message": "Local APIServices are always available",
            }
        ]
    }


def local_services(group_versions: Iterable[tuple[str, str]]) -> list[Object]:
    """The APIServices of the groups that this server answers for itself."""
    made = []
    for group, version in group_versions:
        if group in PRIORITIES:
            group_priority, version_priority = PRIORITIES[group]
            spec: Object = {
                "version": version,
                "groupPriorityMinimum": group_priority,
                "versionPriority": 30 if (group, version) == ("autoscaling", "v2") else version_priority,
            }
            if group:
                spec["group"] = group
            labels = {AUTOMANAGED_LABEL: "onstart"}
            made.append({"metadata": {"name": f"{version}.{group}", "labels": labels}, "spec": spec})
    return made


API_SERVICE = APIServiceKind()
