"""EndpointSlice: some of the endpoints of a Service, all of one address type.

Kubernetes checks slices by hand-written rules and then by rules declared with the type.  To report errors in the same
order, this checks ports and endpoints first, then the address type and the number of addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import ENDPOINT_SLICES
from seamark.kinds.values import metadata
from seamark.kinds.values.addresses import (
    canonical_ip_mistakes,
    family,
    flawless,
    ip_mistakes,
    ip_warnings,
    refuse_endpoint_ip,
)
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    immutable,
    invalid,
    not_supported,
    repeated,
    required,
    too_many,
)
from seamark.kinds.values.ports import app_protocol_mistakes, protocol_mistakes
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import MIRROR_CONTROLLER, SLICE_CONTROLLER, SLICE_MANAGED_BY_LABEL
from seamark.remembering import remembered

ADDRESS_TYPES = ("FQDN", "IPv4", "IPv6")
MOST_ENDPOINTS = 1000
MOST_ADDRESSES = 100
MOST_PORTS = 20000
MOST_HINTS = 8

_SHOWN = 3  # addresses, or ports, in a row of `kubectl get`
_LONGEST_NAME = 253
_CONTENT = ("addressType", "endpoints", "ports")


class EndpointSliceKind(Kind):
    resource = ENDPOINT_SLICES
    singular = "endpointslice"
    shape_name = "io.k8s.api.discovery.v1.EndpointSlice"
    columns = (
        Column("Name", format="name"),
        Column("AddressType"),
        Column("Ports"),
        Column("Endpoints"),
        Column("Age"),
    )

    def default(self, obj: Object) -> None:
        for port in obj.get("ports") or ():
            port.setdefault("name", "")
            port.setdefault("protocol", "TCP")

    def prepare_create(self, obj: Object) -> None:
        obj["metadata"]["generation"] = 1
        _drop_topology(obj)

    def validate(self, obj: Object) -> Errors:
        return (
            _port_mistakes(obj.get("ports") or ())
            + _endpoint_mistakes(obj)
            + _type_mistakes(obj.get("addressType", ""), None)
            + _address_count_mistakes(obj)
        )

    def prepare_update(self, obj: Object, old: Object) -> None:
        meta, before = obj["metadata"], old["metadata"]
        changed = any(obj.get(key) != old.get(key) for key in _CONTENT)
        relabelled = (meta.get("labels") or {}) != (before.get("labels") or {})
        meta["generation"] = before.get("generation", 0) + (changed or relabelled)
        if obj.get("endpoints") != old.get("endpoints"):
            _drop_topology(obj)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        # Endpoints that did not change stay valid, even if newer rules would reject them.
        same = obj.get("endpoints") == old.get("endpoints")
        errors = _port_mistakes(obj.get("ports") or ())
        errors += [] if same else _endpoint_mistakes(obj)
        errors += _type_mistakes(obj.get("addressType", ""), old.get("addressType", ""))
        return errors if same else errors + _address_count_mistakes(obj)

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        said = []
        if old is None and obj.get("addressType") == "FQDN":
            said.append("spec.addressType: FQDN endpoints are deprecated")
        # The controllers write canonical addresses, and many of them.
        if (obj["metadata"].get("labels") or {}).get(SLICE_MANAGED_BY_LABEL) in (SLICE_CONTROLLER, MIRROR_CONTROLLER):
            return said
        for i, endpoint in enumerate(obj.get("endpoints") or ()):
            for j, address in enumerate(endpoint.get("addresses") or ()):
                if flawless(address) is None:
                    said += ip_warnings(f"endpoints[{i}].addresses[{j}]", address)
        return said

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        addresses = [a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()]
        return [
            meta["name"],
            obj.get("addressType", ""),
            _listed([_port(port) for port in obj.get("ports") or ()]),
            _listed(addresses),
            age(now, meta.get("creationTimestamp")),
        ]


def _drop_topology(obj: Object) -> None:
    """Drop ``deprecatedTopology``, which is read-only in this version of the API."""
    for endpoint in obj.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


# --- hand-written rules ---------------------------------------------------------------------------------


def _port_mistakes(ports: Sequence[Object]) -> Errors:
    if len(ports) > MOST_PORTS:
        return [too_many("ports", len(ports), MOST_PORTS)]
    errors: Errors = []
    names = set()
    for i, port in enumerate(ports):
        at, name = f"ports[{i}]", port["name"]
        if name:
            errors += [invalid(f"{at}.name", name, sentence) for sentence in metadata.dns_label(name)]
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        errors += protocol_mistakes(f"{at}.protocol", port["protocol"])
        errors += app_protocol_mistakes(f"{at}.appProtocol", port.get("appProtocol"))
    return errors


def _endpoint_mistakes(obj: Object) -> Errors:
    endpoints = obj.get("endpoints") or ()
    if len(endpoints) > MOST_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), MOST_ENDPOINTS)]
    address_type = obj.get("addressType", "")
    errors: Errors = []
    for i, endpoint in enumerate(endpoints):
        if _flawless(endpoint, address_type):
            continue
        at = f"endpoints[{i}]"
        for j, address in enumerate(endpoint.get("addresses") or ()):
            errors += _address_mistakes(address, address_type, f"{at}.addresses", j)
        if (node := endpoint.get("nodeName")) is not None:
            errors += [invalid(f"{at}.nodeName", node, sentence) for sentence in metadata.dns_subdomain(node)]
        if (hostname := endpoint.get("hostname")) is not None:
            errors += [invalid(f"{at}.hostname", hostname, sentence) for sentence in metadata.dns_label(hostname)]
        if hints := endpoint.get("hints"):
            errors += _hint_mistakes(hints, f"{at}.hints")
    return errors


def _flawless(endpoint: Object, address_type: str) -> bool:
    """A fast check that nearly all endpoints pass, so that only the others need a closer look."""
    return (
        all(flawless(address) == address_type for address in endpoint.get("addresses") or ())
        and ((node := endpoint.get("nodeName")) is None or (len(node) <= _LONGEST_NAME and _plain_node(node)))
        and endpoint.get("hostname") is None
        and not endpoint.get("hints")
    )


@remembered(4096)
def _plain_node(name: str) -> bool:
    """Cached, because there are far fewer nodes than endpoints."""
    return not metadata.dns_subdomain(name)


def _address_mistakes(address: str, address_type: str, path: str, index: int) -> Errors:
    at = f"{path}[{index}]"
    if address_type == "FQDN":
        return _domain_mistakes(address, at)
    if address_type not in ("IPv4", "IPv6"):
        return []
    # IPv6 addresses in slices must be canonical, unlike IPv4 ones.
    sentences = ip_mistakes(address) if address_type == "IPv4" else canonical_ip_mistakes(address)
    if sentences:
        return [invalid(at, address, sentence) for sentence in sentences]
    errors: Errors = []
    if family(address) != address_type:
        errors.append(invalid(path, address, f"must be an {address_type} address"))
    return errors + refuse_endpoint_ip(at, address)


def _domain_mistakes(name: str, path: str) -> Errors:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if wrong := metadata.dns_subdomain(name):
        return [invalid(path, name, ",".join(wrong))]
    labels = name.split(".")
    if len(labels) < 2:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for label in labels:
        if wrong := metadata.dns_label(label):
            return [invalid(path, label, ",".join(wrong))]
    return []


def _hint_mistakes(hints: Object, path: str) -> Errors:
    errors: Errors = []
    for key, check in (("forZones", metadata.label_value), ("forNodes", metadata.dns_subdomain)):
        names = [hint.get("name", "") for hint in hints.get(key) or ()]
        if len(names) > MOST_HINTS:
            return [*errors, too_many(f"{path}.{key}", len(names), MOST_HINTS)]
        again = set(repeated(names))
        for i, name in enumerate(names):
            at = f"{path}.{key}[{i}].name"
            if i in again:
                errors.append(duplicate(at, name))
            errors += [invalid(at, name, sentence) for sentence in check(name)]
    return errors


# --- declared rules --------------------------------------------------------------------------------


def _type_mistakes(address_type: str, before: str | None) -> Errors:
    """The address type must be a known one and may not change; ``before`` is None for a new slice."""
    if before is not None:
        if address_type == before:
            return []
        errors = [] if address_type else [required("addressType")]
        return [*errors, immutable("addressType", address_type)]
    if not address_type:
        return [required("addressType")]
    return [] if address_type in ADDRESS_TYPES else [not_supported("addressType", address_type, ADDRESS_TYPES)]


def _address_count_mistakes(obj: Object) -> Errors:
    errors: Errors = []
    for i, endpoint in enumerate(obj.get("endpoints") or ()):
        count = len(endpoint.get("addresses") or ())
        if not count:
            errors.append(required(f"endpoints[{i}].addresses"))
        elif count > MOST_ADDRESSES:
            errors.append(too_many(f"endpoints[{i}].addresses", count, MOST_ADDRESSES))
    return errors


# --- tables ----------------------------------------------------------------------------------------


def _port(port: Object) -> str:
    number = port.get("port")
    return str(number) if number is not None else str(port.get("name", "*"))


def _listed(values: Sequence[str]) -> str:
    text = ",".join(values[:_SHOWN])
    return f"{text} + {len(values) - _SHOWN} more..." if len(values) > _SHOWN else text or "<unset>"


ENDPOINT_SLICE = EndpointSliceKind()
