"""The checks of the level "baseline": what they refuse, in which version, and in which words."""

from __future__ import annotations

from typing import Any

import pytest
from judged_pods import container, hardened, pod, said

A = container("a")
CONTAINER_APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/"
CONTAINER_SECCOMP = "container.seccomp.security.alpha.kubernetes.io/"
POD_SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"


def profile(kind: str) -> Any:
    return {"type": kind}


def capable(name: str, *capabilities: str) -> Any:
    return container(name, capabilities={"add": list(capabilities)})


def labelled(name: str, **options: str) -> Any:
    return container(name, seLinuxOptions=options)


def sysctls(*names: str) -> Any:
    return pod(A, context={"sysctls": [{"name": name, "value": "1"} for name in names]})


def probing(name: str, **fields: Any) -> Any:
    return container(name, more=fields)


HTTP = {"httpGet": {"port": 80, "host": "10.0.0.1"}}
TCP = {"tcpSocket": {"port": 80, "host": "metadata"}}

REFUSED = [
    # --- AppArmor
    (
        pod(A, context={"appArmorProfile": profile("Unconfined")}),
        'forbidden AppArmor profile (pod must not set AppArmor profile type to "Unconfined")',
    ),
    (
        pod(
            container("a", appArmorProfile=profile("Unconfined")),
            container("b", appArmorProfile=profile("Localhost")),
            initContainers=[container("i", appArmorProfile=profile("Unconfined"))],
            context={"appArmorProfile": profile("Unconfined")},
            annotations={f"{CONTAINER_APP_ARMOR}a": "unconfined"},
        ),
        'forbidden AppArmor profiles (pod and containers "i", "a" and annotation must not set AppArmor profile type to '
        f'"Unconfined", "{CONTAINER_APP_ARMOR}a="unconfined"")',
    ),
    (
        pod(A, annotations={f"{CONTAINER_APP_ARMOR}{name}": name for name in ("b", "a", "localhost/x")}),
        f'forbidden AppArmor profiles (annotations must not set AppArmor profile type to "{CONTAINER_APP_ARMOR}a="a"", '
        f'"{CONTAINER_APP_ARMOR}b="b"")',
    ),
    # --- capabilities
    (
        pod(capable("a", "NET_RAW", "CHOWN"), capable("b", "KILL"), capable("c", "SYS_ADMIN", "NET_RAW")),
        'non-default capabilities (containers "a", "c" must not include "NET_RAW", "SYS_ADMIN" in '
        "securityContext.capabilities.add)",
    ),
    # --- what belongs to the node
    (pod(A, hostPID=True), "host namespaces (hostPID=true)"),
    (
        pod(A, hostIPC=True, hostPID=True, hostNetwork=True),
        "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
    ),
    (pod(A, volumes=[{"name": "v", "hostPath": {"path": "/"}}]), 'hostPath volumes (volume "v")'),
    (
        pod(A, volumes=[{"name": "v", "hostPath": {}}, {"name": "e", "emptyDir": {}}, {"name": "w", "hostPath": {}}]),
        'hostPath volumes (volumes "v", "w")',
    ),
    (pod(container("a", ports=[0, 20])), 'hostPort (container "a" uses hostPort 20)'),
    (
        pod(container("a", ports=[9, 80]), A, container("b", ports=[100, 80])),
        'hostPort (containers "a", "b" use hostPorts 100, 80, 9)',
    ),
    (
        pod(container("a", privileged=True), container("b", privileged=False)),
        'privileged (container "a" must not set securityContext.privileged=true)',
    ),
    (
        pod(A, ephemeralContainers=[container("e", privileged=True)]),
        'privileged (container "e" must not set securityContext.privileged=true)',
    ),
    (
        pod(container("a", procMount="Unmasked"), container("b", procMount="Default")),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    # --- SELinux
    (
        pod(A, context={"seLinuxOptions": {"type": "spc_t"}}),
        'seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t")',
    ),
    (
        pod(labelled("a", user="u")),
        'seLinuxOptions (container "a" set forbidden securityContext.seLinuxOptions: user may not be set)',
    ),
    (
        pod(
            labelled("a", role="r"),
            labelled("b", user="u", type="container_t"),
            labelled("c", type="y"),
            labelled("d", type="container_kvm_t"),
            context={"seLinuxOptions": {"type": "x"}},
        ),
        'seLinuxOptions (pod and containers "a", "b", "c" set forbidden securityContext.seLinuxOptions: types "x", '
        '"y"; user may not be set; role may not be set)',
    ),
    # --- seccomp, from 1.19 on
    (
        pod(
            container("a", seccompProfile=profile("Unconfined")),
            container("b", seccompProfile=profile("Localhost")),
            context={"seccompProfile": profile("Unconfined")},
        ),
        'seccompProfile (pod and container "a" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
    # --- sysctls
    (sysctls("kernel.msgmax", "net.ipv4.tcp_rmem", "kernel.sem"), "forbidden sysctls (kernel.msgmax, kernel.sem)"),
    # --- Windows
    (
        pod(
            container("a", windowsOptions={"hostProcess": True}),
            container("b", windowsOptions={"hostProcess": False}),
            context={"windowsOptions": {"hostProcess": True}},
        ),
        'hostProcess (pod and container "a" must not set securityContext.windowsOptions.hostProcess=true)',
    ),
    # --- probes and lifecycle handlers, from 1.34 on
    (
        pod(probing("a", livenessProbe=HTTP)),
        'probe or lifecycle host (container "a" uses probe or lifecycle host "10.0.0.1")',
    ),
    (
        pod(
            probing("z", readinessProbe=HTTP, startupProbe={"exec": {}}),
            probing("y", lifecycle={"postStart": TCP, "preStop": HTTP}),
            probing("x", lifecycle={"preStop": {"httpGet": {"port": 80}}}),
        ),
        'probe or lifecycle host (containers "y", "z" use probe or lifecycle hosts "10.0.0.1", "metadata")',
    ),
]


@pytest.mark.parametrize(("made", "expected"), REFUSED)
def test_what_baseline_refuses(made, expected):
    assert said("baseline", "latest", made) == [expected]
    assert said("privileged", "latest", made) == []


# The first version in which a Pod complies that did not before, or does not that did.
CHANGES = [
    (34, pod(probing("a", startupProbe=TCP)), False),
    (35, pod(container("a", procMount="Unmasked"), hostUsers=False), True),
    (31, pod(labelled("a", type="container_engine_t")), True),
    (19, pod(container("a", seccompProfile=profile("Unconfined"))), False),
    (19, pod(A, annotations={POD_SECCOMP: "unconfined"}), True),
    (27, sysctls("net.ipv4.ip_local_reserved_ports"), True),
    (29, sysctls("net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl"), True),
    (29, sysctls("net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time"), True),
    (32, sysctls("net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"), True),
]


@pytest.mark.parametrize(("minor", "made", "complies"), CHANGES)
def test_what_changed_with_a_version(minor, made, complies):
    assert (not said("baseline", f"v1.{minor - 1}", made)) is not complies
    assert (not said("baseline", f"v1.{minor}", made)) is complies
    assert said("baseline", "latest", made) == said("baseline", f"v1.{minor}", made)


def test_seccomp_was_an_annotation():
    annotations = {
        POD_SECCOMP: "unconfined",
        f"{CONTAINER_SECCOMP}a": "x",
        f"{CONTAINER_SECCOMP}b": "localhost/x",
        f"{CONTAINER_SECCOMP}other": "x",  # no container has this name
    }
    made = pod(A, container("b"), annotations=annotations)
    told = f'forbidden annotations {CONTAINER_SECCOMP}a="x", {POD_SECCOMP}="unconfined"'
    assert said("baseline", "v1.18", made) == [f"seccompProfile ({told})"]
    assert said("baseline", "v1.18", pod(A, annotations={POD_SECCOMP: "docker/default"})) == []


COMPLYING = [
    pod(A),
    pod(container("a", capabilities={"add": ["CHOWN", "SETUID", "NET_BIND_SERVICE"]})),
    pod(container("a", appArmorProfile=profile("Localhost"), seccompProfile=profile("RuntimeDefault"))),
    pod(A, annotations={f"{CONTAINER_APP_ARMOR}a": "localhost/x", f"{CONTAINER_APP_ARMOR}b": "runtime/default"}),
    pod(A, context={"seLinuxOptions": {"type": "container_init_t", "level": "s0"}}),
    pod(A, context={"runAsUser": 0, "runAsNonRoot": False}),
    pod(probing("a", livenessProbe={"httpGet": {"port": 80}}, lifecycle={"preStop": {"exec": {}}})),
    pod(A, volumes=[{"name": "v", "nfs": {}}, {"name": "e", "emptyDir": {}}]),
    sysctls("kernel.shm_rmid_forced", "net.ipv4.ping_group_range", "net.ipv4.tcp_syncookies"),
    pod(hardened("a")),
]


@pytest.mark.parametrize("made", COMPLYING)
@pytest.mark.parametrize("version", ["v1.0", "v1.19", "v1.34", "v1.38", "v1.99", "latest"])
def test_what_baseline_allows(made, version):
    assert said("baseline", version, made) == []


def test_every_violation_at_once_in_the_order_of_their_names():
    made = pod(
        container("a", privileged=True, procMount="Unmasked", ports=[80], capabilities={"add": ["ALL"]}),
        hostNetwork=True,
        volumes=[{"name": "v", "hostPath": {"path": "/"}}],
        context={
            "appArmorProfile": profile("Unconfined"),
            "seccompProfile": profile("Unconfined"),
            "seLinuxOptions": {"role": "r"},
            "sysctls": [{"name": "x", "value": "1"}],
            "windowsOptions": {"hostProcess": True},
        },
    )
    assert [sentence.partition(" (")[0] for sentence in said("baseline", "v1.33", made)] == [
        "forbidden AppArmor profile",
        "non-default capabilities",
        "host namespaces",
        "hostPath volumes",
        "hostPort",
        "privileged",
        "procMount",
        "seLinuxOptions",
        "seccompProfile",
        "forbidden sysctls",
        "hostProcess",
    ]
