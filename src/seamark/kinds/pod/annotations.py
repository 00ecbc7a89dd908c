"""Annotations of a Pod that Kubernetes itself reads."""

from __future__ import annotations

import re
from collections.abc import Mapping

from seamark.errors import Object
from seamark.kinds.pod.environment import descending_path_mistakes
from seamark.kinds.pod.security import each_container
from seamark.kinds.values.fields import Errors, forbidden, invalid
from seamark.kinds.values.numbers import int64
from seamark.kinds.wellknown import DELETION_COST_ANNOTATION

MIRROR = "kubernetes.io/config.mirror"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP_CONTAINER = "container.seccomp.security.alpha.kubernetes.io/"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_NAMES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default", "docker/default")}
_APP_ARMOR_NAMES = {"Unconfined": ("unconfined",), "RuntimeDefault": ("runtime/default",)}
_cost = re.compile(r"0|-?[1-9][0-9]*|\+?[1-9][0-9]*", re.ASCII)


def annotation_mistakes(annotations: dict[str, str], spec: Object, path: str) -> Errors:
    errors: Errors = []
    if MIRROR in annotations and not spec.get("nodeName"):
        sentence = "must set spec.nodeName if mirror pod annotation is set"
        errors.append(invalid(f"{path}[{MIRROR}]", annotations[MIRROR], sentence))
    cost = annotations.get(DELETION_COST_ANNOTATION)
    if cost is not None and not _is_cost(cost):
        errors.append(invalid(f"{path}[{DELETION_COST_ANNOTATION}]", cost, "must be a 32bit integer"))
    for key in sorted(annotations):
        if key == SECCOMP_POD or key.startswith(SECCOMP_CONTAINER):
            errors += _seccomp_mistakes(annotations[key], f"{path}.{key}")
    for key in sorted(annotations):
        if key.startswith(APP_ARMOR):
            errors += _app_armor_mistakes(key, annotations[key], spec, path)
    return errors


def _is_cost(text: str) -> bool:
    number = int64(text) if _cost.fullmatch(text) else None
    return number is not None and -(1 << 31) <= number < 1 << 31


def _seccomp_mistakes(profile: str, path: str) -> Errors:
    if profile in ("runtime/default", "docker/default", "unconfined"):
        return []
    if profile.startswith("localhost/"):
        return descending_path_mistakes(profile.removeprefix("localhost/"), path)
    return [invalid(path, profile, "must be a valid seccomp profile")]


def _app_armor_mistakes(key: str, profile: str, spec: Object, path: str) -> Errors:
    errors: Errors = []
    name = key.removeprefix(APP_ARMOR)
    if not any(container.get("name") == name for container, _ in each_container(spec, "")):
        errors.append(invalid(f"{path}[{key}]", name, "container not found"))
    if profile not in ("", "runtime/default", "unconfined") and not profile.startswith("localhost/"):
        errors.append(invalid(f"{path}[{key}]", profile, f'invalid AppArmor profile name: "{profile}"'))
    return errors


def profile_annotation_mistakes(annotations: dict[str, str], spec: Object, path: str) -> Errors:
    """If a profile is given by annotation and by field, both must be the same."""
    if not annotations:
        return []
    errors: Errors = []
    context = spec.get("securityContext") or {}
    if (field := context.get("seccompProfile")) is not None and SECCOMP_POD in annotations:
        at = f"{path}.securityContext.seccompProfile"
        errors += _match_mistakes(annotations[SECCOMP_POD], field, at, _SECCOMP_NAMES, "seccomp")
    for container, at in each_container(spec, path):
        field = (container.get("securityContext") or {}).get("seccompProfile")
        said = annotations.get(SECCOMP_CONTAINER + container.get("name", ""))
        if field is not None and said is not None:
            where = f"{at}.securityContext.seccompProfile"
            errors += _match_mistakes(said, field, where, _SECCOMP_NAMES, "seccomp")
    if (spec.get("os") or {}).get("name") == "windows":
        return errors
    for container, at in each_container(spec, path):
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        field = own if own is not None else context.get("appArmorProfile")
        said = annotations.get(APP_ARMOR + container.get("name", ""))
        if field is not None and said is not None:
            where = f"{at}.securityContext.appArmorProfile"
            errors += _match_mistakes(said, field, where, _APP_ARMOR_NAMES, "apparmor")
    return errors


def _match_mistakes(said: str, field: Object, path: str, names: Mapping[str, tuple[str, ...]], what: str) -> Errors:
    kind = field.get("type", "")
    if kind in names:
        if said not in names[kind]:
            return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
    elif kind == "Localhost":
        if not said.startswith("localhost/"):
            return [forbidden(f"{path}.type", f"{what} type in annotation and field must match")]
        if said.removeprefix("localhost/") != field.get("localhostProfile"):
            return [forbidden(f"{path}.localhostProfile", f"{what} profile in annotation and field must match")]
    return []


def annotation_change_mistakes(after: dict[str, str], before: dict[str, str], path: str) -> Errors:
    """Validate that the annotations for AppArmor and mirror Pods do not change."""
    errors: Errors = []
    for key in sorted({*after, *before}):
        if after.get(key) == before.get(key) and (key in after) == (key in before):
            continue
        verb = "remove or update" if key in before else "add"
        if key.startswith(APP_ARMOR):
            errors.append(forbidden(f"{path}[{key}]", f"may not {verb} AppArmor annotations"))
        if key == MIRROR:
            errors.append(forbidden(f"{path}[{key}]", f"may not {verb} mirror pod annotation"))
    return errors
