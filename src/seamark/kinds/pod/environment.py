"""Validation of environment variables, of references to fields of the Pod, and of relative paths."""

from __future__ import annotations

import re

from seamark.errors import Object
from seamark.kinds.core.configmap import key_mistakes
from seamark.kinds.values.fields import Errors, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_label, dns_subdomain, qualified_name
from seamark.kinds.values.quantity import amount

_printable = re.compile(r"[ -<>-~]*", re.ASCII)  # printable ASCII without "="

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_POD_FIELDS = frozenset((*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase"))

_CONTAINER_FIELDS = tuple(
    f"{kind}.{name}" for kind in ("limits", "requests") for name in ("cpu", "ephemeral-storage", "memory")
)
_HUGE_PREFIXES = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def variable_name_mistakes(name: str) -> list[str]:
    if _printable.fullmatch(name):
        return []
    return ["a valid environment variable name must consist only of printable ASCII characters other than '='"]


def env_mistakes(variables: list[Object], path: str) -> Errors:
    errors: Errors = []
    for i, variable in enumerate(variables):
        name = variable.get("name", "")
        if not name:
            errors.append(required(f"{path}[{i}].name"))
        elif sentences := variable_name_mistakes(name):
            errors += [invalid(f"{path}[{i}].name", name, sentence) for sentence in sentences]
        if (source := variable.get("valueFrom")) is not None:
            errors += _source_mistakes(source, variable.get("value", ""), f"{path}[{i}].valueFrom")
    return errors


def _source_mistakes(source: Object, value: str, path: str) -> Errors:
    errors: Errors = []
    if (reference := source.get("fieldRef")) is not None:
        errors += field_reference_mistakes(reference, ENV_FIELDS, f"{path}.fieldRef")
    if (reference := source.get("resourceFieldRef")) is not None:
        errors += resource_reference_mistakes(reference, f"{path}.resourceFieldRef", in_volume=False)
    for field in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(field)) is not None:
            errors += _key_reference_mistakes(reference, f"{path}.{field}")
    if (reference := source.get("fileKeyRef")) is not None:
        errors += _file_reference_mistakes(reference, f"{path}.fileKeyRef")
    if not source:
        choices = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        errors.append(invalid(path, "", f"must specify one of: {choices}"))
    elif value:
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(source) > 1:
        errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _key_reference_mistakes(reference: Object, path: str) -> Errors:
    name, key = reference.get("name", ""), reference.get("key", "")
    errors = [invalid(f"{path}.name", name, sentence) for sentence in dns_subdomain(name)]
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += [invalid(f"{path}.key", key, sentence) for sentence in key_mistakes(key)]
    return errors


def _file_reference_mistakes(reference: Object, path: str) -> Errors:
    errors: Errors = []
    key, volume, file = reference.get("key", ""), reference.get("volumeName", ""), reference.get("path", "")
    if not key:
        errors.append(required(f"{path}.key"))
    else:
        errors += [invalid(f"{path}.key", key, sentence) for sentence in variable_name_mistakes(key)]
    if not volume:
        errors.append(required(f"{path}.volumeName"))
    else:
        errors += [invalid(f"{path}.volumeName", volume, sentence) for sentence in dns_label(volume)]
    if not file:
        errors.append(required(f"{path}.path"))
    else:
        errors += backstep_mistakes(file, f"{path}.path")
    return errors


def env_from_mistakes(sources: list[Object], path: str) -> Errors:
    errors: Errors = []
    for i, source in enumerate(sources):
        if prefix := source.get("prefix"):
            errors += [invalid(f"{path}[{i}].prefix", prefix, sentence) for sentence in variable_name_mistakes(prefix)]
        given = [field for field in ("configMapRef", "secretRef") if source.get(field) is not None]
        for field in given:
            name = source[field].get("name", "")
            at = f"{path}[{i}].{field}.name"
            if not name:
                errors.append(required(at))
            else:
                errors += [invalid(at, name, sentence) for sentence in dns_subdomain(name, prefix=True)]
        if not given:
            errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
        elif len(given) > 1:
            errors.append(invalid(path, "", "may not have more than one field specified at a time"))
    return errors


def _subscripted(field: str) -> tuple[str, str | None]:
    """``metadata.labels`` and ``app`` of ``metadata.labels['app']``; the field and None if it has no such end."""
    whole, bracket, subscript = field[:-2].rpartition("['")
    return (whole, subscript) if bracket and field.endswith("']") else (field, None)


def field_reference_mistakes(reference: Object, supported: tuple[str, ...], path: str) -> Errors:
    """What is wrong with a ``fieldRef``; ``supported`` are the allowed fields without a subscript."""
    version, field = reference.get("apiVersion", ""), reference.get("fieldPath", "")
    if not version:
        return [required(f"{path}.apiVersion")]
    if not field:
        return [required(f"{path}.fieldPath")]
    refused = ""
    whole, subscript = _subscripted(field)
    if field == "spec.host":
        whole = "spec.nodeName"  # its name before v1
    if version != "v1":
        refused = f"unsupported pod version: {version}"
    elif subscript is not None:
        if whole not in ("metadata.annotations", "metadata.labels"):
            refused = f"field label does not support subscript: {field}"
    elif whole not in _POD_FIELDS:
        refused = f"field label not supported: {field}"
    if refused:
        return [invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {refused}")]
    if subscript is not None:
        key = subscript.lower() if whole == "metadata.annotations" else subscript
        return [invalid(path, key, sentence) for sentence in qualified_name(key)]
    if whole not in supported:
        return [not_supported(f"{path}.fieldPath", whole, supported)]
    return []


def resource_reference_mistakes(reference: Object, path: str, *, in_volume: bool) -> Errors:
    """What is wrong with a ``resourceFieldRef``; in a volume it must name a container."""
    errors: Errors = []
    resource = reference.get("resource", "")
    if in_volume and not reference.get("containerName"):
        errors.append(required(f"{path}.containerName"))
    elif not resource:
        errors.append(required(f"{path}.resource"))
    elif resource not in _CONTAINER_FIELDS and not resource.startswith(_HUGE_PREFIXES):
        errors.append(not_supported(f"{path}.resource", resource, _CONTAINER_FIELDS))
    divisor = reference.get("divisor") or "0"
    if amount(divisor):
        errors += _divisor_mistakes(resource, divisor, f"{path}.divisor")
    return errors


def _divisor_mistakes(resource: str, divisor: str, path: str) -> Errors:
    if resource.endswith(".cpu"):
        if divisor not in ("1m", "1"):
            sentence = "only divisor's values 1m and 1 are supported with the cpu resource"
            return [invalid(path, resource, sentence)]
        return []
    what = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}.get(resource.partition(".")[2])
    if resource.startswith(_HUGE_PREFIXES):
        what = "hugepages"
    if what is not None and divisor not in _SIZES:
        sentence = f"only divisor's values {', '.join(_SIZES)} are supported with the {what} resource"
        return [invalid(path, resource, sentence)]
    return []


# --- paths ---------------------------------------------------------------------------------------------------


def backstep_mistakes(text: str, path: str) -> Errors:
    return [invalid(path, text, "must not contain '..'")] if ".." in text.split("/") else []


def descending_path_mistakes(text: str, path: str) -> Errors:
    """A path must be relative and may not contain ``..``."""
    errors = [invalid(path, text, "must be a relative path")] if text.startswith("/") else []
    return errors + backstep_mistakes(text, path)


def non_reserved_path_mistakes(text: str, path: str) -> Errors:
    """In addition, a path may not start with two dots: volumes use such names internally."""
    errors = descending_path_mistakes(text, path)
    if text.startswith("..") and not text.startswith("../"):
        errors.append(invalid(path, text, "must not start with '..'"))
    return errors
