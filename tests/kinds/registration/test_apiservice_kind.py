"""APIService."""

from __future__ import annotations

import pytest
from kind_rules import NOW, Recorded, check, create, recorded_creations
from refusing import change_refusals, refusals

from seamark.errors import Object
from seamark.kinds.registration.apiservice import API_SERVICE, local_services


@pytest.mark.parametrize("recorded", recorded_creations("apiservices"), ids=str)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def service(**spec: object) -> Object:
    return {"group": "a.b", "version": "x", "groupPriorityMinimum": 1, "versionPriority": 1, **spec}


def remote(**more: object) -> Object:
    spec = service(service={"name": "s", "namespace": "n"}, **more)
    return create(API_SERVICE, {"metadata": {"name": "x.a.b"}, "spec": spec})


def test_groups_and_versions() -> None:
    wrong = refusals(API_SERVICE, spec=service(group="", version="v2"))
    assert "spec.group: Required value: only v1 may have an empty group and it better be legacy kube" in wrong
    assert 'spec.caBundle: Invalid value: "1 bytes": local APIServices may not have a caBundle' in refusals(
        API_SERVICE, spec=service(caBundle="eA==")
    )
    long = refusals(API_SERVICE, spec=service(version="v" * 64))
    assert f'spec.version: Invalid value: "{"v" * 64}": must be no more than 63 characters' in long


def test_rows() -> None:
    found = remote()
    assert found["spec"]["service"]["port"] == 443
    assert API_SERVICE.row(found, 0.0)[:3] == ["x.a.b", "n/s", "Unknown"]
    found["status"] = {"conditions": [{"type": "Available", "status": "False", "reason": "Gone"}]}
    assert API_SERVICE.row(found, 0.0)[2] == "False (Gone)"


def test_a_status_is_true_false_or_unknown() -> None:
    bad = {"status": {"conditions": [{"type": "Available", "status": "Odd", "lastTransitionTime": NOW}]}}
    assert change_refusals(API_SERVICE, remote(), bad, "status") == [
        'status.conditions[0].status: Unsupported value: "Odd": supported values: "True", "False", "Unknown"'
    ]


def test_local_services_are_available_from_the_start() -> None:
    (made,) = local_services([("apps", "v1"), ("of.somebody.else", "v1")])
    stored = create(API_SERVICE, made)
    assert API_SERVICE.row(stored, 0.0)[:3] == ["v1.apps", "Local", "True"]
