"""What LimitRanges add to Pods, and what they refuse."""

from __future__ import annotations

import pytest
from neighbours import Neighbours, request

from seamark.errors import Forbidden, Object
from seamark.kinds.kind import Kind
from seamark.kinds.pod.pod import POD
from seamark.kinds.policy.limits import ANNOTATION, LimitRanges
from seamark.kinds.resource import LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS

PLUGIN = LimitRanges()


class ClaimKind(Kind):
    """Enough of a kind to ask the plug-in about claims."""

    resource = PERSISTENT_VOLUME_CLAIMS


CLAIM = ClaimKind()


def limits(*items: Object) -> Neighbours:
    limit_range = {"metadata": {"name": "l", "namespace": "ns"}, "spec": {"limits": list(items)}}
    return Neighbours({LIMIT_RANGES: [limit_range]})


def pod(*containers: Object, init: Object | None = None, **spec: Object) -> Object:
    named = [{"name": f"c{i}", **({"resources": c} if c else {})} for i, c in enumerate(containers)]
    whole = {"containers": named, **spec}
    if init is not None:
        whole["initContainers"] = [{"name": "i", "resources": init}]
    return {"metadata": {"name": "p", "namespace": "ns"}, "spec": whole}


def claim(storage: str) -> Object:
    meta = {"name": "c", "namespace": "ns"}
    return {"metadata": meta, "spec": {"resources": {"requests": {"storage": storage}}}}


def refusal(obj: Object, around: Neighbours, old: Object | None = None, part: str = "", kind: Kind = POD) -> str:
    """What the plug-in says against the object; "" if nothing."""
    asked = request(kind, obj, old, part, around)
    assert PLUGIN.concerns(kind, asked.operation, part)
    try:
        PLUGIN.validate(asked)
    except Forbidden as error:
        return error.message.partition("is forbidden: ")[2]
    return ""


def test_only_pods_and_claims_are_looked_at() -> None:
    assert PLUGIN.concerns(POD, "CREATE", "")
    assert not PLUGIN.concerns(POD, "UPDATE", "")
    assert not PLUGIN.concerns(POD, "UPDATE", "status")
    assert PLUGIN.concerns(CLAIM, "UPDATE", "")


def test_each_range_fills_in_what_the_ones_before_left_open() -> None:
    first = {"type": "Container", "default": {"cpu": "1"}}
    second = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}}
    ranges = [
        {"metadata": {"name": n, "namespace": "ns"}, "spec": {"limits": [i]}}
        for n, i in zip("ab", (first, second), strict=True)
    ]
    made = pod({}, init={"limits": {"memory": "5Mi"}})
    PLUGIN.mutate(request(POD, made, neighbours=Neighbours({LIMIT_RANGES: ranges})))
    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1", "memory": "1Gi"}}
    assert made["spec"]["initContainers"][0]["resources"] == {"limits": {"cpu": "1", "memory": "5Mi"}}
    assert made["metadata"]["annotations"] == {ANNOTATION: "LimitRanger plugin set: memory limit for container c0"}


@pytest.mark.parametrize(
    ("item", "made", "expected"),
    [
        (
            {"type": "Container", "min": {"cpu": "1"}},
            pod({}),
            "minimum cpu usage per Container is 1.  No request is specified",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            pod({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
            "maximum cpu usage per Container is 1, but request is 2",
        ),
        (
            {"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}},
            pod({"limits": {"cpu": "2", "memory": "2Gi"}}, {"limits": {"cpu": "2", "memory": "1Mi"}}),
            "[maximum cpu usage per Container is 1, but limit is 2, "
            "maximum memory usage per Container is 1Gi, but limit is 2Gi]",
        ),
        (
            {"type": "Container", "max": {"cpu": "1"}},
            pod({"limits": {"cpu": "1"}}, init={"limits": {"cpu": "3"}}),
            "maximum cpu usage per Container is 1, but limit is 3",
        ),
        (
            {"type": "Pod", "min": {"memory": "1Gi"}},
            pod({"requests": {"memory": "512Mi"}}, {"requests": {"memory": "500Mi"}}),
            "minimum memory usage per Pod is 1Gi, but request is 1012Mi",
        ),
        (
            {"type": "Pod", "min": {"memory": "1Gi"}},
            pod({"requests": {"memory": "1Mi"}}, resources={"requests": {"memory": "2Gi"}}),
            "",
        ),
        (
            {"type": "Pod", "maxLimitRequestRatio": {"cpu": "1500m"}},
            pod({"requests": {"cpu": "300m"}, "limits": {"cpu": "1"}}),
            "cpu max limit to request ratio per Pod is 1500m, but provided ratio is 3.333333",
        ),
        (
            {"type": "Container", "maxLimitRequestRatio": {"cpu": "2"}},
            pod({"limits": {"cpu": "1"}}),
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, pod({}), ""),
    ],
)
def test_what_is_refused(item: Object, made: Object, expected: str) -> None:
    assert refusal(made, limits(item)) == expected


def test_a_resize_is_judged_by_what_it_changes() -> None:
    around = limits({"type": "Container", "max": {"cpu": "1", "memory": "1Gi"}})
    old = pod({"limits": {"cpu": "2", "memory": "1Mi"}})
    assert refusal(pod({"limits": {"cpu": "2", "memory": "2Mi"}}), around, old, "resize") == ""
    assert "but limit is 3" in refusal(pod({"limits": {"cpu": "3", "memory": "1Mi"}}), around, old, "resize")


def test_claims() -> None:
    around = limits({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"}})
    word = "storage usage per PersistentVolumeClaim is"
    assert refusal(claim("1Mi"), around, kind=CLAIM) == f"minimum {word} 1Gi, but request is 1Mi"
    assert refusal(claim("3Gi"), around, kind=CLAIM) == f"maximum {word} 2Gi, but request is 3Gi"
    assert refusal(claim("3Gi"), around, old=claim("3Gi"), kind=CLAIM) == ""
    assert refusal(claim("4Gi"), around, old=claim("3Gi"), kind=CLAIM) == f"maximum {word} 2Gi, but request is 4Gi"
