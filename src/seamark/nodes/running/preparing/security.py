"""What a container may do: its user, groups and capabilities, and what this machine cannot honour.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from seamark.nodes.running.preparing.environment import Unmakeable
from seamark.nodes.running.spec import Container, PodToRun, Security

# By their numbers in the kernel.
CAPABILITIES = [
    "CHOWN",
    "DAC_OVERRIDE",
    "DAC_READ_SEARCH",
    "FOWNER",
    "FSETID",
    "KILL",
    "SETGID",
    "SETUID",
    "SETPCAP",
    "LINUX_IMMUTABLE",
    "NET_BIND_SERVICE",
    "NET_BROADCAST",
    "NET_ADMIN",
    "NET_RAW",
    "IPC_LOCK",
    "IPC_OWNER",
    "SYS_MODULE",
    "SYS_RAWIO",
    "SYS_CHROOT",
    "SYS_PTRACE",
    "SYS_PACCT",
    "SYS_ADMIN",
    "SYS_BOOT",
    "SYS_NICE",
    "SYS_RESOURCE",
    "SYS_TIME",
    "SYS_TTY_CONFIG",
    "MKNOD",
    "LEASE",
    "AUDIT_WRITE",
    "AUDIT_CONTROL",
    "SETFCAP",
    "MAC_OVERRIDE",
    "MAC_ADMIN",
    "SYSLOG",
    "WAKE_ALARM",
    "BLOCK_SUSPEND",
    "AUDIT_READ",
    "PERFMON",
    "BPF",
    "CHECKPOINT_RESTORE",
]
# What container runtimes leave to a container that asks for nothing.
USUAL = frozenset(
    [
        "CHOWN",
        "DAC_OVERRIDE",
        "FSETID",
        "FOWNER",
        "MKNOD",
        "NET_RAW",
        "SETGID",
        "SETUID",
        "SETFCAP",
        "SETPCAP",
        "NET_BIND_SERVICE",
        "SYS_CHROOT",
        "KILL",
        "AUDIT_WRITE",
    ]
)

# Settings of the kernel that are a Pod's own, and can harm no other.
_SAFE = frozenset(
    [
        "kernel/shm_rmid_forced",
        "net/ipv4/ip_local_port_range",
        "net/ipv4/ip_local_reserved_ports",
        "net/ipv4/ip_unprivileged_port_start",
        "net/ipv4/ping_group_range",
        "net/ipv4/tcp_fin_timeout",
        "net/ipv4/tcp_keepalive_intvl",
        "net/ipv4/tcp_keepalive_probes",
        "net/ipv4/tcp_keepalive_time",
        "net/ipv4/tcp_rmem",
        "net/ipv4/tcp_syncookies",
        "net/ipv4/tcp_wmem",
    ]
)


class Identity(msgspec.Struct, frozen=True):
    user: int = 0
    group: int = 0
    groups: tuple[int, ...] = ()
    home: str = "/root"


def identity(
    pod: PodToRun, container: Container, *, image_user: str, passwd: str = "", group: str = "", harmless: bool = False
) -> Identity:
    """Who a container is.  Raises ``Unmakeable`` if it must not be root and would be.

    ``image_user`` is what the image says, ``passwd`` and ``group`` are its files; ``harmless`` says that root in it is
    an ordinary user of the machine, and the file system the machine's own.
    """
    own, common = container.security_context, pod.spec.security_context
    name, _, group_name = image_user.partition(":")
    name = name or "0"
    entry = _entry(passwd, name)
    asked = own.run_as_user if own.run_as_user is not None else common.run_as_user
    user = int(name) if name.isdecimal() else int(entry[2]) if entry else None
    _refuse_root(pod, container, asked, name, harmless=harmless)
    if asked is not None:
        user, entry = asked, _entry(passwd, str(asked))
    if user is None:
        raise Unmakeable(f"unable to find user {name}: no matching entries in passwd file")
    primary = own.run_as_group if own.run_as_group is not None else common.run_as_group
    if primary is None:
        primary = _group(group, group_name) if group_name and asked is None else int(entry[3]) if entry else 0
    extra = common.supplemental_groups
    if common.fs_group is not None:
        extra = (*extra, common.fs_group)
    return Identity(user, primary, tuple(dict.fromkeys(extra)), entry[5] if entry else ("/root" if not user else "/"))


def _refuse_root(pod: PodToRun, container: Container, asked: int | None, name: str, *, harmless: bool) -> None:
    own, common = container.security_context, pod.spec.security_context
    if not (common.run_as_non_root if own.run_as_non_root is None else own.run_as_non_root):
        return
    meta = pod.metadata
    where = f'(pod: "{meta.name}_{meta.namespace}({meta.uid})", container: {container.name})'
    if asked == 0:
        raise Unmakeable(f"container's runAsUser breaks non-root policy {where}")
    if asked is not None or harmless:
        return
    if name == "0":
        raise Unmakeable(f"container has runAsNonRoot and image will run as root {where}")
    if not name.isdecimal():
        words = f"container has runAsNonRoot and image has non-numeric user ({name}), cannot verify user is non-root"
        raise Unmakeable(f"{words} {where}")


def _entry(text: str, user: str) -> list[str]:
    """The line of a user in ``passwd``, by name or number; empty if there is none."""
    lines = (line.split(":") for line in text.splitlines())
    return next((each for each in lines if len(each) >= 6 and user in (each[0], each[2]) and each[3].isdecimal()), [])


def _group(text: str, name: str) -> int:
    if name.isdecimal():
        return int(name)
    lines = (line.split(":") for line in text.splitlines())
    for each in lines:
        if len(each) >= 3 and each[0] == name and each[2].isdecimal():
            return int(each[2])
    raise Unmakeable(f"unable to find group {name}: no matching entries in group file")


def capabilities(security: Security) -> tuple[int, ...]:
    """The numbers of those that a container keeps."""
    asked = security.capabilities or {}
    kept = set(CAPABILITIES) if security.privileged else set(USUAL)
    for names, change in ((asked.get("drop"), kept.difference_update), (asked.get("add"), kept.update)):
        for name in names or ():
            word = str(name).upper().removeprefix("CAP_")
            change(CAPABILITIES if word == "ALL" else (word,))
    return tuple(number for number, name in enumerate(CAPABILITIES) if name in kept)


def settings(security: Security) -> dict[str, str]:
    """The kernel's settings for a Pod, by their path below ``/proc/sys``."""
    return {_path(each.name): each.value for each in security.sysctls}


def forbidden_setting(security: Security) -> str:
    """The first of a Pod's kernel settings that could harm others, if there is one."""
    return next((each.name for each in security.sysctls if _path(each.name) not in _SAFE), "")


def _path(name: str) -> str:
    """``net.ipv4.tcp_rmem`` and ``net/ipv4/tcp_rmem`` are the same; what separates first is what separates."""
    first = next((character for character in name if character in "./"), ".")
    return name if first == "/" else name.translate(str.maketrans("./", "/."))


def not_honoured(pod: PodToRun, *, all_users: bool) -> list[str]:
    """What a Pod asks for that this machine cannot give it, for one Event."""
    ignored = _ignored(pod.spec.security_context, all_users=all_users)
    found = [f"spec.securityContext.{each}" for each in ignored]
    for container in _containers(pod):
        ignored = _ignored(container.security_context, all_users=all_users)
        found += [f"securityContext.{each} of container {container.name}" for each in ignored]
    return found


def _ignored(security: Security, *, all_users: bool) -> Iterable[str]:
    asked: dict[str, Any] = {
        "privileged": security.privileged,
        "seLinuxOptions": security.se_linux_options,
        "seccompProfile": (security.seccomp_profile or {}).get("type") not in (None, "Unconfined"),
        "appArmorProfile": (security.app_armor_profile or {}).get("type") not in (None, "Unconfined"),
    }
    if not all_users:
        asked |= {
            "runAsUser": security.run_as_user,
            "runAsGroup": security.run_as_group,
            "supplementalGroups": security.supplemental_groups,
            "fsGroup": security.fs_group,
        }
    return [field for field, value in asked.items() if value]


def _containers(pod: PodToRun) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)
