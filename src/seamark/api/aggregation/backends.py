"""What an APIService says, and what is known of its server without asking it.  Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.api.outgoing.targets import Client, Unresolvable, addresses, client_of
from seamark.errors import Object


class Backend(msgspec.Struct, frozen=True):
    """One version of a group that another server answers for."""

    group: str
    version: str
    client: Client
    group_priority: int
    version_priority: int
    available: bool

    @property
    def path(self) -> str:
        return f"/apis/{self.group}/{self.version}"


class Foreign(msgspec.Struct, frozen=True):
    """What another server serves of one version of a group; ``resources`` are as in aggregated discovery."""

    group: str
    version: str
    group_priority: int
    version_priority: int
    resources: Sequence[Object] = ()
    stale: bool = False  # it could not be asked lately
    openapi: Object = {}  # "v3": its entry in the index; "v2": its paths and definitions


class Condition(msgspec.Struct, frozen=True):
    """The ``Available`` condition of an APIService."""

    status: str
    reason: str
    message: str


PASSED = Condition("True", "Passed", "all checks passed")


def backend_of(apiservice: Object) -> Backend | None:
    """The server behind an APIService; None if that is this one."""
    spec = apiservice["spec"]
    if spec.get("service") is None:
        return None
    conditions = (apiservice.get("status") or {}).get("conditions") or ()
    return Backend(
        spec.get("group", ""),
        spec["version"],
        client_of(spec),
        spec["groupPriorityMinimum"],
        spec["versionPriority"],
        any(each.get("type") == "Available" and each.get("status") == "True" for each in conditions),
    )


def trouble(backend: Backend, service: Object | None, slices: Sequence[Object]) -> Condition | None:
    """Why the server cannot be reached, as far as its Service and EndpointSlices tell; None if it has to be asked."""
    where = backend.client.service
    assert where is not None, "a backend has a Service"
    name = f'service/{where.name} in "{where.namespace}"'
    if service is None:
        return Condition("False", "ServiceNotFound", f"{name} is not present")
    if service["spec"].get("type", "ClusterIP") != "ClusterIP":
        return None
    names = [port.get("name", "") for port in service["spec"].get("ports") or () if port["port"] == where.port]
    if not names:
        return Condition("False", "ServicePortError", f"{name} is not listening on port {where.port}")
    if not slices:
        return Condition("False", "EndpointsNotFound", f"cannot find endpointslices for {name}")
    try:
        addresses(where, service, slices)
    except Unresolvable:
        sentence = f'endpointslices for {name} have no addresses with port name "{names[0]}"'
        return Condition("False", "MissingEndpoints", sentence)
    return None


def with_condition(apiservice: Object, condition: Condition, now: str) -> Object | None:
    """The status of an APIService with this condition; None if it has it already."""
    status = apiservice.get("status") or {}
    others, old = [], None
    for each in status.get("conditions") or ():
        if each.get("type") == "Available":
            old = each
        else:
            others.append(each)
    new = {"type": "Available", **msgspec.to_builtins(condition)}
    if old is not None and {**old, **new} == old:
        return None
    same = old is not None and old.get("status") == condition.status
    new["lastTransitionTime"] = old.get("lastTransitionTime", now) if same and old is not None else now
    return {**status, "conditions": [*others, new]}
