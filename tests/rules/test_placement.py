"""On which nodes a Pod may run, asked as the scheduler and as the DaemonSet controller ask."""

import msgspec
import pytest
from effort import LINEAR, grows
from hypothesis import given
from hypothesis import strategies as st

from seamark.rules import placement
from seamark.rules.objects.node import Node, Taint
from seamark.rules.objects.pod import PodSpec, Toleration
from seamark.rules.placement import Eligibility, affinity_of, asked_for, eligibility, untolerated

RUN, STAY, LEAVE = Eligibility(True, True), Eligibility(False, True), Eligibility(False, False)


def node(name, labels=None, taints=()):
    return msgspec.convert({"metadata": {"name": name, "labels": labels or {}}, "spec": {"taints": taints}}, Node)


def judge(spec, node):
    """As for a DaemonSet; the scheduler, which leaves Pods with a ``nodeName`` alone, must come to the same."""
    spec = msgspec.convert(spec, PodSpec)
    found = eligibility(spec, node)
    if not spec.node_name:
        asked = asked_for(spec, affinity_of(spec.affinity, "default"), node)
        assert found.run == (asked and untolerated(node.spec.taints, spec.tolerations) is None)
    return found


def required(*terms):
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(key, operator, *values):
    return {"key": key, "operator": operator, "values": list(values)}


def labels(*expressions):
    return {"matchExpressions": list(expressions)}


ZONE = expression("zone", "In", "a", "b")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, RUN),
        ({"nodeName": "n1"}, RUN),
        ({"nodeName": "n2"}, LEAVE),
        ({"nodeSelector": {"zone": "a"}}, RUN),
        ({"nodeSelector": {"zone": "a", "disk": "ssd"}}, LEAVE),
        (required(labels(ZONE)), RUN),
        (required(labels(expression("zone", "NotIn", "a"))), LEAVE),
        (required(labels(expression("zone", "NotIn", "c"))), RUN),
        (required(labels(expression("disk", "Exists"))), LEAVE),
        (required(labels(expression("disk", "DoesNotExist"))), RUN),
        (required(labels(expression("cpus", "Gt", "4"))), RUN),
        (required(labels(expression("cpus", "Lt", "4"))), LEAVE),
        (required(labels(expression("cpus", "Gt", "many"))), LEAVE),
        (required(labels(expression("zone", "Like", "a"))), LEAVE),
        (required(labels(ZONE, expression("disk", "Exists"))), LEAVE),  # all of a term
        (required(labels(expression("disk", "Exists")), labels(ZONE)), RUN),  # any of the terms
        (required({"matchFields": [expression("metadata.name", "In", "n1")]}), RUN),
        (required({"matchFields": [expression("metadata.name", "In", "n2")]}), LEAVE),
        (required({}), LEAVE),
        (required(), LEAVE),
        (required(labels(ZONE)) | {"nodeSelector": {"zone": "c"}}, LEAVE),
    ],
)
def test_wishes_of_the_pod(spec, expected):
    assert judge(spec, node("n1", {"zone": "a", "cpus": "8"})) == expected


def taint(effect, key="dedicated", value="x"):
    return {"key": key, "value": value, "effect": effect}


def toleration(**what):
    return {"tolerations": [what]}


@pytest.mark.parametrize(
    ("taints", "spec", "expected"),
    [
        ([taint("NoSchedule")], {}, STAY),
        ([taint("NoExecute")], {}, LEAVE),
        ([taint("PreferNoSchedule")], {}, RUN),
        ([taint("NoSchedule")], toleration(operator="Exists"), RUN),
        ([taint("NoSchedule")], toleration(key="dedicated", operator="Exists"), RUN),
        ([taint("NoSchedule")], toleration(key="dedicated", operator="Equal", value="x"), RUN),
        ([taint("NoSchedule")], toleration(key="dedicated", value="x"), RUN),
        ([taint("NoSchedule")], toleration(key="dedicated", value="y"), STAY),
        ([taint("NoSchedule")], toleration(key="other", operator="Exists"), STAY),
        ([taint("NoSchedule")], toleration(key="dedicated", value="x", effect="NoExecute"), STAY),
        ([taint("NoSchedule"), taint("NoExecute")], toleration(key="dedicated", value="x", effect="NoExecute"), STAY),
        ([taint("NoExecute")], toleration(key="dedicated", value="x", effect="NoSchedule"), LEAVE),
    ],
)
def test_taints_of_the_node(taints, spec, expected):
    assert judge(spec, node("n1", taints=taints)) == expected


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSchedule"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "gpu", "value": "no"}, False),
        ({"key": "cpu", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration, tolerated):
    taint = Taint("gpu", "NoSchedule", "yes")
    assert (placement.untolerated([taint], [msgspec.convert(toleration, Toleration)]) is None) == tolerated


def test_when_a_taint_drives_a_pod_away():
    one = (Taint("t", "NoExecute", time_added="2026-01-01T00:00:00Z"),)

    def due(*tolerations, taints=one):
        at = placement.eviction_time(taints, [msgspec.convert(t, Toleration) for t in tolerations], now=2_000_000_000.0)
        return at and at - 1767225600.0

    assert due() == 2_000_000_000.0 - 1767225600.0
    assert due({"key": "t", "operator": "Exists"}) is None
    assert due({"key": "t", "operator": "Exists", "tolerationSeconds": 300}) == 300
    assert due({"operator": "Exists", "tolerationSeconds": 300}, {"key": "t", "operator": "Exists"}) == 300
    assert due({"operator": "Exists", "tolerationSeconds": -5}) == 0
    assert due(taints=[Taint("t", "NoSchedule")]) is None
    two = [*one, Taint("u", "NoExecute", time_added="2026-01-01T00:01:00Z")]
    both = (
        {"key": "t", "operator": "Exists", "tolerationSeconds": 300},
        {"key": "u", "operator": "Exists", "tolerationSeconds": 30},
    )
    assert due(*both, taints=two) == 90


some = st.sampled_from
taints_of_a_node = st.lists(
    st.builds(Taint, some("ab"), some(["NoSchedule", "NoExecute", "PreferNoSchedule"]), some(["", "v", "w"])),
    max_size=4,
)
tolerations_of_a_pod = st.lists(
    st.builds(
        Toleration,
        some(["", "a", "b"]),
        some(["Exists", "Equal"]),
        some(["", "v", "w"]),
        some(["", "NoSchedule", "NoExecute", "PreferNoSchedule"]),
        some([None, 0, 5, 60]),
    ),
    max_size=8,
)


@given(taints_of_a_node, tolerations_of_a_pod)
def test_many_tolerations_do_as_few(taints, tolerations):
    def decided():
        return (
            placement.untolerated(taints, tolerations),
            placement.disliked(taints, tolerations),
            placement.eviction_time(taints, tolerations, now=1000.0),
        )

    few = decided()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placement, "_FEW_TOLERATIONS", -1)
        assert decided() == few


@pytest.mark.parametrize("key", ["k", ""])
def test_thousands_of_taints_are_not_compared_with_thousands_of_tolerations(key):
    def prepared(count):
        taints = [Taint(f"k{i}", "NoExecute") for i in range(count)]
        kept = [Toleration(key and f"{key}{i}", "Exists", "", "NoExecute", 60 + i) for i in reversed(range(count))]
        other = [Toleration("", "Exists", "", "NoSchedule", i) for i in range(count)]
        return lambda: placement.eviction_time(taints, [*other, *kept], now=0.0)

    assert grows(prepared) < LINEAR
