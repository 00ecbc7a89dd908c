"""How Kubernetes shows claims of devices and what they were given in messages: as Go prints its internal structs."""

from __future__ import annotations

from typing import Any

from seamark.errors import Object
from seamark.kinds.language.go_names import NODE_SELECTOR_TERM, list_of, struct

_SELECTORS = list_of(struct(CEL=struct(Expression="")))
_TOLERATIONS = list_of(struct(Key="", Operator="", Value="", Effect="", TolerationSeconds=None))
_CAPACITY = struct(Requests=None)
_DERIVED = list_of(struct(Name="", Expression=""))
_OPAQUE = struct(Driver="", Parameters=None)
_WANTED = {
    "DeviceClassName": "",
    "Selectors": _SELECTORS,
    "AllocationMode": "",
    "Count": 0,
    "AdminAccess": None,
    "Tolerations": _TOLERATIONS,
    "Capacity": _CAPACITY,
    "DerivedAttributes": _DERIVED,
}
_ALTERNATIVE = {"Name": "", **{name: zero for name, zero in _WANTED.items() if name != "AdminAccess"}}
_DEVICES = struct(
    Requests=list_of(struct(Name="", Exactly=struct(**_WANTED), FirstAvailable=list_of(struct(**_ALTERNATIVE)))),
    Constraints=list_of(struct(Requests=None, MatchAttribute=None, DistinctAttribute=None)),
    Config=list_of(struct(Requests=None, Opaque=_OPAQUE)),
)
_CLAIM = struct(Devices=_DEVICES)
_RESULT = struct(
    Request="",
    Driver="",
    Pool="",
    Device="",
    AdminAccess=None,
    Tolerations=_TOLERATIONS,
    BindingConditions=None,
    BindingFailureConditions=None,
    ShareID=None,
    ConsumedCapacity=None,
    SkipNodeOperations=None,
)
_GIVEN = struct(Results=list_of(_RESULT), Config=list_of(struct(Source="", Requests=None, Opaque=_OPAQUE)))
_ALLOCATION = struct(
    Devices=_GIVEN,
    NodeSelector=struct(NodeSelectorTerms=list_of(NODE_SELECTOR_TERM)),
    AllocationTimestamp=None,
)


def printed_claim(spec: Object) -> Any:
    return _CLAIM({"devices": spec.get("devices") or {}})


def printed_template(spec: Object) -> Any:
    """The metadata of a template are not apart from its other fields."""
    return {**(spec.get("metadata") or {}), "Spec": printed_claim(spec.get("spec") or {})}


def printed_allocation(allocation: Object) -> Any:
    return _ALLOCATION({**allocation, "devices": allocation.get("devices") or {}})


def printed_attribute(attribute: Object) -> Object:
    kinds = ("int", "bool", "string", "version")
    single = {f"{kind.title()}Value": attribute.get(kind) for kind in kinds}
    return single | {f"{kind.title()}Values": attribute.get(f"{kind}s") for kind in kinds}
