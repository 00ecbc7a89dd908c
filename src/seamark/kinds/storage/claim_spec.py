"""The spec of a PersistentVolumeClaim: its defaults and its validation, also for claim templates."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_label, dns_subdomain
from seamark.kinds.values.quantity import amount

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def claim_mistakes(spec: Object, path: str, *, any_group: bool = False) -> Errors:
    """What is wrong with the spec of a claim; ``any_group``: the groups of its data sources are not checked."""
    errors: Errors = []
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += label_selector_mistakes(spec.get("selector"), f"{path}.selector")
    errors += access_mode_mistakes(modes, path)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    at = f"{path}.resources[storage]"
    if storage is None:
        errors.append(required(at))
    elif amount(storage) <= 0:
        errors.append(invalid(at, storage, "must be greater than zero"))
    if name := spec.get("storageClassName"):
        errors += [invalid(f"{path}.storageClassName", name, sentence) for sentence in dns_subdomain(name)]
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    errors += _source_mistakes(spec, path, any_group=any_group)
    if name := spec.get("volumeAttributesClassName"):
        errors += [invalid(f"{path}.volumeAttributesClassName", name, sentence) for sentence in dns_subdomain(name)]
    return errors


def access_mode_mistakes(modes: list[str], path: str) -> Errors:
    """What is wrong with the access modes of a claim or a volume."""
    at = f"{path}.accessModes"
    errors = [not_supported(at, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    known = {mode for mode in modes if mode in ACCESS_MODES}
    if "ReadWriteOncePod" in known and len(known) > 1:
        errors.append(forbidden(at, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _source_mistakes(spec: Object, path: str, *, any_group: bool) -> Errors:
    """Validate what a new volume is filled with; Kubernetes has two fields for it, which must agree."""
    errors: Errors = []
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    for field, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is None:
            continue
        at, group, kind = f"{path}.{field}", value.get("apiGroup") or "", value.get("kind", "")
        errors += [required(f"{at}.{part}") for part in ("name", "kind") if not value.get(part)]
        if not group and kind != "PersistentVolumeClaim":
            sentence = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
            errors.append(invalid(at, kind, sentence))
        if group and not any_group:
            errors += [invalid(f"{at}.apiGroup", group, sentence) for sentence in dns_subdomain(group)]
        if namespace := value.get("namespace"):
            errors += [invalid(f"{at}.namespace", namespace, sentence) for sentence in dns_label(namespace)]
    if source is not None and reference is not None:
        parts = ("apiGroup", "kind", "name")
        if reference.get("namespace"):
            sentence = "may not be specified when dataSourceRef.namespace is specified"
            errors.append(invalid(path, f"{path}.dataSource", sentence))
        elif any(source.get(part) != reference.get(part) for part in parts):
            errors.append(invalid(path, f"{path}.dataSource", "must match dataSourceRef"))
    return errors
