"""The checks of the level "baseline", against known ways to get from a container to its node."""

from __future__ import annotations

from collections.abc import Iterator

from seamark.errors import Object
from seamark.kinds.pod.annotations import APP_ARMOR, SECCOMP_CONTAINER, SECCOMP_POD
from seamark.kinds.podsecurity.subject import (
    Check,
    Part,
    Subject,
    Violation,
    containers,
    contexts,
    gathered,
    plural,
    quoted,
    setters,
    use,
)
from seamark.kinds.values.fields import show

CONFINING = ("RuntimeDefault", "Localhost")  # profiles of AppArmor and seccomp that restrict what a container may do

CAPABILITIES = frozenset(
    (
        "AUDIT_WRITE",
        "CHOWN",
        "DAC_OVERRIDE",
        "FOWNER",
        "FSETID",
        "KILL",
        "MKNOD",
        "NET_BIND_SERVICE",
        "SETFCAP",
        "SETGID",
        "SETPCAP",
        "SETUID",
        "SYS_CHROOT",
    )
)
SE_LINUX_TYPES = frozenset(("", "container_t", "container_init_t", "container_kvm_t"))
SE_LINUX_TYPES_1_31 = SE_LINUX_TYPES | {"container_engine_t"}
SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_syncookies",
    )
)
SYSCTLS_1_27 = SYSCTLS | {"net.ipv4.ip_local_reserved_ports"}
SYSCTLS_1_29 = SYSCTLS_1_27 | {
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
}
SYSCTLS_1_32 = SYSCTLS_1_29 | {"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"}


def app_armor(pod: Subject) -> Violation | None:
    bad = [(who, value) for who, value in _types(pod, "appArmorProfile") if value not in CONFINING]
    annotated = sorted(
        f"{key}={show(value)}"
        for key, value in pod.annotations.items()
        if key.startswith(APP_ARMOR) and value not in ("", "runtime/default") and not value.startswith("localhost/")
    )
    if not bad and not annotated:
        return None
    who = [setters(who for who, _ in bad)] if bad else []
    if annotated:
        who.append(plural("annotation", annotated))
    values = [*sorted({value for _, value in bad}), *annotated]
    detail = f"{' and '.join(who)} must not set AppArmor profile type to {quoted(values)}"
    return Violation(plural("forbidden AppArmor profile", values), detail)


def capabilities(pod: Subject) -> Violation | None:
    names, added = gathered(pod, lambda part: capabilities_of(part, "add") - CAPABILITIES)
    if not names:
        return None
    detail = f"{containers(names)} must not include {quoted(sorted(added))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def capabilities_of(part: Part, list_: str) -> set[str]:
    """Those that a container adds or drops."""
    return set((part.context.get("capabilities") or {}).get(list_) or ())


def host_namespaces(pod: Subject) -> Violation | None:
    shared = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(field)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_paths(pod: Subject) -> Violation | None:
    names = [volume.get("name", "") for volume in pod.spec.get("volumes") or () if volume.get("hostPath") is not None]
    return Violation("hostPath volumes", f"{plural('volume', names)} {quoted(names)}") if names else None


def host_ports(pod: Subject) -> Violation | None:
    names, used = gathered(pod, lambda part: set(_host_ports(part.container)))
    if not names:
        return None
    # Kubernetes sorts the ports as texts.
    detail = f"{containers(names)} {use(names)} {plural('hostPort', used)} {', '.join(sorted(used))}"
    return Violation("hostPort", detail)


def _host_ports(container: Object) -> Iterator[str]:
    return (str(port["hostPort"]) for port in container.get("ports") or () if port.get("hostPort"))


def handler_hosts(pod: Subject) -> Violation | None:
    """A probe or a lifecycle handler is called by the kubelet: with a host, it makes the node call any address."""
    found, hosts = gathered(pod, lambda part: set(_hosts(part.container)))
    names = set(found)
    if not names:
        return None
    what = plural("probe or lifecycle host", hosts)
    detail = f"{containers(sorted(names))} {use(names)} {what} {quoted(sorted(hosts))}"
    return Violation("probe or lifecycle host", detail)


def _hosts(container: Object) -> Iterator[str]:
    handlers = [container.get(probe) for probe in ("livenessProbe", "readinessProbe", "startupProbe")]
    if lifecycle := container.get("lifecycle"):
        handlers += [lifecycle.get("postStart"), lifecycle.get("preStop")]
    for handler in handlers:
        for action in ("httpGet", "tcpSocket"):
            if handler and (host := (handler.get(action) or {}).get("host")):
                yield host


def privileged(pod: Subject) -> Violation | None:
    names = [part.name for part in pod.parts if part.context.get("privileged")]
    return (
        Violation("privileged", f"{containers(names)} must not set securityContext.privileged=true") if names else None
    )


def proc_mount(pod: Subject) -> Violation | None:
    found = [(who, mount) for who, mount in contexts(pod, "procMount") if mount != "Default"]
    if not found:
        return None
    mounts = quoted(sorted({mount for _, mount in found}))
    detail = f"{containers([who for who, _ in found])} must not set securityContext.procMount to {mounts}"
    return Violation("procMount", detail)


def se_linux(allowed: frozenset[str]) -> Check:
    def check(pod: Subject) -> Violation | None:
        names, types, fields = [], set(), set()
        for who, options in contexts(pod, "seLinuxOptions"):
            custom = {field for field in ("user", "role") if options.get(field)}
            kind = options.get("type", "")
            if kind not in allowed:
                types.add(kind)
            elif not custom:
                continue
            names.append(who)
            fields |= custom
        if not names:
            return None
        wrong = [f"{plural('type', types)} {quoted(sorted(types))}"] if types else []
        wrong += [f"{field} may not be set" for field in ("user", "role") if field in fields]
        detail = f"{setters(names)} set forbidden securityContext.seLinuxOptions: {'; '.join(wrong)}"
        return Violation("seLinuxOptions", detail)

    return check


def seccomp_annotations(pod: Subject) -> Violation | None:
    """How seccomp profiles were chosen before Kubernetes 1.19."""
    bad = set()
    for key in (SECCOMP_POD, *(f"{SECCOMP_CONTAINER}{part.name}" for part in pod.parts)):
        value = pod.annotations.get(key, "runtime/default")
        if value not in ("runtime/default", "docker/default") and not value.startswith("localhost/"):
            bad.add(f"{key}={show(value)}")
    if not bad:
        return None
    return Violation("seccompProfile", f"forbidden {plural('annotation', bad)} {', '.join(sorted(bad))}")


def seccomp(pod: Subject) -> Violation | None:
    bad = [(who, value) for who, value in _types(pod, "seccompProfile") if value not in CONFINING]
    if not bad:
        return None
    values = quoted(sorted({value for _, value in bad}))
    detail = f"{setters(who for who, _ in bad)} must not set securityContext.seccompProfile.type to {values}"
    return Violation("seccompProfile", detail)


def sysctls(allowed: frozenset[str]) -> Check:
    def check(pod: Subject) -> Violation | None:
        names = [each.get("name", "") for each in pod.context.get("sysctls") or ()]
        bad = [name for name in names if name not in allowed]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def host_process(pod: Subject) -> Violation | None:
    names = [who for who, options in contexts(pod, "windowsOptions") if options.get("hostProcess")]
    if not names:
        return None
    return Violation("hostProcess", f"{setters(names)} must not set securityContext.windowsOptions.hostProcess=true")


def _types(pod: Subject, field: str) -> Iterator[tuple[str, str]]:
    """The type of every profile in this field, and whose it is."""
    return ((who, profile.get("type", "")) for who, profile in contexts(pod, field))
