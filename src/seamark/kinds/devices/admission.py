"""Who may use devices that others use: claims with admin access are for namespaces that say so in a label."""

from __future__ import annotations

from collections.abc import Iterable

from seamark.errors import Object
from seamark.kinds.admission import Operation, Plugin, Request
from seamark.kinds.kind import Kind
from seamark.kinds.resource import NAMESPACES, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from seamark.kinds.values.fields import forbidden, refuse

_LABEL = "resource.kubernetes.io/admin-access"


class AdminAccess(Plugin):
    """Refuses admin access elsewhere, whether a claim asks for it or its status grants it."""

    def concerns(self, kind: Kind, operation: Operation, part: str) -> bool:
        if part == "status":
            return kind.resource == RESOURCE_CLAIMS
        return not part and operation == "CREATE" and kind.resource in (RESOURCE_CLAIMS, RESOURCE_CLAIM_TEMPLATES)

    def validate(self, request: Request) -> None:
        if request.part:
            path, found = "status.allocation.devices.results", _with_access(_results(request.obj))
            if request.old is not None and _with_access(_results(request.old)) is not None:
                return
        else:
            spec = request.obj["spec"]
            if request.kind.resource == RESOURCE_CLAIM_TEMPLATES:
                spec = spec.get("spec") or {}
            requests = (spec.get("devices") or {}).get("requests") or ()
            path, found = "spec.devices.requests", _with_access(each.get("exactly") or {} for each in requests)
        if found is None:
            return
        labels = request.others.labels_of(NAMESPACES, request.namespace) or {}
        if labels.get(_LABEL) != "true":
            sentence = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
            mistakes = [forbidden(f"{path}[{found}].adminAccess", sentence)]
            raise refuse(request.kind.resource, request.name, mistakes)


def _results(claim: Object) -> Iterable[Object]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or ()


def _with_access(devices: Iterable[Object]) -> int | None:
    """The first of the devices that has admin access."""
    return next((i for i, device in enumerate(devices) if device.get("adminAccess")), None)
