"""Validation of the security contexts of a Pod and its containers, and of ``spec.os``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from seamark.errors import Object
from seamark.kinds.language import go_names
from seamark.kinds.pod.environment import descending_path_mistakes
from seamark.kinds.values.fields import Errors, duplicate, forbidden, invalid, not_supported, required, too_long
from seamark.kinds.values.metadata import dns_subdomain

_LARGEST_ID = 2147483647
_SYSCTL_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"^({_SYSCTL_SEGMENT}[\./])*{_SYSCTL_SEGMENT}$"
_sysctl = re.compile(_SYSCTL)
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PATH = 4095

_control = re.compile(r"[\x00-\x1f\x7f]")
_netbios = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_windows_label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_windows_domain = re.compile(rf"{_windows_label}(?:\.{_windows_label})*")
_bad_user_characters = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_only_dots = re.compile(r"[. ]+")

# Fields that a Windows Pod may not have, in the order of Kubernetes' errors: ("", field) is a field of the spec.
_NOT_WINDOWS = (
    ("securityContext", "appArmorProfile"),
    ("securityContext", "seLinuxOptions"),
    ("", "hostUsers"),
    ("", "hostPID"),
    ("", "hostIPC"),
    ("securityContext", "seccompProfile"),
    ("securityContext", "fsGroup"),
    ("securityContext", "fsGroupChangePolicy"),
    ("securityContext", "sysctls"),
    ("", "shareProcessNamespace"),
    ("securityContext", "runAsUser"),
    ("securityContext", "runAsGroup"),
    ("securityContext", "supplementalGroups"),
    ("securityContext", "supplementalGroupsPolicy"),
    ("securityContext", "seLinuxChangePolicy"),
)
_NOT_WINDOWS_CONTAINER = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def each_container(spec: Object, path: str) -> Iterator[tuple[Object, str]]:
    """Every container of a Pod with its path, in Kubernetes' order."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for i, container in enumerate(spec.get(field) or ()):
            yield container, f"{path}.{field}[{i}]"


def _id_mistakes(value: int | None, path: str) -> Errors:
    if value is None or 0 <= value <= _LARGEST_ID:
        return []
    return [invalid(path, value, f"must be between 0 and {_LARGEST_ID}, inclusive")]


def pod_security_mistakes(spec: Object, path: str) -> Errors:
    """What is wrong with ``spec.securityContext``, and with related fields of the spec."""
    context = spec.get("securityContext") or {}
    at = f"{path}.securityContext"
    if not context and not spec.get("shareProcessNamespace"):
        return []  # the usual case
    errors: Errors = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _id_mistakes(context.get(field), f"{at}.{field}")
    for i, group in enumerate(context.get("supplementalGroups") or ()):
        errors += _id_mistakes(group, f"{at}.supplementalGroups[{i}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        sentence = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(invalid(f"{at}.shareProcessNamespace", True, sentence))
    errors += _sysctl_mistakes(spec, context.get("sysctls") or [], f"{at}.sysctls")
    errors += _choice(context, "fsGroupChangePolicy", at, ("Always", "OnRootMismatch"))
    errors += _profile_mistakes(context, at)
    errors += _windows_mistakes(context.get("windowsOptions"), f"{at}.windowsOptions")
    errors += _app_armor_mistakes(context.get("appArmorProfile"), f"{at}.appArmorProfile")
    errors += _choice(context, "supplementalGroupsPolicy", at, ("Merge", "Strict"))
    errors += _choice(context, "seLinuxChangePolicy", at, ("MountOption", "Recursive"))
    return errors


def _choice(context: Object, field: str, path: str, choices: tuple[str, ...]) -> Errors:
    value = context.get(field)
    return [] if value is None or value in choices else [not_supported(f"{path}.{field}", value, choices)]


def _sysctl_mistakes(spec: Object, sysctls: list[Object], path: str) -> Errors:
    errors: Errors = []
    seen = set()
    for i, sysctl in enumerate(sysctls):
        at, name = f"{path}[{i}].name", sysctl.get("name", "")
        if not name:
            errors.append(required(at))
        elif len(name) > 253 or not _sysctl.match(name):
            errors.append(invalid(at, name, f"must have at most 253 characters and match regex {_SYSCTL}"))
        elif name in seen:
            errors.append(duplicate(at, name))
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(invalid(at, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            errors.append(invalid(at, name, "may not be specified when 'hostIPC' is true"))
    return errors


def container_security_mistakes(context: Object, path: str, *, host_users: bool) -> Errors:
    errors: Errors = []
    for field in ("runAsUser", "runAsGroup"):
        errors += _id_mistakes(context.get(field), f"{path}.{field}")
    if (mount := context.get("procMount")) is not None:
        errors += _choice(context, "procMount", path, ("Default", "Unmasked"))
        if host_users and mount == "Unmasked":
            errors.append(invalid(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`"))
    errors += _profile_mistakes(context, path)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            sentence = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            errors.append(invalid(path, go_names.SECURITY_CONTEXT(context), sentence))
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            sentence = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            errors.append(invalid(path, go_names.SECURITY_CONTEXT(context), sentence))
    errors += _windows_mistakes(context.get("windowsOptions"), f"{path}.windowsOptions")
    errors += _app_armor_mistakes(context.get("appArmorProfile"), f"{path}.appArmorProfile")
    return errors


def _profile_mistakes(context: Object, path: str) -> Errors:
    profile = context.get("seccompProfile")
    if profile is None:
        return []
    errors: Errors = []
    at, kind, file = f"{path}.seccompProfile", profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        errors.append(required(f"{at}.type", "type is required when seccompProfile is set"))
    elif kind not in _PROFILE_TYPES:
        errors.append(not_supported(f"{at}.type", kind, _PROFILE_TYPES))
    if kind == "Localhost":
        if file is None:
            errors.append(required(f"{at}.localhostProfile", "must be set when seccomp type is Localhost"))
        else:
            errors += descending_path_mistakes(file, f"{at}.localhostProfile")
    elif file is not None:
        sentence = "can only be set when seccomp type is Localhost"
        errors.append(invalid(f"{at}.localhostProfile", go_names.SECCOMP_PROFILE(profile), sentence))
    return errors


def _app_armor_mistakes(profile: Object | None, path: str) -> Errors:
    if profile is None:
        return []
    kind, file = profile.get("type", ""), profile.get("localhostProfile")
    if not kind:
        return [required(f"{path}.type", "type is required when appArmorProfile is set")]
    if kind not in _PROFILE_TYPES:
        return [not_supported(f"{path}.type", kind, _PROFILE_TYPES)]
    at = f"{path}.localhostProfile"
    if kind != "Localhost":
        return [] if file is None else [invalid(at, file, "can only be set when AppArmor type is Localhost")]
    if file is None:
        return [required(at, "must be set when AppArmor type is Localhost")]
    errors: Errors = []
    if file != file.strip():
        errors.append(invalid(at, file, "must not be padded with whitespace"))
    elif not file:
        errors.append(required(at, "must be set when AppArmor type is Localhost"))
    if len(file) > _LONGEST_PATH:
        errors.append(too_long(at, _LONGEST_PATH))
    return errors


def _windows_mistakes(options: Object | None, path: str) -> Errors:
    if options is None:
        return []
    errors: Errors = []
    if (name := options.get("gmsaCredentialSpecName")) is not None:
        errors += [invalid(f"{path}.gmsaCredentialSpecName", name, sentence) for sentence in dns_subdomain(name)]
    if (text := options.get("gmsaCredentialSpec")) is not None:
        at = f"{path}.gmsaCredentialSpec"
        if not text:
            errors.append(invalid(at, text, "gmsaCredentialSpec cannot be an empty string"))
        elif len(text) > 64 * 1024:
            errors.append(invalid(at, text, "gmsaCredentialSpec size must be under 64 KiB"))
    if (user := options.get("runAsUserName")) is not None:
        errors += [invalid(f"{path}.runAsUserName", user, sentence) for sentence in _windows_user_mistakes(user)]
    return errors


def _windows_user_mistakes(name: str) -> list[str]:
    if not name:
        return ["runAsUserName cannot be an empty string"]
    if _control.search(name):
        return ["runAsUserName cannot contain control characters"]
    if name.count("\\") > 1:
        return ["runAsUserName cannot contain more than one backslash"]
    domain, slash, user = name.rpartition("\\")
    wrong = []
    if len(domain) >= 256:
        wrong.append("runAsUserName's Domain length must be under 256 characters")
    if slash and not (_netbios.fullmatch(domain) or _windows_domain.fullmatch(domain)):
        wrong.append("runAsUserName's Domain doesn't match the NetBios nor the DNS format")
    if not user:
        wrong.append("runAsUserName's User cannot be empty")
    elif len(user) > 104:
        wrong.append("runAsUserName's User length must not be longer than 104 characters")
    if _only_dots.fullmatch(user):
        wrong.append("runAsUserName's User cannot contain only periods or spaces")
    if _bad_user_characters.search(user):
        wrong.append(r"""runAsUserName's User cannot contain the following characters: "/\:;|=,+*?<>@[]""")
    return wrong


def host_process_mistakes(spec: Object, path: str) -> Errors:
    """HostProcess containers (Windows): either all containers are, and use the host's network, or none is."""
    whole = ((spec.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
    errors: Errors = []
    count = processes = 0
    for container, at in each_container(spec, path):
        count += 1
        own = ((container.get("securityContext") or {}).get("windowsOptions") or {}).get("hostProcess")
        if whole is not None and own is not None and whole != own:
            sentence = f"pod hostProcess value must be identical if both are specified, was {str(whole).lower()}"
            errors.append(invalid(f"{at}.securityContext.windowsOptions.hostProcess", own, sentence))
        if own or (own is None and whole):
            processes += 1
    if processes:
        if processes != count:
            sentence = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
            errors.append(invalid(path, "", sentence))
        if not spec.get("hostNetwork"):
            sentence = "hostNetwork must be true if pod contains any hostProcess containers"
            errors.append(invalid(f"{path}.hostNetwork", False, sentence))
    return errors


def host_user_mistakes(spec: Object, path: str) -> Errors:
    """A Pod with its own user namespace cannot share the host's other namespaces."""
    if spec.get("hostUsers") is not False:
        return []
    # Kubernetes spells these paths like this.
    said = {"hostNetwork": "hostNetwork", "hostPID": "HostPID", "hostIPC": "HostIPC"}
    sentence = "when `hostUsers` is false"
    errors = [forbidden(f"{path}.{name}", sentence) for field, name in said.items() if spec.get(field)]
    for container, at in each_container(spec, path):
        if container.get("volumeDevices"):
            errors.append(forbidden(f"{at}.volumeDevices", sentence))
    return errors


def system_mistakes(spec: Object, path: str) -> Errors:
    """What is wrong with ``spec.os``, and fields that the named system does not support."""
    name = spec["os"].get("name", "")
    if not name:
        return [required(f"{path}.os.name")]
    if name not in ("linux", "windows"):
        return [not_supported(f"{path}.os", name, ("linux", "windows"))]
    context = spec.get("securityContext") or {}
    errors: Errors = []
    if name == "linux":
        sentence = "windows options cannot be set for a linux pod"
        if context.get("windowsOptions") is not None:
            errors.append(forbidden(f"{path}.securityContext.windowsOptions", sentence))
        for container, at in each_container(spec, path):
            if (container.get("securityContext") or {}).get("windowsOptions") is not None:
                errors.append(forbidden(f"{at}.securityContext.windowsOptions", sentence))
        return errors
    sentence = "cannot be set for a windows pod"
    for part, field in _NOT_WINDOWS:
        if (context if part else spec).get(field) is not None:
            errors.append(forbidden(".".join(filter(None, (path, part, field))), sentence))
    for container, at in each_container(spec, path):
        own = container.get("securityContext") or {}
        errors += [
            forbidden(f"{at}.securityContext.{field}", sentence)
            for field in _NOT_WINDOWS_CONTAINER
            if own.get(field) is not None
        ]
    return errors
