"""The kinds of resource.k8s.io, and StorageVersionMigration: stored, with the rules about their fields."""

from __future__ import annotations

import pytest
from neighbours import Neighbours, concerned, request
from refusing import change_refusals, made, refusals

from seamark.errors import Invalid, Object
from seamark.kinds.admission import Request
from seamark.kinds.devices.devices import (
    DEVICE_CLASS,
    DEVICE_TAINT_RULE,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    RESOURCE_SLICE,
)
from seamark.kinds.resource import NAMESPACES
from seamark.kinds.storage.storageversionmigration import STORAGE_VERSION_MIGRATION

PLACES = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection`"
REQUEST = {"name": "r", "exactly": {"deviceClassName": "c"}}


def test_claims() -> None:
    claim = made(RESOURCE_CLAIM, spec={"devices": {"requests": [REQUEST]}})
    exactly = claim["spec"]["devices"]["requests"][0]["exactly"]
    assert (exactly["allocationMode"], exactly["count"]) == ("ExactCount", 1)
    assert RESOURCE_CLAIM.row(claim, 0.0)[1] == "pending"
    claim["status"] = {"allocation": {}, "reservedFor": [{}]}
    claim["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert RESOURCE_CLAIM.row(claim, 0.0)[1] == "deleted,allocated,reserved"
    claim["status"] = {"reservedFor": [{}]}
    assert RESOURCE_CLAIM.row(claim, 0.0)[1] == "deleted"
    changed = {"spec": {"devices": {"requests": []}}}
    assert change_refusals(RESOURCE_CLAIM, claim, changed)[0].startswith("spec: Invalid value")
    at = "spec.devices.requests"
    both = {
        "name": "B_",
        **{k: v for k, v in REQUEST.items() if k != "name"},
        "firstAvailable": [{"name": "f", "deviceClassName": "c"}],
    }
    wrong = refusals(
        RESOURCE_CLAIM, spec={"devices": {"requests": [{"name": "r"}, {"name": "r", "exactly": {}}, both]}}
    )
    assert [sentence.partition(": ")[0] for sentence in wrong] == [
        f"{at}[0]",
        f"{at}[1].exactly.deviceClassName",
        f"{at}[2].name",
        f"{at}[2]",
        f"{at}[1]",
    ]
    assert wrong[-1] == f'{at}[1]: Duplicate value: "r"'
    many = [{**REQUEST, "name": f"r{i}"} for i in range(33)]
    assert refusals(RESOURCE_CLAIM, spec={"devices": {"requests": many}}) == [
        f"{at}: Too many: 33: must have at most 32 items"
    ]


def test_templates_of_claims() -> None:
    template = made(RESOURCE_CLAIM_TEMPLATE, spec={"spec": {"devices": {"requests": [REQUEST]}}})
    assert RESOURCE_CLAIM_TEMPLATE.row(template, 0.0)[0] == "x"
    changed = {"spec": {"spec": {"devices": {"requests": []}}}}
    assert change_refusals(RESOURCE_CLAIM_TEMPLATE, template, changed)[0].startswith("spec: Invalid value")


def test_slices() -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    found = made(RESOURCE_SLICE, spec={"driver": "d", "pool": pool, "nodeName": "n", "devices": [{"name": "a"}]})
    assert RESOURCE_SLICE.fields(found) == {"spec.nodeName": "n", "spec.driver": "d"}
    assert RESOURCE_SLICE.row(found, 0.0)[:4] == ["x", "n", "d", "p"]
    devices = [{"name": "a"}, {"name": "a"}]
    assert refusals(RESOURCE_SLICE, spec={"driver": "", "pool": {}, "devices": devices}) == [
        "spec.driver: Required value",
        "spec.pool.name: Required value",
        "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
        f"spec: Required value: {PLACES} is required",
        'spec.devices[1]: Duplicate value: "a"',
    ]
    many = [{"name": f"d{i}"} for i in range(129)]
    assert "spec.devices: Too many: 129: must have at most 128 items" in refusals(
        RESOURCE_SLICE, spec={"driver": "d", "pool": pool, "allNodes": True, "devices": many}
    )


def test_classes_and_taints() -> None:
    assert DEVICE_CLASS.row(made(DEVICE_CLASS, spec={}), 0.0)[0] == "x"
    taint = {"taint": {"key": "k", "effect": "NoSchedule"}}
    assert DEVICE_TAINT_RULE.row(made(DEVICE_TAINT_RULE, spec=taint), 0.0)[0] == "x"


def test_migrations() -> None:
    assert refusals(STORAGE_VERSION_MIGRATION, spec={}) == [
        "spec.resource.resource: Required value: resource is required"
    ]
    found = made(STORAGE_VERSION_MIGRATION, spec={"resource": {"group": "apps", "resource": "deployments"}})
    assert STORAGE_VERSION_MIGRATION.row(found, 0.0)[1] == "deployments.apps"
    assert "generation" not in found["metadata"], "its changes are not counted"
    changed = {"spec": {"resource": {"resource": "replicasets"}}}
    assert "field is immutable" in change_refusals(STORAGE_VERSION_MIGRATION, found, changed)[0]


def _refused(asked: Request) -> str:
    """What admission says against a write; "" if nothing."""
    try:
        for plugin in concerned(asked):
            plugin.validate(asked)
    except Invalid as refusal:
        (cause,) = refusal.causes
        assert cause.message.endswith("label on the containing namespace")
        return cause.field
    return ""


@pytest.mark.parametrize(("labels", "allowed"), [({}, False), ({"resource.kubernetes.io/admin-access": "true"}, True)])
def test_admin_access_is_for_namespaces_that_say_so(labels: dict[str, str], allowed: bool) -> None:
    around = Neighbours({NAMESPACES: [{"metadata": {"name": "ns", "labels": labels}}]})
    ours = {"name": "a", "exactly": {"deviceClassName": "c", "adminAccess": True}}
    devices = {"devices": {"requests": [REQUEST, ours]}}
    claim, template = made(RESOURCE_CLAIM, spec=devices), made(RESOURCE_CLAIM_TEMPLATE, spec={"spec": devices})
    said = "" if allowed else "spec.devices.requests[1].adminAccess"
    assert _refused(request(RESOURCE_CLAIM, claim, neighbours=around)) == said
    assert _refused(request(RESOURCE_CLAIM_TEMPLATE, template, neighbours=around)) == said
    result = {"request": "a", "driver": "d", "pool": "p", "device": "x", "adminAccess": True}
    granted: Object = {**claim, "status": {"allocation": {"devices": {"results": [result]}}}}
    said = "" if allowed else "status.allocation.devices.results[0].adminAccess"
    assert _refused(request(RESOURCE_CLAIM, granted, claim, "status", neighbours=around)) == said
    assert not _refused(request(RESOURCE_CLAIM, granted, granted, "status", neighbours=around)), (
        "what was granted stays"
    )
    plain = made(RESOURCE_CLAIM, spec={"devices": {"requests": [REQUEST]}})
    assert not _refused(request(RESOURCE_CLAIM, plain, neighbours=around))
