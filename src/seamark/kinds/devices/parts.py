"""What claims, classes and slices of devices have in common: names, selectors, configurations, taints, conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.devices.expressions import expression_mistakes
from seamark.kinds.storage.volume_sources import driver_name_mistakes
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    invalid,
    not_supported,
    omitted,
    repeated,
    required,
    too_long,
    too_many,
)
from seamark.kinds.values.metadata import dns_label, dns_subdomain, label_value, qualified_name

Judge = Callable[[Any, str], Errors]

_MOST_SELECTORS = 32
_MOST_CONDITIONS = 4
LONGEST_DATA = 10 * 1024
_LONGEST_POOL = 253
_LONGEST_IDENTIFIER = 32
_EFFECTS = ("NoExecute", "NoSchedule", "None")
_OPERATORS = ("Equal", "Exists")

_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


# --- lists -----------------------------------------------------------------------------------------


def each(entries: Sequence[Any], most: int, judge: Judge, path: str) -> Errors:
    """What is wrong with the entries of a list, or only that there are more than ``most``."""
    if len(entries) > most:
        return [too_many(path, len(entries), most)]
    return [error for i, entry in enumerate(entries) for error in judge(entry, f"{path}[{i}]")]


def distinct(
    entries: Sequence[Any], most: int, judge: Judge, path: str, *, key: Callable[[Any], Hashable] = lambda entry: entry
) -> Errors:
    """As :func:`each`, for a list in which no key comes twice."""
    errors = each(entries, most, judge, path)
    if len(entries) > most:
        return errors
    return errors + [duplicate(f"{path}[{i}]", key(entries[i])) for i in repeated(key(entry) for entry in entries)]


# --- names -----------------------------------------------------------------------------------------


def name_mistakes(name: str, path: str) -> Errors:
    """Of requests, devices and counters; an empty name is as wrong as any other."""
    return [invalid(path, name, sentence) for sentence in dns_label(name)]


def class_name_mistakes(name: str, path: str) -> Errors:
    return [invalid(path, name, sentence) for sentence in dns_subdomain(name)] if name else [required(path)]


def pool_name_mistakes(name: str, path: str) -> Errors:
    if not name:
        return [required(path)]
    errors = [too_long(path, _LONGEST_POOL)] if len(name) > _LONGEST_POOL else []
    return errors + [invalid(path, part, sentence) for part in name.split("/") for sentence in dns_subdomain(part)]


def attribute_name_mistakes(name: str, path: str) -> Errors:
    """A name of an attribute or a capacity: an identifier, maybe below a domain."""
    *domain, identifier = name.split("/")
    if len(domain) > 1:
        return [invalid(path, name, "must not contain more than one slash")]
    errors: Errors = []
    if domain:
        errors += driver_name_mistakes(domain[0], path) if domain[0] else [_empty(path, "domain")]
        if not identifier:
            return [*errors, _empty(path, "name")]
    if len(identifier) > _LONGEST_IDENTIFIER:
        errors.append(too_long(path, _LONGEST_IDENTIFIER))
    if not _identifier.fullmatch(identifier):
        sentence = (
            "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
            "characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is "
            "'[A-Za-z_][A-Za-z0-9_]*')"
        )
        errors.append(invalid(path, identifier, sentence))
    return errors


def full_name_mistakes(name: str, path: str) -> Errors:
    """The same, with a domain."""
    errors = attribute_name_mistakes(name, path)
    if "/" not in name:
        sentence = "a fully qualified name must be a domain and a name separated by a slash"
        errors.append(invalid(path, name, sentence))
    return errors


def _empty(path: str, what: str) -> Any:
    return invalid(path, "", f"the {what} must not be empty")


# --- selectors and configurations ------------------------------------------------------------------


def selectors_mistakes(selectors: Sequence[Object], path: str, *, stored: Sequence[Object] = ()) -> Errors:
    """``stored`` are the selectors before: if none has changed, their expressions are not judged again."""
    known = bool(stored) and stored == selectors

    def judge(selector: Object, at: str) -> Errors:
        cel = selector.get("cel")
        if cel is None:
            return [required(f"{at}.cel")]
        return [] if known else expression_mistakes(cel.get("expression", ""), f"{at}.cel.expression")

    return each(selectors, _MOST_SELECTORS, judge, path)


def configuration_mistakes(configuration: Object, path: str) -> Errors:
    opaque = configuration.get("opaque")
    if opaque is None:
        return [required(f"{path}.opaque")]
    errors = driver_name_mistakes(opaque.get("driver", ""), f"{path}.opaque.driver")
    return errors + data_mistakes(opaque.get("parameters"), f"{path}.opaque.parameters")


def data_mistakes(data: Any, path: str) -> Errors:
    """What is wrong with a document whose meaning only the driver knows: it is an object, and not large."""
    if data is None:
        return [required(path)]
    if len(msgspec.json.encode(data)) > LONGEST_DATA:
        return [too_long(path, LONGEST_DATA)]
    return [] if isinstance(data, dict) else [invalid(path, "<value omitted>", "must be a valid JSON object")]


# --- taints and conditions -------------------------------------------------------------------------


def taint_mistakes(taint: Object, path: str) -> Errors:
    key, value, effect = (taint.get(name, "") for name in ("key", "value", "effect"))
    errors = [invalid(f"{path}.key", key, sentence) for sentence in qualified_name(key)]
    errors += [invalid(f"{path}.value", value, sentence) for sentence in label_value(value)]
    if not effect:
        errors.append(required(f"{path}.effect"))
    elif effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def tolerations_mistakes(tolerations: Sequence[Object], path: str) -> Errors:
    return [e for i, toleration in enumerate(tolerations) for e in _toleration_mistakes(toleration, f"{path}[{i}]")]


def _toleration_mistakes(toleration: Object, path: str) -> Errors:
    key, operator, value, effect = (toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
    errors = [invalid(f"{path}.key", key, sentence) for sentence in qualified_name(key)] if key else []
    if operator == "Exists":
        if value:
            errors.append(invalid(f"{path}.value", value, "must be empty for operator `Exists`"))
    elif operator == "Equal":
        errors += [invalid(f"{path}.value", value, sentence) for sentence in label_value(value)]
    else:
        errors.append(not_supported(f"{path}.operator", operator, _OPERATORS))
    if effect and effect not in _EFFECTS:
        errors.append(not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def binding_mistakes(device: Object, path: str) -> Errors:
    """Conditions that must come before a Pod is bound, and those that end the waiting: one needs the other."""
    good, bad = device.get("bindingConditions") or [], device.get("bindingFailureConditions") or []
    errors: Errors = []
    for field, names in (("bindingConditions", good), ("bindingFailureConditions", bad)):
        errors += each(names, _MOST_CONDITIONS, _condition_mistakes, f"{path}.{field}")
    errors += [duplicate(f"{path}.bindingConditions[{i}]", good[i]) for i in repeated(good)]
    again, known = set(repeated(bad)), set(good)
    for i, name in enumerate(bad):
        at = f"{path}.bindingFailureConditions[{i}]"
        if i in again:
            errors.append(duplicate(at, name))
        if name in known:
            errors.append(invalid(at, name, "bindingFailureConditions must not overlap with bindingConditions"))
    if bool(good) != bool(bad):
        lacks, has = "bindingConditions", "bindingFailureConditions"
        if good:
            lacks, has = has, lacks
        errors.append(invalid(f"{path}.{lacks}", device.get(lacks), f"{lacks} are required to use {has}"))
    return errors


def _condition_mistakes(name: str, path: str) -> Errors:
    return [invalid(path, name, sentence) for sentence in qualified_name(name)]


def not_allocated(device: str, path: str) -> Any:
    """The mistake of a status about a device that the claim does not have."""
    return omitted(path, f"{device}: must be an allocated device in the claim")
