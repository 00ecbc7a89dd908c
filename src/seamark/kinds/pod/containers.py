"""Validation of a Pod's containers, init containers and ephemeral containers."""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.errors import Object
from seamark.kinds.pod.environment import env_from_mistakes, env_mistakes
from seamark.kinds.pod.mounts import device_mistakes, mount_mistakes
from seamark.kinds.pod.probes import lifecycle_mistakes, probe_mistakes
from seamark.kinds.pod.resources import container_mistakes as resource_mistakes
from seamark.kinds.pod.security import container_security_mistakes
from seamark.kinds.values.fields import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_found,
    not_supported,
    required,
    too_many,
)
from seamark.kinds.values.metadata import dns_label
from seamark.kinds.values.ports import PROTOCOLS, port_name_mistakes

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESIZE_POLICIES = ("NotRequired", "RestartContainer")

# Fields that an ephemeral container may not have, because it is added to a Pod that runs already.
_NOT_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)


class Surroundings(msgspec.Struct, frozen=True):
    """The fields of the Pod that the validation of its containers needs."""

    volumes: dict[str, Object]  # the valid volumes by name
    claims: set[str]
    grace: int | None
    restart_policy: str
    host_users: bool
    system: str | None

    @classmethod
    def of(cls, spec: Object, volumes: dict[str, Object]) -> Surroundings:
        return cls(
            volumes=volumes,
            claims={claim["name"] for claim in spec.get("resourceClaims") or () if claim.get("name")},
            grace=spec.get("terminationGracePeriodSeconds"),
            restart_policy=spec.get("restartPolicy", ""),
            host_users=spec.get("hostUsers") is not False,
            system=(spec.get("os") or {}).get("name"),
        )


def containers_mistakes(spec: Object, path: str, pod: Surroundings) -> Errors:
    """What is wrong with ``containers``."""
    containers = spec.get("containers")
    if not containers:
        return [required(path)]
    errors: Errors = []
    names = set()
    for i, container in enumerate(containers):
        at = f"{path}[{i}]"
        errors += _common_mistakes(container, at, pod)
        name = container.get("name", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        errors += _running_mistakes(container, at, pod)
        errors += _restart_mistakes(container, at)
    return errors + host_port_mistakes(containers, path)


def init_containers_mistakes(spec: Object, path: str, pod: Surroundings) -> Errors:
    """What is wrong with ``initContainers``; their names must differ from those of the containers too."""
    errors: Errors = []
    names = {container.get("name", "") for container in spec.get("containers") or ()}
    for i, container in enumerate(spec.get("initContainers") or ()):
        at, name = f"{path}[{i}]", container.get("name", "")
        errors += _common_mistakes(container, at, pod)
        sidecar = container.get("restartPolicy") == "Always"
        restart = _restart_mistakes(container, at)
        # Without a policy, the rules of an init container are not looked at.
        errors += restart[:1] if container.get("restartPolicy") is None else restart
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        errors += host_port_mistakes([container], path)
        if sidecar:
            errors += _running_mistakes(container, at, pod)
            continue
        errors += [
            forbidden(f"{at}.{field}", "may not be set for init containers without restartPolicy=Always")
            for field in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
            if container.get(field) is not None
        ]
        for j, policy in enumerate(container.get("resizePolicy") or ()):
            if policy.get("restartPolicy") == "RestartContainer":
                sentence = "must not be set to 'RestartContainer' for non-sidecar initContainers"
                errors.append(invalid(f"{at}.resizePolicy[{j}].restartPolicy", "RestartContainer", sentence))
    return errors


def ephemeral_containers_mistakes(spec: Object, path: str, pod: Surroundings) -> Errors:
    """What is wrong with ``ephemeralContainers``."""
    errors: Errors = []
    others = {c.get("name", "") for field in ("containers", "initContainers") for c in spec.get(field) or ()}
    names = set(others)
    for i, container in enumerate(spec.get("ephemeralContainers") or ()):
        at, name = f"{path}[{i}]", container.get("name", "")
        errors += _common_mistakes(container, at, pod)
        errors += padded_image_mistakes(container, at)
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        target = container.get("targetContainerName")
        if target and target not in others:
            errors.append(not_found(f"{at}.targetContainerName", target))
        errors += [
            forbidden(f"{at}.{field}", "cannot be set for an Ephemeral Container")
            for field in _NOT_EPHEMERAL
            if container.get(field)
        ]
        for j, mount in enumerate(container.get("volumeMounts") or ()):
            errors += [
                forbidden(f"{at}.volumeMounts[{j}].{field}", "cannot be set for an Ephemeral Container")
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return errors


def padded_image_mistakes(container: Object, path: str) -> Errors:
    """Reject spaces around an image name.  Only for Pods: in a template the image may still be a placeholder."""
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [invalid(f"{path}.image", image, "must not have leading or trailing whitespace")]


def _common_mistakes(container: Object, path: str, pod: Surroundings) -> Errors:
    errors: Errors = []
    get = container.get
    if not (name := get("name")):
        errors.append(required(f"{path}.name"))
    elif sentences := dns_label(name):
        errors += [invalid(f"{path}.name", name, sentence) for sentence in sentences]
    if not get("image"):
        errors.append(required(f"{path}.image"))
    if (policy := get("terminationMessagePolicy")) not in _MESSAGE_POLICIES:
        errors.append(not_supported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES))
    if ports := get("ports"):
        errors += _port_mistakes(ports, f"{path}.ports")
    if env := get("env"):
        errors += env_mistakes(env, f"{path}.env")
    if sources := get("envFrom"):
        errors += env_from_mistakes(sources, f"{path}.envFrom")
    if get("volumeMounts"):
        errors += mount_mistakes(container, pod.volumes, f"{path}.volumeMounts")
    if get("volumeDevices"):
        errors += device_mistakes(container, pod.volumes, f"{path}.volumeDevices")
    if (pull := get("imagePullPolicy")) not in PULL_POLICIES:
        errors.append(not_supported(f"{path}.imagePullPolicy", pull, PULL_POLICIES))
    if resources := get("resources"):
        errors += resource_mistakes(resources, f"{path}.resources", pod.claims)
    if policies := get("resizePolicy"):
        errors += _resize_mistakes(policies, f"{path}.resizePolicy", pod.restart_policy)
    if (security := get("securityContext")) is not None:
        errors += container_security_mistakes(security, f"{path}.securityContext", host_users=pod.host_users)
    return errors


def _running_mistakes(container: Object, path: str, pod: Surroundings) -> Errors:
    """Validate lifecycle hooks and probes, which only containers and sidecars may have."""
    errors: Errors = []
    if (lifecycle := container.get("lifecycle")) is not None:
        errors += lifecycle_mistakes(lifecycle, f"{path}.lifecycle", grace=pod.grace, system=pod.system)
    return errors + probe_mistakes(container, path, pod.grace)


def _port_mistakes(ports: list[Object], path: str) -> Errors:
    errors: Errors = []
    names = set()
    for i, port in enumerate(ports):
        if name := port.get("name"):
            if sentences := port_name_mistakes(name):
                errors += [invalid(f"{path}[{i}].name", name, sentence) for sentence in sentences]
            elif name in names:
                errors.append(duplicate(f"{path}[{i}].name", name))
            names.add(name)
        number, host = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            errors.append(required(f"{path}[{i}].containerPort"))
        elif not 1 <= number <= 65535:
            errors.append(invalid(f"{path}[{i}].containerPort", number, "must be between 1 and 65535, inclusive"))
        if host and not 1 <= host <= 65535:
            errors.append(invalid(f"{path}[{i}].hostPort", host, "must be between 1 and 65535, inclusive"))
        if port.get("protocol") not in PROTOCOLS:
            errors.append(not_supported(f"{path}[{i}].protocol", port.get("protocol", ""), PROTOCOLS))
    return errors


def host_port_mistakes(containers: list[Object], path: str) -> Errors:
    """Two containers may not use the same port of the host."""
    errors: Errors = []
    seen = set()
    for i, container in enumerate(containers):
        for j, port in enumerate(container.get("ports") or ()):
            if not port.get("hostPort"):
                continue
            taken = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if taken in seen:
                errors.append(duplicate(f"{path}[{i}].ports[{j}].hostPort", taken))
            seen.add(taken)
    return errors


def _resize_mistakes(policies: list[Object], path: str, restart_policy: str) -> Errors:
    errors: Errors = []
    seen = set()
    for i, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{i}]", resource))
        seen.add(resource)
        for value, supported in ((resource, ("cpu", "memory")), (restart, _RESIZE_POLICIES)):
            if not value:
                errors.append(required(path))
            elif value not in supported:
                errors.append(not_supported(path, value, supported))
        if restart_policy == "Never" and restart != "NotRequired":
            errors.append(invalid(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'"))
    return errors


def _restart_mistakes(container: Object, path: str) -> Errors:
    """Validate a container's own restart policy, and its rules by exit code."""
    errors: Errors = []
    policy: Any = container.get("restartPolicy")
    rules = container.get("restartPolicyRules") or []
    if policy is None:
        if not rules:
            return []
        errors.append(required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used"))
    elif policy not in ("Always", "Never", "OnFailure"):
        errors.append(not_supported(f"{path}.restartPolicy", policy, ("Always", "Never", "OnFailure")))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for i, rule in enumerate(rules):
        at = f"{path}.restartPolicyRules[{i}]"
        if rule.get("action") not in ("Restart", "RestartAllContainers"):
            choices = ("Restart", "RestartAllContainers")
            errors.append(not_supported(f"{at}.action", rule.get("action", ""), choices))
        codes = rule.get("exitCodes")
        if codes is None:
            errors.append(required(f"{at}.exitCodes", "must be specified"))
            continue
        if codes.get("operator") not in ("In", "NotIn"):
            errors.append(not_supported(f"{at}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn")))
        if len(values := codes.get("values") or []) > 255:
            errors.append(too_many(f"{at}.exitCodes.values", len(values), 255))
    return errors
