"""Validation of a container's volume mounts and block devices."""

from __future__ import annotations

from seamark.errors import Object
from seamark.kinds.pod.environment import descending_path_mistakes
from seamark.kinds.values.fields import Errors, forbidden, invalid, not_found, not_supported, required


def mount_mistakes(container: Object, volumes: dict[str, Object], path: str) -> Errors:
    errors: Errors = []
    devices = {d.get("name", ""): d.get("devicePath", "") for d in container.get("volumeDevices") or ()}
    device_paths = set(devices.values())
    taken = set()
    for i, mount in enumerate(container["volumeMounts"]):
        at, name, target = f"{path}[{i}]", mount.get("name", ""), mount.get("mountPath", "")
        if not name:
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        if not target:
            errors.append(required(f"{at}.mountPath"))
        if target in taken:
            errors.append(invalid(f"{at}.mountPath", target, "must be unique"))
        taken.add(target)
        if name in devices:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeDevices"))
        if target in device_paths:
            errors.append(invalid(f"{at}.mountPath", target, "must not already exist as a path in volumeDevices"))
        errors += _sub_path_mistakes(mount, at, path)
        errors += _propagation_mistakes(mount, container, path)
    return errors


def _sub_path_mistakes(mount: Object, at: str, path: str) -> Errors:
    errors: Errors = []
    sub, expression = mount.get("subPath"), mount.get("subPathExpr")
    if sub:
        errors += descending_path_mistakes(sub, f"{path}.subPath")
    if expression:
        if sub:
            sentence = "subPathExpr and subPath are mutually exclusive"
            errors.append(invalid(f"{at}.subPathExpr", expression, sentence))
        errors += descending_path_mistakes(expression, f"{path}.subPathExpr")
    return errors


def _propagation_mistakes(mount: Object, container: Object, path: str) -> Errors:
    errors: Errors = []
    if (propagation := mount.get("mountPropagation")) is not None:
        at = f"{path}.mountPropagation"
        choices = ("Bidirectional", "HostToContainer", "None")
        if propagation not in choices:
            errors.append(not_supported(at, propagation, choices))
        if propagation == "Bidirectional" and not (container.get("securityContext") or {}).get("privileged"):
            sentence = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(at, sentence))
    if (recursive := mount.get("recursiveReadOnly")) is not None:
        at = f"{path}.recursiveReadOnly"
        if recursive in ("Enabled", "IfPossible"):
            if not mount.get("readOnly"):
                errors.append(forbidden(at, "may only be specified when readOnly is true"))
            if propagation not in (None, "None"):
                sentence = "may only be specified when mountPropagation is None or not specified"
                errors.append(forbidden(at, sentence))
        elif recursive != "Disabled":
            errors.append(not_supported(at, recursive, ("Disabled", "Enabled", "IfPossible")))
    return errors


def device_mistakes(container: Object, volumes: dict[str, Object], path: str) -> Errors:
    errors: Errors = []
    mounts = {m.get("name", ""): m.get("mountPath", "") for m in container.get("volumeMounts") or ()}
    mount_paths = set(mounts.values())
    names, paths = set(), set()
    for i, device in enumerate(container["volumeDevices"]):
        at, name, target = f"{path}[{i}]", device.get("name", ""), device.get("devicePath", "")
        if not name:
            errors.append(required(f"{at}.name"))
        if name in names:
            errors.append(invalid(f"{at}.name", name, "must be unique"))
        if name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        elif not {"persistentVolumeClaim", "ephemeral"} & volumes[name].keys():
            sentence = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
            errors.append(invalid(f"{at}.name", name, sentence))
        if not target:
            errors.append(required(f"{at}.devicePath"))
        if target in paths:
            errors.append(invalid(f"{at}.devicePath", target, "must be unique"))
        if ".." in target.split("/"):
            errors.append(invalid(f"{at}.devicePath", target, "can not contain backsteps ('..')"))
        else:
            paths.add(target)
        if name in mounts:
            errors.append(invalid(f"{at}.name", name, "must not already exist in volumeMounts"))
        if target in mount_paths:
            errors.append(invalid(f"{at}.devicePath", target, "must not already exist as a path in volumeMounts"))
        if name:
            names.add(name)
    return errors
