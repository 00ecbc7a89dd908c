"""Validation of a Pod's volumes."""

from __future__ import annotations

from collections.abc import Callable

from seamark.errors import Object
from seamark.kinds.core.automount import TOKEN_PROJECTION
from seamark.kinds.language import go_names
from seamark.kinds.pod.environment import (
    VOLUME_FIELDS,
    backstep_mistakes,
    descending_path_mistakes,
    field_reference_mistakes,
    non_reserved_path_mistakes,
    resource_reference_mistakes,
)
from seamark.kinds.storage.claim_spec import claim_mistakes
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, required
from seamark.kinds.values.label_selector import label_selector_mistakes
from seamark.kinds.values.metadata import dns_label, dns_subdomain
from seamark.kinds.values.quantity import amount

Rule = Callable[[Object, str], Errors]

_MODE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def volume_mistakes(
    volumes: list[Object], path: str, *, pod_name: str, in_pod: bool
) -> tuple[dict[str, Object], Errors]:
    """The valid volumes by name, and the errors; ``pod_name`` is empty for a template."""
    errors: Errors = []
    valid: dict[str, Object] = {}
    made = {f"{pod_name}-{v.get('name', '')}" for v in volumes if v.get("ephemeral") is not None} if pod_name else set()
    for i, volume in enumerate(volumes):
        at, name = f"{path}[{i}]", volume.get("name", "")
        wrong = _source_mistakes(volume, at, pod_name=pod_name, in_pod=in_pod)
        if not name:
            wrong.append(required(f"{at}.name"))
        else:
            wrong += [invalid(f"{at}.name", name, sentence) for sentence in dns_label(name)]
        if name in valid:
            wrong.append(duplicate(f"{at}.name", name))
        if wrong:
            errors += wrong
        else:
            valid[name] = volume
        claim = (volume.get("persistentVolumeClaim") or {}).get("claimName")
        if claim in made:
            sentence = "must not reference a PVC that gets created for an ephemeral volume"
            errors.append(invalid(f"{at}.persistentVolumeClaim.claimName", claim, sentence))
    return valid, errors


def _source_mistakes(volume: Object, path: str, *, pod_name: str, in_pod: bool) -> Errors:
    given = [field for field in volume if field in SOURCES and volume[field] is not None]
    if not given:
        return [required(path, "must specify a volume type")]
    if len(given) > 1:
        given.sort(key=tuple(SOURCES).index)
    first = given[0]
    source = volume[first]
    errors = SOURCES[first](source, f"{path}.{_SAID.get(first, first)}")
    if first == "ephemeral" and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        errors += [
            invalid(f"{path}.name", volume["name"], f'PVC name "{claim}": {sentence}')
            for sentence in dns_subdomain(claim)
        ]
    if first == "image" and in_pod and not source.get("reference"):
        errors.insert(0, required(f"{path}.image.reference"))
    for other in given[1:]:
        said = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}.get(other, other)  # Kubernetes' own spelling
        errors.append(forbidden(f"{path}.{said}", "may not specify more than 1 volume type"))
    return errors


# --- the sources ---------------------------------------------------------------------------------------------


def _needs(*fields: str) -> Rule:
    """The rule for a source with required fields and no further checks."""
    return lambda source, path: [required(f"{path}.{field}") for field in fields if not source.get(field)]


def _empty_dir(source: Object, path: str) -> Errors:
    if (limit := source.get("sizeLimit")) is not None and amount(limit) < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _host_path(source: Object, path: str) -> Errors:
    if not source.get("path"):
        return [required(f"{path}.path")]
    errors = backstep_mistakes(source["path"], f"{path}.path")
    if (kind := source.get("type")) is not None and kind not in _HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return errors


def _git_repository(source: Object, path: str) -> Errors:
    errors = [] if source.get("repository") else [required(f"{path}.repository")]
    return errors + descending_path_mistakes(source.get("directory", ""), f"{path}.directory")


def _disk(identity: str) -> Rule:
    def rule(source: Object, path: str) -> Errors:
        errors = [] if source.get(identity) else [required(f"{path}.{identity}")]
        if not 0 <= (partition := source.get("partition", 0)) <= 255:
            errors.append(invalid(f"{path}.partition", partition, "must be between 1 and 255, inclusive"))
        return errors

    return rule


def _mode_mistakes(source: Object, field: str, path: str) -> Errors:
    mode = source.get(field)
    return [invalid(f"{path}.{field}", mode, _MODE)] if mode is not None and not 0 <= mode <= 0o777 else []


def _keyed(identity: str) -> Rule:
    """The rule for a volume of a Secret or ConfigMap; ``identity`` is the field with its name."""

    def rule(source: Object, path: str) -> Errors:
        errors = [] if source.get(identity) else [required(f"{path}.{identity}")]
        errors += _mode_mistakes(source, "defaultMode", path)
        for i, item in enumerate(source.get("items") or ()):
            errors += _item_mistakes(item, f"{path}.items[{i}]")
        return errors

    return rule


def _item_mistakes(item: Object, path: str) -> Errors:
    errors = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    errors += non_reserved_path_mistakes(item.get("path", ""), f"{path}.path")
    return errors + _mode_mistakes(item, "mode", path)


def _nfs(source: Object, path: str) -> Errors:
    errors = [required(f"{path}.{field}") for field in ("server", "path") if not source.get(field)]
    if not source.get("path", "").startswith("/"):
        errors.append(invalid(f"{path}.path", source.get("path", ""), "must be an absolute path"))
    return errors


def _downward(source: Object, path: str) -> Errors:
    errors = _mode_mistakes(source, "defaultMode", path)
    for item in source.get("items") or ():
        errors += _downward_item_mistakes(item, path)
    return errors


def _downward_item_mistakes(item: Object, path: str) -> Errors:
    errors = [] if item.get("path") else [required(f"{path}.path")]
    errors += non_reserved_path_mistakes(item.get("path", ""), f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        errors += field_reference_mistakes(field, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            sentence = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(invalid(path, "resource", sentence))
    elif resource is not None:
        errors += resource_reference_mistakes(resource, f"{path}.resourceFieldRef", in_volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _mode_mistakes(item, "mode", path)


def _projected(source: Object, path: str) -> Errors:
    if source == TOKEN_PROJECTION:
        return []  # what nearly every Pod has, which admission added
    errors = _mode_mistakes(source, "defaultMode", path)
    paths: set[str] = set()
    for i, projection in enumerate(source.get("sources") or ()):
        errors += _projection_mistakes(projection, f"{path}.sources[{i}]", path, paths)
    return errors


def _projection_mistakes(projection: Object, path: str, whole: str, paths: set[str]) -> Errors:
    """``whole`` is the path of the volume, under which colliding files are reported; ``paths`` are the files so far."""
    errors: Errors = []

    def claim(file: str, shown: str) -> None:
        if file in paths:
            errors.append(invalid(whole, shown, "conflicting duplicate paths"))
        paths.add(file)

    for field in ("secret", "configMap"):
        if (source := projection.get(field)) is not None:
            if not source.get("name"):
                errors.append(required(f"{path}.{field}.name"))
            for i, item in enumerate(source.get("items") or ()):
                errors += _item_mistakes(item, f"{path}.{field}.items[{i}]")
                if item.get("path"):
                    claim(item["path"], source.get("name", ""))
    if (source := projection.get("downwardAPI")) is not None:
        for item in source.get("items") or ():
            errors += _downward_item_mistakes(item, f"{path}.downwardAPI")
            if item.get("path"):
                claim(item["path"], item["path"])
    if (source := projection.get("serviceAccountToken")) is not None:
        errors += _token_mistakes(source, f"{path}.serviceAccountToken", whole)
    if (source := projection.get("clusterTrustBundle")) is not None:
        errors += _trust_bundle_mistakes(source, f"{path}.clusterTrustBundle")
        claim(source.get("path", ""), source.get("path", ""))
    if len(projection) > 1:
        errors.append(forbidden(path, "may not specify more than 1 volume type per source"))
    return errors


def _token_mistakes(source: Object, path: str, whole: str) -> Errors:
    errors: Errors = []
    seconds = source.get("expirationSeconds", 0)
    if seconds < 10 * 60:
        errors.append(invalid(f"{path}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes"))
    if seconds > 1 << 32:
        sentence = "may not specify a duration larger than 2^32 seconds"
        errors.append(invalid(f"{path}.expirationSeconds", seconds, sentence))
    if not source.get("path"):
        errors.append(required(f"{whole}.path"))
    else:
        errors += non_reserved_path_mistakes(source["path"], f"{whole}.path")
    return errors


def _trust_bundle_mistakes(source: Object, path: str) -> Errors:
    errors: Errors = []
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        errors.append(invalid(path, go_names.TRUST_BUNDLE(source), "only one of name and signerName may be used"))
    elif name is not None:
        if not name:
            errors.append(required(f"{path}.name", "must be a valid object name"))
        if source.get("labelSelector") is not None:
            sentence = "labelSelector must be unset if name is specified"
            errors.append(invalid(f"{path}.labelSelector", source["labelSelector"], sentence))
    elif signer is not None:
        if not signer:
            errors.append(required(f"{path}.signerName", "must be a valid signer name"))
        errors += label_selector_mistakes(source.get("labelSelector"), f"{path}.labelSelector")
    else:
        errors.append(required(path, "either name or signerName must be specified"))
    if not source.get("path"):
        errors.append(required(f"{path}.path"))
    return errors + non_reserved_path_mistakes(source.get("path", ""), f"{path}.path")


def _csi(source: Object, path: str) -> Errors:
    errors: Errors = []
    driver = source.get("driver", "")
    if not driver:
        errors.append(required(f"{path}.driver"))
    errors += [invalid(f"{path}.driver", driver, sentence) for sentence in dns_subdomain(driver.lower())]
    if (secret := source.get("nodePublishSecretRef")) is not None:
        if not secret.get("name"):
            errors.append(required(f"{path}.nodePublishSecretRef.name"))
        else:
            errors += [invalid(f"{path}.name", secret["name"], sentence) for sentence in dns_subdomain(secret["name"])]
    return errors


def _ephemeral(source: Object, path: str) -> Errors:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return claim_mistakes(template.get("spec") or {}, f"{path}.volumeClaimTemplate.spec")


def _image(source: Object, path: str) -> Errors:
    policies = ("Always", "IfNotPresent", "Never")
    if source.get("pullPolicy") not in policies:
        return [not_supported(f"{path}.pullPolicy", source.get("pullPolicy", ""), policies)]
    return []


# Volume source → its rule, in the order in which Kubernetes checks them.
SOURCES: dict[str, Rule] = {
    "emptyDir": _empty_dir,
    "hostPath": _host_path,
    "gitRepo": _git_repository,
    "gcePersistentDisk": _disk("pdName"),
    "awsElasticBlockStore": _disk("volumeID"),
    "secret": _keyed("secretName"),
    "nfs": _nfs,
    "iscsi": _needs("targetPortal", "iqn"),
    "glusterfs": _needs("endpoints", "path"),
    "flocker": _needs(),
    "persistentVolumeClaim": _needs("claimName"),
    "rbd": _needs("monitors", "image"),
    "cinder": _needs("volumeID"),
    "cephfs": _needs("monitors"),
    "quobyte": _needs("registry", "volume"),
    "downwardAPI": _downward,
    "fc": _needs(),
    "flexVolume": _needs("driver"),
    "configMap": _keyed("name"),
    "azureFile": _needs("secretName", "shareName"),
    "vsphereVolume": _needs("volumePath"),
    "photonPersistentDisk": _needs("pdID"),
    "portworxVolume": _needs("volumeID"),
    "azureDisk": _needs("diskName", "diskURI"),
    "storageos": _needs("volumeName"),
    "projected": _projected,
    "scaleIO": _needs("gateway", "system", "volumeName"),
    "csi": _csi,
    "ephemeral": _ephemeral,
    "image": _image,
}
_SAID = {"gcePersistentDisk": "persistentDisk"}
