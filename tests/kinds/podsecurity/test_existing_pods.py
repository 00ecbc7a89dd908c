"""Warnings about the Pods that a Namespace has when it gets stricter."""

from __future__ import annotations

from judged_pods import container, hardened, pod

from seamark.kinds.podsecurity.existing import warnings_about
from seamark.kinds.podsecurity.policy import Standard

BASELINE = Standard("baseline", "v1.30")
HEAD = 'existing pods in namespace "shop" violate the new PodSecurity enforce level "baseline:v1.30"'


def named(name, made):
    return {**made, "metadata": {"name": name}}


def test_one_line_for_each_set_of_reasons():
    free, host = pod(container("a", privileged=True)), pod(container("a"), hostPID=True)
    both = pod(container("a", privileged=True), hostNetwork=True)
    pods = [
        *(named(name, free) for name in ("w2", "w3", "w1")),
        *(named(name, host) for name in ("h2", "h1")),
        named("b", both),
        named("good", pod(hardened("a"))),
    ]
    assert warnings_about("shop", BASELINE, pods, len(pods)) == [
        HEAD,
        "b: host namespaces, privileged",
        "h1 (and 1 other pod): host namespaces",
        "w1 (and 2 other pods): privileged",
    ]


def test_pods_that_were_not_looked_at_are_counted():
    only = "new PodSecurity enforce level only checked against the first 1 of 7 existing pods"
    assert warnings_about("shop", BASELINE, [named("p", pod(hardened("a")))], 7) == [only]
    assert warnings_about("shop", BASELINE, [named("p", pod(container("a"), hostPID=True))], 7) == [
        only,
        HEAD,
        "p: host namespaces",
    ]


def test_pods_that_comply_are_no_reason_to_warn():
    assert warnings_about("shop", BASELINE, [named("p", pod(hardened("a")))], 1) == []
    assert warnings_about("shop", BASELINE, [], 0) == []
