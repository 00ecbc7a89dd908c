"""Endpoints: the addresses of a Service, in the kind that EndpointSlice replaced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seamark.errors import Object
from seamark.kinds.kind import Column, Kind
from seamark.kinds.resource import ENDPOINTS
from seamark.kinds.values import metadata
from seamark.kinds.values.addresses import flawless, ip_warnings, refuse_endpoint_ip, refuse_ip
from seamark.kinds.values.fields import Errors, invalid, required
from seamark.kinds.values.hosts import bracketed
from seamark.kinds.values.ports import app_protocol_mistakes, port_number_mistakes, protocol_mistakes
from seamark.kinds.values.times import age
from seamark.kinds.wellknown import ENDPOINTS_CONTROLLER, ENDPOINTS_MANAGED_BY_LABEL

_SHOWN = 3  # addresses in a row of `kubectl get`
_ADDRESS_LISTS = ("addresses", "notReadyAddresses")


class EndpointsKind(Kind):
    resource = ENDPOINTS
    singular = "endpoints"
    shape_name = "io.k8s.api.core.v1.Endpoints"
    short_names = ("ep",)
    columns = (Column("Name", format="name"), Column("Endpoints"), Column("Age"))
    create_on_update = True
    request_warning = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"

    def default(self, obj: Object) -> None:
        for subset in obj.get("subsets") or ():
            for port in subset.get("ports") or ():
                port.setdefault("protocol", "TCP")

    def validate(self, obj: Object) -> Errors:
        errors: Errors = []
        for i, subset in enumerate(obj.get("subsets") or ()):
            errors += _subset_mistakes(subset, f"subsets[{i}]")
        return errors

    def validate_update(self, obj: Object, old: Object) -> Errors:
        errors = self.validate(obj)
        # Subsets that did not change stay valid, even if newer rules would reject them.
        return [] if errors and (obj.get("subsets") or []) == (old.get("subsets") or []) else errors

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        # The controller writes canonical addresses, and many of them.
        if (obj["metadata"].get("labels") or {}).get(ENDPOINTS_MANAGED_BY_LABEL) == ENDPOINTS_CONTROLLER:
            return []
        said = []
        for i, subset in enumerate(obj.get("subsets") or ()):
            for key in _ADDRESS_LISTS:
                for j, address in enumerate(subset.get(key) or ()):
                    said += ip_warnings(f"subsets[{i}].{key}[{j}].ip", address.get("ip", ""))
        return said

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta = obj["metadata"]
        return [meta["name"], _summary(obj.get("subsets") or ()), age(now, meta.get("creationTimestamp"))]


def _subset_mistakes(subset: Object, path: str) -> Errors:
    errors: Errors = []
    if not any(subset.get(key) for key in _ADDRESS_LISTS):
        errors.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
    nodes: set[str | None] = {None}  # without mistakes
    for key in _ADDRESS_LISTS:
        for i, address in enumerate(subset.get(key) or ()):
            # There may be a thousand, and most are on a few nodes.
            if flawless(address.get("ip", "")) and not address.get("hostname") and address.get("nodeName") in nodes:
                continue
            if mistakes := _address_mistakes(address, f"{path}.{key}[{i}]"):
                errors += mistakes
            else:
                nodes.add(address.get("nodeName"))
    ports = subset.get("ports") or ()
    for i, port in enumerate(ports):
        errors += _port_mistakes(port, f"{path}.ports[{i}]", named=len(ports) > 1)
    return errors


def _address_mistakes(address: Object, path: str) -> Errors:
    text, hostname, node = address.get("ip", ""), address.get("hostname", ""), address.get("nodeName")
    errors = refuse_ip(f"{path}.ip", text)
    if hostname:
        errors += [invalid(f"{path}.hostname", hostname, sentence) for sentence in metadata.dns_label(hostname)]
    if node is not None:
        errors += [invalid(f"{path}.nodeName", node, sentence) for sentence in metadata.dns_subdomain(node)]
    return errors + refuse_endpoint_ip(f"{path}.ip", text)


def _port_mistakes(port: Object, path: str, *, named: bool) -> Errors:
    errors: Errors = []
    if name := port.get("name", ""):
        errors += [invalid(f"{path}.name", name, sentence) for sentence in metadata.dns_label(name)]
    elif named:
        errors.append(required(f"{path}.name"))
    errors += port_number_mistakes(f"{path}.port", port.get("port", 0))
    errors += protocol_mistakes(f"{path}.protocol", port.get("protocol", ""))
    return errors + app_protocol_mistakes(f"{path}.appProtocol", port.get("appProtocol"))


def _summary(subsets: Sequence[Object]) -> str:
    """The first few address and port pairs, and the number of the others."""
    if not subsets:
        return "<none>"
    shown: list[str] = []
    count = 0
    for subset in subsets:
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        for port in subset.get("ports") or (None,):
            count += len(addresses)
            shown += [_joined(address, port) for address in addresses[: _SHOWN - len(shown)]]
    text = ",".join(shown)
    return f"{text} + {count - _SHOWN} more..." if count > _SHOWN else text


def _joined(address: str, port: Object | None) -> str:
    return address if port is None else f"{bracketed(address)}:{port['port']}"


ENDPOINTS_KIND = EndpointsKind()
