"""What is wrong with slices of devices: where the devices are, what they are like, and what they share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial

from seamark.errors import Object
from seamark.kinds.devices.capacities import capacity_mistakes
from seamark.kinds.devices.parts import (
    attribute_name_mistakes,
    binding_mistakes,
    distinct,
    each,
    name_mistakes,
    pool_name_mistakes,
    taint_mistakes,
)
from seamark.kinds.devices.printed import printed_attribute
from seamark.kinds.language.go_names import NODE_SELECTOR_TERM, list_of
from seamark.kinds.pod.scheduling import node_selector_mistakes
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.values.fields import Errors, immutable, invalid, required, too_long, too_many
from seamark.kinds.values.metadata import dns_subdomain

_MOST_DEVICES = 128
_MOST_ADVANCED_DEVICES = 64
_MOST_ATTRIBUTES = 32
_MOST_TAINTS = 16
_MOST_COUNTER_SETS = 8
_MOST_CONSUMED_SETS = 2
_MOST_COUNTERS = 32
_LONGEST_VALUE = 64
_VALUES = ("bool", "int", "string", "version", "bools", "ints", "strings", "versions")
_LISTS = _VALUES[4:]

_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = "[0-9a-zA-Z-]+"
_version = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(-{_PRERELEASE}(\.{_PRERELEASE})*)?(\+{_BUILD}(\.{_BUILD})*)?", re.ASCII
)


def slice_mistakes(spec: Object, old: Object | None = None) -> Errors:
    """What is wrong with the ``spec`` of a slice; ``old`` is that of the slice before."""
    pool = spec.get("pool") or {}
    errors = driver_name_mistakes(spec.get("driver", ""), "spec.driver") + _pool_mistakes(pool)
    if old is not None:
        fixed = (
            ("spec.pool.name", pool.get("name", ""), (old.get("pool") or {}).get("name", "")),
            ("spec.driver", spec.get("driver", ""), old.get("driver", "")),
            ("spec.nodeName", spec.get("nodeName"), old.get("nodeName")),
        )
        errors += [immutable(path, value) for path, value, before in fixed if value != before]
    errors += _place_mistakes(spec)
    if spec.get("sharedCounters") is not None and spec.get("devices") is not None:
        errors.append(invalid("spec", "", "only one of `sharedCounters` or `devices` is allowed"))
    devices = spec.get("devices") or []
    before = {device.get("name", ""): device for device in (old or {}).get("devices") or ()}
    judge = partial(_device_mistakes, before=before, single=bool(spec.get("perDeviceNodeSelection")))
    most = _MOST_ADVANCED_DEVICES if any(map(_is_advanced, devices)) else _MOST_DEVICES
    errors += distinct(devices, most, judge, "spec.devices", key=_name)
    sets = spec.get("sharedCounters") or []
    return errors + distinct(sets, _MOST_COUNTER_SETS, _counter_set_mistakes, "spec.sharedCounters", key=_name)


def _name(named: Object) -> str:
    name: str = named.get("name", "")
    return name


def _is_advanced(device: Object) -> bool:
    """Whether a device is described at such length that a slice has room for fewer of them."""
    if device.get("taints") or device.get("consumesCounters"):
        return True
    return any(each.get(field) is not None for each in (device.get("attributes") or {}).values() for field in _LISTS)


def _pool_mistakes(pool: Object) -> Errors:
    errors = pool_name_mistakes(pool.get("name", ""), "spec.pool.name")
    count, generation = pool.get("resourceSliceCount", 0), pool.get("generation", 0)
    if count <= 0:
        errors.append(invalid("spec.pool.resourceSliceCount", count, "must be greater than zero"))
    if generation < 0:
        errors.append(invalid("spec.pool.generation", generation, "must be greater than or equal to zero"))
    return errors


# --- where devices are -----------------------------------------------------------------------------


def _place_mistakes(spec: Object) -> Errors:
    errors: Errors = []
    said: list[str] = []
    node, selector = spec.get("nodeName"), spec.get("nodeSelector")
    if node == "":
        errors.append(invalid("spec.nodeName", node, "must be either unset or set to a non-empty string"))
    elif node is not None:
        said.append("`nodeName`")
        errors += _node_mistakes(node, "spec.nodeName")
    if selector is not None:
        said.append("`nodeSelector`")
        errors += node_selector_mistakes(selector, "spec.nodeSelector")
        terms = selector.get("nodeSelectorTerms")
        if len(terms or ()) != 1:
            sentence = "must have exactly one node selector term"
            shown = list_of(NODE_SELECTOR_TERM)(terms)
            errors.append(invalid("spec.nodeSelector.nodeSelectorTerms", shown, sentence))
    for field in ("allNodes", "perDeviceNodeSelection"):
        if spec.get(field):
            said.append(f"`{field}`")
        elif spec.get(field) is not None:
            errors.append(invalid(f"spec.{field}", spec[field], "must be either unset or set to true"))
    sentence = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
    if not said:
        errors.append(required("spec", sentence))
    elif len(said) > 1:
        listed = f"{{{', '.join(said)}}}"
        errors.append(invalid("spec", listed, f"{sentence}, but multiple fields are set"))
    return errors


def _own_place_mistakes(device: Object, path: str, *, single: bool) -> Errors:
    """Where one device is; ``single``: the slice leaves that to its devices."""
    fields = ("nodeName", "nodeSelector", "allNodes")
    if not single:
        if all(device.get(field) is None for field in fields):
            return []
        sentence = (
            "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in "
            "the ResourceSlice spec"
        )
        return [invalid(path, None, sentence)]
    node, selector, everywhere = (device.get(field) for field in fields)
    errors: Errors = []
    if node == "":
        errors.append(invalid(f"{path}.nodeName", node, "must not be empty"))
    elif node is not None:
        errors += _node_mistakes(node, f"{path}.nodeName")
    if selector is not None:
        errors += node_selector_mistakes(selector, f"{path}.nodeSelector")
    if everywhere is False:
        errors.append(invalid(f"{path}.allNodes", everywhere, "must be either unset or set to true"))
    said = [f"`{field}`" for field, held in zip(fields, (node, selector is not None, everywhere), strict=True) if held]
    sentence = (
        "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to "
        "true in the ResourceSlice spec"
    )
    if not said:
        errors.append(required(path, sentence))
    elif len(said) > 1:
        errors.append(invalid(path, f"{{{', '.join(said)}}}", sentence))
    return errors


def _node_mistakes(name: str, path: str) -> Errors:
    return [invalid(path, name, sentence) for sentence in dns_subdomain(name)]


# --- what devices are like -------------------------------------------------------------------------


def _device_mistakes(device: Object, path: str, *, before: Mapping[str, Object], single: bool) -> Errors:
    old = before.get(_name(device)) or {}
    attributes, capacity = device.get("attributes") or {}, device.get("capacity") or {}
    errors = name_mistakes(_name(device), f"{path}.name")
    count = len(attributes) + len(capacity)
    if count > _MOST_ATTRIBUTES:
        sentence = f"the total number of attributes and capacities must not exceed {_MOST_ATTRIBUTES}"
        errors.append(invalid(path, count, sentence))
    for name, attribute in attributes.items():
        errors += attribute_name_mistakes(name, f"{path}.attributes")
        errors += _attribute_mistakes(attribute, f"{path}.attributes[{name}]")
    if capacity != (old.get("capacity") or {}):
        for name, held in capacity.items():
            errors += attribute_name_mistakes(name, f"{path}.capacity")
            shared = bool(device.get("allowMultipleAllocations"))
            errors += capacity_mistakes(held, f"{path}.capacity[{name}]", shared=shared)
    taints = device.get("taints") or []
    if taints != (old.get("taints") or []):
        errors += each(taints, _MOST_TAINTS, taint_mistakes, f"{path}.taints")
    consumed, at = device.get("consumesCounters") or [], f"{path}.consumesCounters"
    errors += distinct(consumed, _MOST_CONSUMED_SETS, _consumed_mistakes, at, key=lambda one: one.get("counterSet", ""))
    return errors + _own_place_mistakes(device, path, single=single) + binding_mistakes(device, path)


def _attribute_mistakes(attribute: Object, path: str) -> Errors:
    errors: Errors = []
    said = [field for field in _VALUES if attribute.get(field) is not None]
    for field, value, at in _texts(attribute, path):
        if field.startswith("version") and not _version.fullmatch(value):
            errors.append(invalid(at, value, "must be a string compatible with semver.org spec 2.0.0"))
        if len(value.encode()) > _LONGEST_VALUE:
            errors.append(too_long(at, _LONGEST_VALUE))
    for field in _LISTS:
        if attribute.get(field) == []:
            errors.append(invalid(f"{path}.{field}", [], "must not be empty if specified"))
    if len(said) != 1:
        errors.append(
            invalid(path, printed_attribute(attribute) if said else "", "exactly one value must be specified")
        )
    return errors


def _texts(attribute: Object, path: str) -> Iterator[tuple[str, str, str]]:
    """The texts of an attribute: the field, the text and where it is."""
    for field in ("string", "version"):
        if (value := attribute.get(field)) is not None:
            yield field, value, f"{path}.{field}"
    for field in ("strings", "versions"):
        for i, value in enumerate(attribute.get(field) or ()):
            yield field, value, f"{path}.{field}[{i}]"


# --- what devices share ----------------------------------------------------------------------------


def _counter_set_mistakes(counters: Object, path: str) -> Errors:
    return _counters_mistakes(counters, "name", path)


def _consumed_mistakes(consumed: Object, path: str) -> Errors:
    return _counters_mistakes(consumed, "counterSet", path)


def _counters_mistakes(holder: Object, named: str, path: str) -> Errors:
    name, counters = holder.get(named, ""), holder.get("counters") or {}
    errors = name_mistakes(name, f"{path}.{named}") if name else [required(f"{path}.{named}")]
    if not counters:
        errors.append(required(f"{path}.counters"))
    elif len(counters) > _MOST_COUNTERS:
        errors.append(too_many(f"{path}.counters", len(counters), _MOST_COUNTERS))
    else:
        errors += [error for counter in counters for error in name_mistakes(counter, f"{path}.counters")]
    return errors
