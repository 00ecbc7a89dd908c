"""Where the data of a PersistentVolume is: the rule of each kind of source."""

from __future__ import annotations

import re

from seamark.errors import Object
from seamark.kinds.pod.environment import backstep_mistakes
from seamark.kinds.pod.volumes import SOURCES as POD_SOURCES
from seamark.kinds.pod.volumes import Rule
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_supported, required, too_long
from seamark.kinds.values.metadata import dns_label, dns_subdomain

_LONGEST_DRIVER = 63
_ISCSI_NAME = re.compile(
    r"iqn\.\d{4}-\d{2}\.([\w\-.]+)(:[^,;*&$|\s]+)|eui\.[0-9A-Fa-f]{16}|naa\.([0-9A-Fa-f]{16}|[0-9A-Fa-f]{32})"
)
_RESERVED = (".kubernetes.io", ".k8s.io")
_MANAGED_DISK = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB_DISK = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"


def source_mistakes(spec: Object, path: str, *, name: str) -> Errors:
    """A volume has exactly one source; ``name`` is the volume's."""
    given = [field for field in SOURCES if spec.get(field) is not None]
    if not given:
        return [required(path, "must specify a volume type")]
    first = given[0]
    errors = SOURCES[first](spec[first], f"{path}.{'persistentDisk' if first == 'gcePersistentDisk' else first}")
    if first == "iscsi":
        errors += _iscsi_length(spec[first], f"{path}.iscsi", name)
    if first == "local" and spec.get("nodeAffinity") is None:
        errors.append(required(f"{path}.nodeAffinity", "Local volume requires node affinity"))
    for other in given[1:]:
        said = "cephFS" if other == "cephfs" else other  # Kubernetes' own spelling
        errors.append(forbidden(f"{path}.{said}", "may not specify more than 1 volume type"))
    return errors


def driver_name_mistakes(name: str, path: str) -> Errors:
    """What is wrong with the name of a CSI driver, which may have upper case."""
    if not name:
        return [required(path)]
    errors = [too_long(path, _LONGEST_DRIVER)] if len(name) > _LONGEST_DRIVER else []
    return errors + [invalid(path, name, sentence) for sentence in dns_subdomain(name.lower())]


def _whole_reference(source: Object, field: str, path: str) -> Errors:
    """A reference to a Secret needs a name and a namespace."""
    if (reference := source.get(field)) is None:
        return []
    return [required(f"{path}.{field}.{part}") for part in ("name", "namespace") if not reference.get(part)]


def _glusterfs(source: Object, path: str) -> Errors:
    errors = POD_SOURCES["glusterfs"](source, path)
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        sentence = "if the endpointnamespace is set, it must be a valid namespace name"
        errors.append(invalid(f"{path}.endpointsNamespace", namespace, sentence))
    elif namespace is not None:
        errors += [invalid(f"{path}.endpointsNamespace", namespace, sentence) for sentence in dns_label(namespace)]
    return errors


def _iscsi(source: Object, path: str) -> Errors:
    errors = [] if source.get("targetPortal") else [required(f"{path}.targetPortal")]
    if not source.get("iqn"):
        errors.append(required(f"{path}.iqn"))
    elif not _ISCSI_NAME.fullmatch(source["iqn"]):
        errors.append(invalid(f"{path}.iqn", source["iqn"], "must be valid format"))
    errors += _unit_mistakes(source.get("lun", 0), f"{path}.lun")
    secret = source.get("secretRef")
    if secret is None:
        if source.get("chapAuthDiscovery") or source.get("chapAuthSession"):
            errors.append(required(f"{path}.secretRef"))
    elif not secret.get("name"):
        errors.append(required(f"{path}.secretRef.name"))
    initiator = source.get("initiatorName")
    if initiator is not None and not _ISCSI_NAME.fullmatch(initiator):
        errors.append(invalid(f"{path}.initiatorname", initiator, "must be valid format"))
    return errors


def _iscsi_length(source: Object, path: str, name: str) -> Errors:
    portal = source.get("targetPortal", "")
    if source.get("initiatorName") is None or len(f"{name}:{portal}") <= 64:
        return []
    sentence = (
        "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is "
        "specified."
    )
    return [invalid(f"{path}.targetportal", portal, sentence)]


def _unit_mistakes(unit: int, path: str) -> Errors:
    return [] if 0 <= unit <= 255 else [invalid(path, unit, "must be between 0 and 255, inclusive")]


def _cinder(source: Object, path: str) -> Errors:
    return POD_SOURCES["cinder"](source, path) + _whole_reference(source, "secretRef", path)


def _fibre_channel(source: Object, path: str) -> Errors:
    targets, ids = source.get("targetWWNs") or [], source.get("wwids") or []
    if not targets and not ids:
        return [required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")]
    errors: Errors = []
    if targets and ids:
        sentence = "targetWWNs and wwids can not be specified simultaneously"
        errors.append(invalid(f"{path}.targetWWNs", targets, sentence))
    if targets:
        if source.get("lun") is None:
            errors.append(required(f"{path}.lun", "lun is required if targetWWNs is specified"))
        else:
            errors += _unit_mistakes(source["lun"], f"{path}.lun")
    return errors


def _flexible(source: Object, path: str) -> Errors:
    errors = POD_SOURCES["flexVolume"](source, path)
    for option in source.get("options") or ():
        if f".{option.partition('/')[0].lower()}".endswith(_RESERVED):
            sentence = "kubernetes.io and k8s.io namespaces are reserved"
            errors.append(invalid(f"{path}.options[{option}]", option, sentence))
    return errors


def _azure_file(source: Object, path: str) -> Errors:
    errors = POD_SOURCES["azureFile"](source, path)
    return [*errors, required(f"{path}.secretNamespace")] if source.get("secretNamespace") == "" else errors


def _azure_disk(source: Object, path: str) -> Errors:
    errors = POD_SOURCES["azureDisk"](source, path)
    caching, kind, where = source.get("cachingMode"), source.get("kind"), source.get("diskURI", "")
    modes, kinds = ("None", "ReadOnly", "ReadWrite"), ("Dedicated", "Managed", "Shared")
    if caching is not None and caching not in modes:
        errors.append(not_supported(f"{path}.cachingMode", caching, modes))
    if kind is not None and kind not in kinds:
        errors.append(not_supported(f"{path}.kind", kind, kinds))
    managed = kind == "Managed"
    if kind is not None and not where.startswith("/subscriptions/" if managed else "https://"):
        errors.append(not_supported(f"{path}.diskURI", where, (_MANAGED_DISK if managed else _BLOB_DISK,)))
    return errors


def _local(source: Object, path: str) -> Errors:
    where = source.get("path", "")
    return backstep_mistakes(where, f"{path}.path") if where else [required(f"{path}.path")]


def _storage_os(source: Object, path: str) -> Errors:
    errors: Errors = []
    name, namespace = source.get("volumeName", ""), source.get("volumeNamespace", "")
    if not name:
        errors.append(required(f"{path}.volumeName"))
    else:
        errors += [invalid(f"{path}.volumeName", name, sentence) for sentence in dns_label(name)]
    if namespace:
        errors += [invalid(f"{path}.volumeNamespace", namespace, sentence) for sentence in dns_label(namespace)]
    return errors + _whole_reference(source, "secretRef", path)


def _csi(source: Object, path: str) -> Errors:
    errors = driver_name_mistakes(source.get("driver", ""), f"{path}.driver")
    if not source.get("volumeHandle"):
        errors.append(required(f"{path}.volumeHandle"))
    # Kubernetes does not check nodeStageSecretRef.
    for field in (
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ):
        if (secret := source.get(field)) is None:
            continue
        errors += _whole_reference(source, field, path)
        for part, rule in (("name", dns_subdomain), ("namespace", dns_label)):
            if value := secret.get(part):
                errors += [invalid(f"{path}.{part}", value, sentence) for sentence in rule(value)]
    return errors


# Source → its rule, in the order in which Kubernetes checks them.
SOURCES: dict[str, Rule] = {
    "hostPath": POD_SOURCES["hostPath"],
    "gcePersistentDisk": POD_SOURCES["gcePersistentDisk"],
    "awsElasticBlockStore": POD_SOURCES["awsElasticBlockStore"],
    "glusterfs": _glusterfs,
    "flocker": POD_SOURCES["flocker"],
    "nfs": POD_SOURCES["nfs"],
    "rbd": POD_SOURCES["rbd"],
    "quobyte": POD_SOURCES["quobyte"],
    "cephfs": POD_SOURCES["cephfs"],
    "iscsi": _iscsi,
    "cinder": _cinder,
    "fc": _fibre_channel,
    "flexVolume": _flexible,
    "azureFile": _azure_file,
    "vsphereVolume": POD_SOURCES["vsphereVolume"],
    "photonPersistentDisk": POD_SOURCES["photonPersistentDisk"],
    "portworxVolume": POD_SOURCES["portworxVolume"],
    "azureDisk": _azure_disk,
    "scaleIO": POD_SOURCES["scaleIO"],
    "local": _local,
    "storageos": _storage_os,
    "csi": _csi,
}
