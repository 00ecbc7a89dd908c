"""What holds of the levels whatever the Pod."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from judged_pods import HARDENED, container, pod, said

VERSIONS = st.one_of(st.just("latest"), st.integers(0, 45).map(lambda minor: f"v1.{minor}"))
PROFILES = st.sampled_from(({"type": "RuntimeDefault"}, {"type": "Localhost"}, {"type": "Unconfined"}))
CONTEXTS = st.fixed_dictionaries(
    {},
    optional={
        "allowPrivilegeEscalation": st.booleans(),
        "appArmorProfile": PROFILES,
        "capabilities": st.fixed_dictionaries(
            {},
            optional={
                "add": st.lists(st.sampled_from(("CHOWN", "NET_BIND_SERVICE", "NET_RAW")), unique=True),
                "drop": st.lists(st.sampled_from(("ALL", "KILL")), unique=True),
            },
        ),
        "privileged": st.booleans(),
        "procMount": st.sampled_from(("Default", "Unmasked")),
        "runAsNonRoot": st.booleans(),
        "runAsUser": st.integers(0, 1),
        "seccompProfile": PROFILES,
        "seLinuxOptions": st.sampled_from(({}, {"type": "container_engine_t"}, {"user": "u"}, {"type": "spc_t"})),
    },
)
HANDLERS = st.sampled_from(({"exec": {}}, {"httpGet": {"port": 1}}, {"httpGet": {"port": 1, "host": "h"}}))
SPECS = st.fixed_dictionaries(
    {},
    optional={
        "context": st.fixed_dictionaries(
            {},
            optional={
                "runAsNonRoot": st.booleans(),
                "runAsUser": st.integers(0, 1),
                "seccompProfile": PROFILES,
                "sysctls": st.lists(
                    st.sampled_from(("kernel.shm_rmid_forced", "net.ipv4.tcp_rmem", "kernel.sem")).map(
                        lambda name: {"name": name, "value": "1"}
                    ),
                    max_size=2,
                ),
            },
        ),
        "hostNetwork": st.booleans(),
        "hostUsers": st.booleans(),
        "volumes": st.lists(
            st.sampled_from(("emptyDir", "hostPath", "image", "nfs")).map(lambda source: {"name": source, source: {}}),
            max_size=2,
        ),
    },
)


@st.composite
def pods(draw: st.DrawFn, least: int = 1) -> Any:
    """Pods for Linux: what Windows is exempt from, validation keeps out of Pods for it."""
    made = []
    for i in range(draw(st.integers(least, 4))):
        context = draw(CONTEXTS)
        if draw(st.booleans()):
            context = {**HARDENED, **context}
        more = {"livenessProbe": draw(HANDLERS)} if draw(st.booleans()) else {}
        made.append(container(f"c{i}", more=more, **context))
    return pod(*made, **draw(SPECS))


@given(pods(), VERSIONS)
def test_what_complies_with_restricted_complies_with_baseline(made, version):
    if not said("restricted", version, made):
        assert not said("baseline", version, made)


@given(pods(least=2), VERSIONS, st.sampled_from(("baseline", "restricted")), st.randoms())
def test_the_order_of_containers_does_not_change_the_verdict(made, version, level, chance: random.Random):
    before = said(level, version, made)
    chance.shuffle(made["spec"]["containers"])
    after = said(level, version, made)
    # The same reasons about the same containers, which are named in their own order.
    assert [sorted(sentence.split()) for sentence in map(_bare, after)] == [
        sorted(sentence.split()) for sentence in map(_bare, before)
    ]


def _bare(sentence: str) -> str:
    return sentence.replace(",", "").replace("(", "").replace(")", "")


@given(pods(), st.integers(35, 60))
def test_versions_yet_to_come_are_like_the_latest(made, minor):
    assert said("restricted", f"v1.{minor}", made) == said("restricted", "latest", made)
