"""PersistentVolume: a piece of storage that a claim can take."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from posixpath import normpath
from typing import Any

from seamark.errors import Object
from seamark.kinds.counted import keep_status
from seamark.kinds.kind import Column, Kind
from seamark.kinds.language import go_names
from seamark.kinds.pod.defaults import VOLUME_DEFAULTS
from seamark.kinds.pod.resources import round_up
from seamark.kinds.pod.scheduling import node_selector_mistakes
from seamark.kinds.pod.warnings import DEPRECATED_VOLUMES, node_term_warnings
from seamark.kinds.resource import PERSISTENT_VOLUMES
from seamark.kinds.storage.claim_spec import VOLUME_MODES, access_mode_mistakes
from seamark.kinds.storage.persistentvolumeclaim import class_annotation_warnings, class_of, modes_cell
from seamark.kinds.storage.volume_sources import SOURCES, source_mistakes
from seamark.kinds.subresource import status_of
from seamark.kinds.values.differences import difference
from seamark.kinds.values.fields import Errors, forbidden, immutable, invalid, not_supported, required
from seamark.kinds.values.metadata import dns_subdomain
from seamark.kinds.values.quantity import amount
from seamark.kinds.values.times import age

_POLICIES = ("Delete", "Recycle", "Retain")
_RECYCLE = (
    "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach "
    "is to use dynamic provisioning."
)
_OPTIONS_ANNOTATION = "volume.beta.kubernetes.io/mount-options"  # how options were named before spec.mountOptions
_OPTIONS = f'metadata.annotations[{_OPTIONS_ANNOTATION}]: deprecated since v1.31; use "mountOptions" attribute instead'
_RENAMED_LABELS = {  # that a volume may come to name otherwise, though its node affinity does not change
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
}


class PersistentVolumeKind(Kind):
    resource = PERSISTENT_VOLUMES
    singular = "persistentvolume"
    shape_name = "io.k8s.api.core.v1.PersistentVolume"
    short_names = ("pv",)
    subresources = (status_of("PersistentVolume"),)
    columns = (
        Column("Name", format="name"),
        Column("Capacity"),
        Column("Access Modes"),
        Column("Reclaim Policy"),
        Column("Status"),
        Column("Claim"),
        Column("StorageClass"),
        Column("VolumeAttributesClass"),
        Column("Reason"),
        Column("Age"),
        Column("VolumeMode", priority=1),
    )
    delete_answers_object = True

    def default(self, obj: Object) -> None:
        spec, status = obj["spec"], obj["status"]
        if not spec.get("persistentVolumeReclaimPolicy"):
            spec["persistentVolumeReclaimPolicy"] = "Retain"
        spec.setdefault("volumeMode", "Filesystem")
        if not status.get("phase"):
            status["phase"] = "Pending"
        round_up(spec.get("capacity") or {})
        for field, values in VOLUME_DEFAULTS.items():
            if (source := spec.get(field)) is not None:
                for key, value in values.items():
                    if source.get(key) is None:
                        source[key] = value

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {"phase": "Pending", "lastPhaseTransitionTime": obj["metadata"].get("creationTimestamp")}

    def validate(self, obj: Object) -> Errors:
        return volume_mistakes(obj["spec"], "spec", name=obj["metadata"].get("name", ""))

    def prepare_update(self, obj: Object, old: Object) -> None:
        keep_status(obj, old)

    def validate_update(self, obj: Object, old: Object) -> Errors:
        spec, before = obj["spec"], old["spec"]
        errors = self.validate(obj)
        after, was = _source_of(spec), _source_of(before)
        if (was.get("csi") or {}).get("controllerExpandSecretRef") is None and "csi" in after and "csi" in was:
            after["csi"] = {key: value for key, value in after["csi"].items() if key != "controllerExpandSecretRef"}
        if after != was:
            sentence = f"spec.persistentvolumesource is immutable after creation\n{difference(was, after)}"
            errors.append(forbidden("spec.persistentvolumesource", sentence))
        if spec.get("volumeMode") != before.get("volumeMode"):
            errors.append(immutable("volumeMode", spec.get("volumeMode")))
        if (was_near := before.get("nodeAffinity")) is not None and not _same_nodes(spec.get("nodeAffinity"), was_near):
            shown = go_names.VOLUME_NODE_AFFINITY(spec.get("nodeAffinity"))
            sentence = "field is immutable, except for updating from beta label to GA"
            errors.append(invalid("nodeAffinity", shown, sentence))
        chosen = "volumeAttributesClassName"
        if before.get(chosen) is not None and spec.get(chosen) is None:
            errors.append(forbidden(f"spec.{chosen}", "update from non-nil value to nil is forbidden"))
        return errors

    def warnings(self, obj: Object, old: Object | None) -> list[str]:
        spec = obj["spec"]
        sentences: list[str] = []
        terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
        for i, term in enumerate(terms):
            sentences += node_term_warnings(term, f"spec.nodeAffinity.required.nodeSelectorTerms[{i}]")
        sentences += class_annotation_warnings(obj)
        if _OPTIONS_ANNOTATION in (obj["metadata"].get("annotations") or {}):
            sentences.append(_OPTIONS)
        if spec.get("persistentVolumeReclaimPolicy") == "Recycle":
            sentences.append(_RECYCLE)
        for field, sentence in DEPRECATED_VOLUMES.items():
            if spec.get(field) is not None:
                sentences.append(f"spec.{'storageOS' if field == 'storageos' else field}: {sentence}")
        return sentences

    def row(self, obj: Object, now: float) -> Sequence[Any]:
        meta, spec, status = obj["metadata"], obj["spec"], obj["status"]
        claim = spec.get("claimRef")
        return [
            meta.get("name", ""),
            (spec.get("capacity") or {}).get("storage", "0"),
            modes_cell(spec.get("accessModes") or ()),
            spec.get("persistentVolumeReclaimPolicy", ""),
            "Terminating" if meta.get("deletionTimestamp") else status.get("phase", ""),
            f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim is not None else "",
            class_of(obj),
            spec.get("volumeAttributesClassName", "<unset>"),
            status.get("reason", ""),
            age(now, meta.get("creationTimestamp")),
            spec.get("volumeMode") or "<unset>",
        ]


def _source_of(spec: Object) -> Object:
    return {field: spec[field] for field in SOURCES if field in spec}


def _same_nodes(affinity: Object | None, old: Object) -> bool:
    """Whether an affinity is that of before, but for labels that have since got another name."""
    if affinity == old:
        return True
    new_terms, terms = (((each or {}).get("required") or {}).get("nodeSelectorTerms") or [] for each in (affinity, old))
    renamed = copy.deepcopy(terms)
    for term, other in zip(renamed, new_terms, strict=False):
        for wanted, now in zip(term.get("matchExpressions") or (), other.get("matchExpressions") or (), strict=False):
            if _RENAMED_LABELS.get(wanted.get("key")) == now.get("key"):
                wanted["key"] = now["key"]
    return affinity is not None and renamed == new_terms


def volume_mistakes(spec: Object, path: str, *, name: str) -> Errors:
    """What is wrong with the spec of a volume called ``name``."""
    modes, capacity = spec.get("accessModes") or [], spec.get("capacity") or {}
    errors = [] if modes else [required(f"{path}.accessModes")]
    errors += access_mode_mistakes(modes, path)
    if not capacity:
        errors.append(required(f"{path}.capacity"))
    if set(capacity) != {"storage"}:
        errors.append(not_supported(f"{path}.capacity", capacity, ("storage",)))
    for resource, quantity in capacity.items():
        at = f"{path}.capacity[{resource}]"
        if amount(quantity) < 0:
            errors.append(invalid(at, int(amount(quantity)), "must be a valid resource quantity"))
        if amount(quantity) <= 0:
            errors.append(invalid(at, quantity, "must be greater than zero"))
    policy = spec.get("persistentVolumeReclaimPolicy", "")
    if policy and policy not in _POLICIES:
        errors.append(not_supported(f"{path}.persistentVolumeReclaimPolicy", policy, _POLICIES))
    if (affinity := spec.get("nodeAffinity")) is not None:
        errors += volume_affinity_mistakes(affinity, f"{path}.nodeAffinity")
    errors += source_mistakes(spec, path, name=name)
    host_path = spec.get("hostPath")
    if host_path is not None and policy == "Recycle" and normpath(host_path.get("path") or ".") == "/":
        sentence = "may not be 'recycle' for a hostPath mount of '/'"
        errors.append(forbidden(f"{path}.persistentVolumeReclaimPolicy", sentence))
    if chosen := spec.get("storageClassName"):
        errors += [invalid(f"{path}.storageClassName", chosen, sentence) for sentence in dns_subdomain(chosen)]
    if (mode := spec.get("volumeMode")) is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return errors + _attributes_class_mistakes(spec, path)


def volume_affinity_mistakes(affinity: Object, path: str) -> Errors:
    if affinity.get("required") is None:
        return [required(f"{path}.required", "must specify required node constraints")]
    return node_selector_mistakes(affinity["required"], f"{path}.required")


def _attributes_class_mistakes(spec: Object, path: str) -> Errors:
    chosen, at = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if chosen is None:
        return []
    if not chosen:
        errors = [required(at, "an empty string is disallowed")]
    else:
        errors = [invalid(at, chosen, sentence) for sentence in dns_subdomain(chosen)]
    if spec.get("csi") is None:
        errors.append(required(f"{path}.csi", "has to be specified when using volumeAttributesClassName"))
    return errors


PERSISTENT_VOLUME = PersistentVolumeKind()
