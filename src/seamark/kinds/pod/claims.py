"""The spec of a PersistentVolumeClaim, where a Pod or a StatefulSet carries a template of one."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.quantity import amount

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_mistakes(spec: Object, path: str) -> Errors:
    errors: Errors = []
    modes = spec.get("accessModes") or []
    if not modes:
        errors.append(required(f"{path}.accessModes", "at least 1 access mode is required"))
    errors += label_selector_mistakes(spec.get("selector"), f"{path}.selector")
    errors += [not_supported(f"{path}.accessModes", mode, _ACCESS_MODES) for mode in modes if mode not in _ACCESS_MODES]
    if "ReadWriteOncePod" in modes and len(modes) > 1:
        sentence = "may not use ReadWriteOncePod with other access modes"
        errors.append(forbidden(f"{path}.accessModes", sentence))
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    at = f"{path}.resources[storage]"
    if storage is None:
        errors.append(required(at))
    elif amount(storage) <= 0:
        errors.append(invalid(at, storage, "must be greater than zero"))
    for field in ("storageClassName", "volumeAttributesClassName"):
        if name := spec.get(field):
            errors += [invalid(f"{path}.{field}", name, sentence) for sentence in dns_subdomain(name)]
    mode = spec.get("volumeMode")
    if mode is not None and mode not in ("Block", "Filesystem"):
        errors.append(not_supported(f"{path}.volumeMode", mode, ("Block", "Filesystem")))
    return errors
