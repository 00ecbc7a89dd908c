"""What is wrong with claims of devices: what they ask for, and what their status says they were given."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from seamark.errors import Object
from seamark.kinds.devices.parts import (
    binding_mistakes,
    class_name_mistakes,
    configuration_mistakes,
    data_mistakes,
    distinct,
    each,
    full_name_mistakes,
    name_mistakes,
    not_allocated,
    pool_name_mistakes,
    selectors_mistakes,
    tolerations_mistakes,
)
from seamark.kinds.devices.printed import printed_allocation
from seamark.kinds.pod.scheduling import node_selector_mistakes
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.values.addresses import parse_network
from seamark.kinds.values.conditions import conditions_mistakes
from seamark.kinds.values.fields import (
    Errors,
    alike,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
    show,
    too_long,
    too_many,
)

_MOST_REQUESTS = 32
_MOST_ALTERNATIVES = 8
_MOST_CONSTRAINTS = 32
_MOST_CONFIGURATIONS = 32
_MOST_RESULTS = 32
_MOST_USERS = 256
_MOST_CONDITIONS = 8
_MOST_ADDRESSES = 16
_LONGEST_INTERFACE = 256
_LONGEST_HARDWARE_ADDRESS = 128
_MODES = ("All", "ExactCount")
_SOURCES = ("FromClaim", "FromClass")

_uuid = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

# The requests of a claim by name, each with the names of its alternatives.
Requests = Mapping[str, frozenset[str]]


# --- what is asked for -----------------------------------------------------------------------------


def spec_mistakes(spec: Object, path: str) -> Errors:
    """What is wrong with the ``spec`` of a claim, which is at ``path``."""
    devices, at = spec.get("devices") or {}, f"{path}.devices"
    named = _requests(spec)
    requests = devices.get("requests") or []
    errors = distinct(requests, _MOST_REQUESTS, _request_mistakes, f"{at}.requests", key=_name)
    constraints = devices.get("constraints") or []
    errors += each(constraints, _MOST_CONSTRAINTS, _judging(_constraint_mistakes, named), f"{at}.constraints")
    configured = _judging(_configured_mistakes, named)
    return errors + each(devices.get("config") or [], _MOST_CONFIGURATIONS, configured, f"{at}.config")


def _request_mistakes(request: Object, path: str) -> Errors:
    exactly, first = request.get("exactly"), request.get("firstAvailable") or []
    errors = name_mistakes(_name(request), f"{path}.name")
    if exactly is None and not first:
        errors.append(required(path, "exactly one of `exactly` or `firstAvailable` is required"))
    elif exactly is not None and first:
        sentence = "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set"
        errors.append(invalid(path, None, sentence))
    elif exactly is not None:
        errors += _wanted_mistakes(exactly, f"{path}.exactly")
    else:
        errors += distinct(first, _MOST_ALTERNATIVES, _alternative_mistakes, f"{path}.firstAvailable", key=_name)
    return errors


def _alternative_mistakes(wanted: Object, path: str) -> Errors:
    return name_mistakes(_name(wanted), f"{path}.name") + _wanted_mistakes(wanted, path)


def _wanted_mistakes(wanted: Object, path: str) -> Errors:
    errors = class_name_mistakes(wanted.get("deviceClassName", ""), f"{path}.deviceClassName")
    errors += selectors_mistakes(wanted.get("selectors") or [], f"{path}.selectors")
    mode, count = wanted.get("allocationMode", ""), wanted.get("count", 0)
    if mode not in _MODES:
        errors.append(not_supported(f"{path}.allocationMode", mode, _MODES))
    elif mode == "All" and count:
        errors.append(invalid(f"{path}.count", count, "must not be specified when allocationMode is 'All'"))
    elif mode == "ExactCount" and count <= 0:
        errors.append(invalid(f"{path}.count", count, "must be greater than zero"))
    return errors + tolerations_mistakes(wanted.get("tolerations") or [], f"{path}.tolerations")


def _constraint_mistakes(constraint: Object, path: str, named: Requests) -> Errors:
    errors = _references_mistakes(constraint, path, named)
    for field in ("matchAttribute", "distinctAttribute"):
        if (attribute := constraint.get(field)) is not None:
            return errors + full_name_mistakes(attribute, f"{path}.{field}")
    sentence = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'
    return [*errors, required(path, sentence)]


def _configured_mistakes(configuration: Object, path: str, named: Requests) -> Errors:
    return _references_mistakes(configuration, path, named) + configuration_mistakes(configuration, path)


def _references_mistakes(holder: Object, path: str, named: Requests) -> Errors:
    """What is wrong with the names of requests that something is about."""
    judge = _judging(_reference_mistakes, named)
    return distinct(holder.get("requests") or [], _MOST_REQUESTS, judge, f"{path}.requests")


def _reference_mistakes(name: str, path: str, named: Requests) -> Errors:
    request, *alternative = name.split("/")
    sentence = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
    if len(alternative) > 1:
        return [invalid(path, name, sentence)]
    errors = [error for part in (request, *alternative) for error in name_mistakes(part, path)]
    if request not in named or not named[request].issuperset(alternative):
        errors.append(invalid(path, name, sentence))
    return errors


def _requests(spec: Object) -> Requests:
    listed = (spec.get("devices") or {}).get("requests") or ()
    return {_name(each): frozenset(map(_name, each.get("firstAvailable") or ())) for each in listed}


def _name(named: Object) -> str:
    name: str = named.get("name", "")
    return name


def _judging(judge: Callable[[Any, str, Requests], Errors], named: Requests) -> Callable[[Any, str], Errors]:
    return lambda entry, path: judge(entry, path, named)


# --- what was given --------------------------------------------------------------------------------


def status_mistakes(claim: Object, old: Object) -> Errors:
    """What is wrong with a new status of a claim."""
    status, before = claim.get("status") or {}, old.get("status") or {}
    allocation, users = status.get("allocation"), status.get("reservedFor") or []
    errors = distinct(users, _MOST_USERS, _user_mistakes, "status.reservedFor", key=lambda user: user.get("uid", ""))
    given = {_device(result) for result in _results(allocation)}
    devices = status.get("devices") or []
    errors += distinct(
        devices,
        len(devices),
        lambda device, path: _device_mistakes(device, path, given),
        "status.devices",
        key=_device,
    )
    if users and allocation is None:
        errors.append(forbidden("status.reservedFor", "may not be specified when `allocated` is not set"))
    elif claim["metadata"].get("deletionTimestamp") and not {alike(user) for user in users}.issubset(
        alike(user) for user in before.get("reservedFor") or ()
    ):
        sentence = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        errors.append(forbidden("status.reservedFor", sentence))
    if allocation is None:
        return errors
    if before.get("allocation") is not None:
        fixed = allocation == before["allocation"]
        return errors if fixed else [*errors, immutable("status.allocation", printed_allocation(allocation))]
    return errors + _allocation_mistakes(allocation, "status.allocation", _requests(claim["spec"]))


def keep_allocated(claim: Object, old: Object) -> None:
    """Drop what the status says of devices that the claim had and has no more."""
    status = claim.get("status") or {}
    gone = {_device(result) for result in _results((old.get("status") or {}).get("allocation"))}
    gone -= {_device(result) for result in _results(status.get("allocation"))}
    if gone and status.get("devices"):
        kept = [device for device in status["devices"] if _device(device) not in gone]
        if kept:
            status["devices"] = kept
        else:
            del status["devices"]


def _results(allocation: Object | None) -> Sequence[Object]:
    return ((allocation or {}).get("devices") or {}).get("results") or ()


def _device(named: Object) -> str:
    """A device, or the part of it that a claim has, in one word."""
    parts = [named.get(part, "") for part in ("driver", "pool", "device")]
    return "/".join([*parts, named["shareID"]] if named.get("shareID") else parts)


def _user_mistakes(user: Object, path: str) -> Errors:
    return [required(f"{path}.{field}") for field in ("resource", "name", "uid") if not user.get(field)]


def _place_mistakes(device: Object, path: str) -> Errors:
    errors = driver_name_mistakes(device.get("driver", ""), f"{path}.driver")
    errors += pool_name_mistakes(device.get("pool", ""), f"{path}.pool")
    return errors + name_mistakes(device.get("device", ""), f"{path}.device")


def _allocation_mistakes(allocation: Object, path: str, named: Requests) -> Errors:
    devices, at = allocation.get("devices") or {}, f"{path}.devices"
    errors = each(devices.get("results") or [], _MOST_RESULTS, _judging(_result_mistakes, named), f"{at}.results")
    configured = _judging(_source_mistakes, named)
    errors += each(devices.get("config") or [], 2 * _MOST_CONFIGURATIONS, configured, f"{at}.config")
    if (selector := allocation.get("nodeSelector")) is not None:
        errors += node_selector_mistakes(selector, f"{path}.nodeSelector")
    return errors


def _result_mistakes(result: Object, path: str, named: Requests) -> Errors:
    errors = _reference_mistakes(result.get("request", ""), f"{path}.request", named)
    errors += _place_mistakes(result, path) + binding_mistakes(result, path)
    errors += tolerations_mistakes(result.get("tolerations") or [], f"{path}.tolerations")
    return errors + _share_mistakes(result, path)


def _source_mistakes(configuration: Object, path: str, named: Requests) -> Errors:
    source = configuration.get("source", "")
    errors: Errors = []
    if not source:
        errors.append(required(f"{path}.source"))
    elif source not in _SOURCES:
        errors.append(not_supported(f"{path}.source", source, _SOURCES))
    return errors + _configured_mistakes(configuration, path, named)


def _share_mistakes(device: Object, path: str) -> Errors:
    share = device.get("shareID")
    if share is None or _uuid.fullmatch(share):
        return []
    try:
        UUID(share)
    except ValueError:
        sentence = f"error validating uid: invalid UUID length: {len(share)}"
        if len(share) in (32, 36, 38, 45):
            sentence = "error validating uid: invalid UUID format"
    else:
        sentence = (
            "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase "
            "hexadecimal characters"
        )
    return [invalid(f"{path}.shareID", share, sentence)]


def _device_mistakes(device: Object, path: str, given: set[str]) -> Errors:
    errors = _place_mistakes(device, path) + _share_mistakes(device, path)
    if _device(device) not in given:
        errors.append(not_allocated(_device(device), path))
    conditions = device.get("conditions") or []
    if len(conditions) > _MOST_CONDITIONS:
        errors.append(too_many(f"{path}.conditions", len(conditions), _MOST_CONDITIONS))
    errors += conditions_mistakes(conditions, f"{path}.conditions")
    if device.get("data") is not None:
        errors += data_mistakes(device["data"], f"{path}.data")
    return errors + _network_mistakes(device.get("networkData") or {}, f"{path}.networkData")


def _network_mistakes(network: Object, path: str) -> Errors:
    errors: Errors = []
    for field, longest in (("interfaceName", _LONGEST_INTERFACE), ("hardwareAddress", _LONGEST_HARDWARE_ADDRESS)):
        if len(network.get(field, "").encode()) > longest:
            errors.append(too_long(f"{path}.{field}", longest))
    addresses = network.get("ips") or []
    return errors + distinct(addresses, _MOST_ADDRESSES, _interface_mistakes, f"{path}.ips")


def _interface_mistakes(address: str, path: str) -> Errors:
    """An interface has an address in a network, not the network's own."""
    parsed = parse_network(address)
    if parsed is None:
        sentence = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)"
        return [invalid(path, address, sentence)]
    canonical = f"{parsed.address}/{parsed.network.prefixlen}"
    return [] if address == canonical else [invalid(path, address, f"must be in canonical form ({show(canonical)})")]
