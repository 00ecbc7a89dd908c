"""Which volume a claim takes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from seamark.rules.objects.storage import Claim, StorageClass, Volume
from seamark.rules.volumes import PROVISIONER, belongs, best, new_volume


def claim(**spec: Any) -> Claim:
    given = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}, **spec}
    return msgspec.convert({"metadata": {"name": "c", "namespace": "n", "uid": "u"}, "spec": given}, Claim)


def volume(name: str, size: str = "2Gi", phase: str = "Available", labels: Any = None, **spec: Any) -> Volume:
    given = {"accessModes": ["ReadWriteOnce", "ReadWriteMany"], "capacity": {"storage": size}, **spec}
    obj = {"metadata": {"name": name, "labels": labels or {}}, "spec": given, "status": {"phase": phase}}
    return msgspec.convert(obj, Volume)


MINE = {"namespace": "n", "name": "c"}


@pytest.mark.parametrize(
    ("volumes", "chosen"),
    [
        ([], None),
        ([volume("large", "9Gi"), volume("fits"), volume("small", "1Gi")], "fits"),
        ([volume("b"), volume("a")], "a"),
        ([volume("taken", claimRef={"namespace": "n", "name": "other", "uid": "x"})], None),
        ([volume("smallest"), volume("reserved", "9Gi", claimRef=MINE)], "reserved"),
        ([volume("of-a-namesake", claimRef={**MINE, "uid": "older"})], None),
        ([volume("pending", phase="Pending")], None),
        ([volume("block", volumeMode="Block")], None),
        ([volume("classy", storageClassName="fast")], None),
        ([volume("modest", accessModes=["ReadOnlyMany"])], None),
    ],
)
def test_the_best_volume(volumes: list[Volume], chosen: str | None) -> None:
    found = best(claim(), volumes)
    assert (found and found.metadata.name) == chosen


def test_selectors_and_classes() -> None:
    picky = claim(selector={"matchLabels": {"a": "b"}}, storageClassName="fast")
    fast = volume("fast", storageClassName="fast", labels={"a": "b"})
    assert best(picky, [volume("other", storageClassName="fast"), fast]) is fast
    assert best(picky, [fast], reserved_only=True) is None
    reserved = volume("mine", storageClassName="fast", claimRef=MINE)
    assert best(picky, [fast, reserved], reserved_only=True) is reserved
    assert belongs(reserved, picky)


def test_a_volume_that_is_made() -> None:
    made = new_volume(
        claim(),
        msgspec.convert(
            {"metadata": {"name": "fast"}, "reclaimPolicy": "Retain", "mountOptions": ["ro"]}, StorageClass
        ),
    )
    assert made["metadata"]["name"] == "pvc-u"
    assert made["spec"]["csi"] == {"driver": PROVISIONER, "volumeHandle": "pvc-u"}
    assert made["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert made["spec"]["mountOptions"] == ["ro"]
