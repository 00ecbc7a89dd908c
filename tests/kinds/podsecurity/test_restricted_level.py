"""The checks that the level "restricted" adds: what they refuse, in which version, and in which words."""

from __future__ import annotations

import pytest
from judged_pods import HARDENED, container, hardened, pod, said

A = hardened("a")
ESCALATES = "allowPrivilegeEscalation != false"
UNDROPPED = "unrestricted capabilities"
NON_ROOT = "runAsNonRoot != true"
WINDOWS = {"name": "windows"}


def without(field, name="a"):
    return container(name, **{key: value for key, value in HARDENED.items() if key != field})


REFUSED = [
    (
        pod(hardened("a", allowPrivilegeEscalation=True), A, without("allowPrivilegeEscalation", "c")),
        f'{ESCALATES} (containers "a", "c" must set securityContext.allowPrivilegeEscalation=false)',
    ),
    (
        pod(without("capabilities"), hardened("b", capabilities={"drop": ["NET_RAW"]})),
        f'{UNDROPPED} (containers "a", "b" must set securityContext.capabilities.drop=["ALL"])',
    ),
    (
        pod(hardened("a", capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "KILL", "CHOWN"]})),
        f'{UNDROPPED} (container "a" must not include "CHOWN", "KILL" in securityContext.capabilities.add)',
    ),
    (
        pod(hardened("a", capabilities={"add": ["KILL"]}), hardened("b", capabilities={"drop": ["ALL"], "add": ["X"]})),
        f'{UNDROPPED} (container "a" must set securityContext.capabilities.drop=["ALL"]; containers "a", "b" must not '
        'include "KILL", "X" in securityContext.capabilities.add)',
    ),
    (
        pod(hardened("a", procMount="Unmasked"), hostUsers=False),
        'procMount (container "a" must not set securityContext.procMount to "Unmasked")',
    ),
    (
        pod(A, volumes=[{"name": "v", "hostPath": {"path": "/"}}]),
        'restricted volume types (volume "v" uses restricted volume type "hostPath")',
    ),
    (
        pod(A, volumes=[{"name": "v", "nfs": {}}, {"name": "w", "nfs": {}}, {"name": "x", "fc": {}}]),
        'restricted volume types (volumes "v", "w", "x" use restricted volume types "fc", "nfs")',
    ),
    (
        pod(without("runAsNonRoot"), hardened("b"), without("runAsNonRoot", "c")),
        f'{NON_ROOT} (pod or containers "a", "c" must set securityContext.runAsNonRoot=true)',
    ),
    (
        pod(hardened("a", runAsNonRoot=False), without("runAsNonRoot", "b"), context={"runAsNonRoot": False}),
        f'{NON_ROOT} (pod and container "a" must not set securityContext.runAsNonRoot=false)',
    ),
    (pod(hardened("a", runAsUser=0)), 'runAsUser=0 (container "a" must not set runAsUser=0)'),
    (pod(A, context={"runAsUser": 0}), "runAsUser=0 (pod must not set runAsUser=0)"),
    (
        pod(without("seccompProfile"), A),
        'seccompProfile (pod or container "a" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
        '"Localhost")',
    ),
    (
        pod(without("seccompProfile"), hardened("b", seccompProfile={"type": "Unconfined"})),
        'seccompProfile (container "b" must not set securityContext.seccompProfile.type to "Unconfined")',
    ),
]


@pytest.mark.parametrize(("made", "expected"), REFUSED)
def test_what_restricted_refuses(made, expected):
    assert said("restricted", "latest", made) == [expected]


# The first version in which a Pod complies that did not before, or does not that did.
CHANGES = [
    (8, pod(without("allowPrivilegeEscalation")), False),
    (25, pod(without("allowPrivilegeEscalation"), os=WINDOWS), True),
    (22, pod(without("capabilities")), False),
    (22, pod(hardened("a", capabilities={"drop": ["ALL"], "add": ["CHOWN"]})), False),
    (25, pod(without("capabilities"), os=WINDOWS), True),
    (19, pod(without("seccompProfile")), False),
    (25, pod(without("seccompProfile"), os=WINDOWS), True),
    (23, pod(hardened("a", runAsUser=0)), False),
    (35, pod(hardened("a", runAsUser=0), hostUsers=False), True),
    (35, pod(hardened("a", runAsNonRoot=False), hostUsers=False), True),
]


@pytest.mark.parametrize(("minor", "made", "complies"), CHANGES)
def test_what_changed_with_a_version(minor, made, complies):
    assert (not said("restricted", f"v1.{minor - 1}", made)) is not complies
    assert (not said("restricted", f"v1.{minor}", made)) is complies
    assert said("restricted", "latest", made) == said("restricted", f"v1.{minor}", made)


COMPLYING = [
    pod(A),
    pod(A, initContainers=[hardened("i")], ephemeralContainers=[hardened("e")]),
    pod(without("runAsNonRoot"), context={"runAsNonRoot": True}),
    pod(without("seccompProfile"), context={"seccompProfile": {"type": "Localhost"}}),
    pod(hardened("a", capabilities={"drop": ["ALL", "KILL"], "add": ["NET_BIND_SERVICE"]}, runAsUser=1000)),
    pod(
        A,
        volumes=[
            {"name": source, source: {}}
            for source in (
                *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image"),
                *("persistentVolumeClaim", "projected", "secret"),
            )
        ],
    ),
]


@pytest.mark.parametrize("made", COMPLYING)
@pytest.mark.parametrize("version", ["v1.0", "v1.8", "v1.22", "v1.35", "v1.38", "latest"])
def test_what_restricted_allows(made, version):
    assert said("restricted", version, made) == []


def test_a_mistake_that_both_levels_see_is_told_once():
    made = pod(
        hardened(
            "a",
            capabilities={"add": ["SYS_ADMIN"]},
            seccompProfile={"type": "Unconfined"},
            procMount="Unmasked",
            privileged=True,
        ),
        hostNetwork=True,
        volumes=[{"name": "v", "hostPath": {}}],
    )
    reasons = [sentence.partition(" (")[0] for sentence in said("restricted", "latest", made)]
    basic = ["host namespaces", "privileged"]
    assert reasons == [*basic, UNDROPPED, "procMount", "restricted volume types", "seccompProfile"]
    # Where the restricted check is yet to come, that of the baseline counts.
    reasons = [sentence.partition(" (")[0] for sentence in said("restricted", "v1.21", made)]
    assert reasons == [
        "non-default capabilities",
        "host namespaces",
        "privileged",
        "procMount",
        "restricted volume types",
        "seccompProfile",
    ]
