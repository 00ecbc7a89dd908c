"""ResourceQuota, LimitRange, PodDisruptionBudget and PriorityClass as objects."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import Recorded, change, check, create, recorded_creations, sentences

from seamark.errors import Invalid, Object
from seamark.kinds.kind import Kind
from seamark.kinds.policy.budget import POD_DISRUPTION_BUDGET
from seamark.kinds.policy.limit_range import LIMIT_RANGE
from seamark.kinds.policy.priority_class import PRIORITY_CLASS, SYSTEM_CLASSES
from seamark.kinds.policy.quota import RESOURCE_QUOTA


@pytest.mark.parametrize(
    "recorded",
    recorded_creations("resourcequotas", "limitranges", "poddisruptionbudgets", "priorityclasses"),
    ids=str,
)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def refusals(kind: Kind, **fields: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        create(kind, {"metadata": {"name": "x"}, **fields})
    return sentences(refused.value)


def changed(kind: Kind, fields: Object, later: Object, subresource: str = "") -> Object:
    old = create(kind, {"metadata": {"name": "x"}, **fields})
    return change(kind, old, {"metadata": {"name": "x"}, **later}, subresource)


# --- quotas -------------------------------------------------------------------------------------------------


def scoped(*expressions: Object, hard: Object | None = None) -> Object:
    return {"hard": hard or {"pods": "1"}, "scopeSelector": {"matchExpressions": list(expressions)}}


def test_a_quota_may_select_by_priority_class() -> None:
    spec = scoped({"scopeName": "PriorityClass", "operator": "In", "values": ["high"]})
    assert create(RESOURCE_QUOTA, {"metadata": {"name": "x"}, "spec": spec})["spec"] == spec


@pytest.mark.parametrize(
    ("expression", "hard", "expected"),
    [
        ({"scopeName": "X", "operator": "Exists"}, None, ['scopeName: Invalid value: "X": unsupported scope']),
        (
            {"scopeName": "PriorityClass", "operator": "In"},
            None,
            [
                "values: Required value: must be at least one value when `operator` is 'In' or 'NotIn' for scope "
                "selector"
            ],
        ),
        (
            {"scopeName": "PriorityClass", "operator": "Exists", "values": ["a"]},
            None,
            [
                "values: Invalid value: [\"a\"]: must be no value when `operator` is 'Exist' or 'DoesNotExist' for "
                "scope selector"
            ],
        ),
        (
            {"scopeName": "PriorityClass", "operator": "Near"},
            None,
            ['operator: Invalid value: "Near": not a valid selector operator'],
        ),
    ],
)
def test_scope_selectors_that_are_refused(expression: Object, hard: Object | None, expected: list[str]) -> None:
    path = "spec.scopeSelector.matchExpressions"
    assert refusals(RESOURCE_QUOTA, spec=scoped(expression, hard=hard)) == [f"{path}.{text}" for text in expected]


def test_a_scope_without_values_only_exists() -> None:
    found = refusals(RESOURCE_QUOTA, spec=scoped({"scopeName": "BestEffort", "operator": "In", "values": ["a"]}))
    assert len(found) == 1
    assert found[0].startswith("spec.scopeSelector.matchExpressions.operator: Invalid value: \"In\": must be 'Exists'")


def test_messages_about_scopes_quote_what_go_holds() -> None:
    claims = {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["a"]}
    assert refusals(RESOURCE_QUOTA, spec=scoped(claims)) == [
        'spec.scopeSelector.matchExpressions: Invalid value: {"MatchExpressions":[{"ScopeName":"VolumeAttributesClass",'
        '"Operator":"In","Values":["a"]}]}: unsupported scope applied to resource'
    ]
    both = [{"scopeName": scope, "operator": "Exists"} for scope in ("BestEffort", "NotBestEffort")]
    assert refusals(RESOURCE_QUOTA, spec=scoped(*both)) == [
        "spec.scopeSelector.matchExpressions: Invalid value: null: conflicting scopes"
    ]


def test_scopes_of_claims_do_not_count_pods() -> None:
    assert create(
        RESOURCE_QUOTA,
        {
            "metadata": {"name": "x"},
            "spec": {"hard": {"requests.storage": "1Gi"}, "scopes": ["VolumeAttributesClass"]},
        },
    )
    found = refusals(RESOURCE_QUOTA, spec={"hard": {"pods": "1"}, "scopes": ["VolumeAttributesClass"]})
    assert found == ['spec.scopes: Invalid value: ["VolumeAttributesClass"]: unsupported scope applied to resource']


def test_the_row_of_a_quota() -> None:
    spec = {"hard": {"pods": "5", "limits.cpu": "2"}}
    status = {"hard": spec["hard"], "used": {"pods": "1", "limits.cpu": "500m"}}
    quota = changed(RESOURCE_QUOTA, {"spec": spec}, {"status": status}, "status")
    assert RESOURCE_QUOTA.row(quota, 0.0)[:3] == ["x", "pods: 1/5", "limits.cpu: 500m/2"]


# --- limit ranges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (
            {"type": "Container", "min": {"cpu": "1"}, "max": {"cpu": "2"}, "maxLimitRequestRatio": {"cpu": "3"}},
            ['maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000'],
        ),
        (
            {"type": "Container", "max": {"storage": "1Gi"}},
            [
                'max[storage]: Invalid value: "storage": must be a standard resource for containers',
                'default[storage]: Invalid value: "storage": must be a standard resource for containers',
                'defaultRequest[storage]: Invalid value: "storage": must be a standard resource for containers',
            ],
        ),
        (
            {"type": "Container", "default": {"a.b/gpu": "2"}, "defaultRequest": {"a.b/gpu": "1"}},
            [
                'defaultRequest[a.b/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in '
                "a.b/gpu"
            ],
        ),
        (
            {"type": "Pod", "defaultRequest": {"cpu": "1"}},
            ["defaultRequest: Forbidden: may not be specified when `type` is 'Pod'"],
        ),
    ],
)
def test_limit_ranges_that_are_refused(item: Object, expected: list[str]) -> None:
    assert refusals(LIMIT_RANGE, spec={"limits": [item]}) == [f"spec.limits[0].{text}" for text in expected]


# --- priorities ---------------------------------------------------------------------------------------------


def test_the_classes_of_the_system_are_valid_and_never_the_default() -> None:
    for system in SYSTEM_CLASSES:
        assert create(PRIORITY_CLASS, system)["preemptionPolicy"] == "PreemptLowerPriority"
        with pytest.raises(Invalid, match=r"globalDefault of system-.* PriorityClass must be false"):
            create(PRIORITY_CLASS, {**system, "globalDefault": True})


def test_what_may_change_in_a_priority_class() -> None:
    made = changed(PRIORITY_CLASS, {"value": 5}, {"value": 5, "globalDefault": True, "description": "d"})
    assert (made["globalDefault"], made["metadata"]["generation"]) == (True, 1)
    with pytest.raises(Invalid):
        changed(PRIORITY_CLASS, {"value": 5}, {"value": 6})


# --- budgets ------------------------------------------------------------------------------------------------


def test_the_counts_of_a_budget_are_not_negative() -> None:
    status = {"currentHealthy": -1, "expectedPods": -2}
    with pytest.raises(Invalid) as refused:
        changed(POD_DISRUPTION_BUDGET, {"spec": {"minAvailable": 1}}, {"status": status}, "status")
    assert sentences(refused.value) == [
        "status.currentHealthy: Invalid value: -1: must be greater than or equal to 0",
        "status.expectedPods: Invalid value: -2: must be greater than or equal to 0",
    ]


def test_the_row_of_a_budget() -> None:
    made = create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "x"}, "spec": {"maxUnavailable": "10%"}})
    assert POD_DISRUPTION_BUDGET.row(made, 0.0)[:4] == ["x", "N/A", "10%", 0]


OLD_LABEL = "pdb.kubernetes.io/deprecated-v1beta1-empty-selector-match"
NONE = {"matchExpressions": [{"key": OLD_LABEL, "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (NONE, NONE),
        ({"matchExpressions": [{"key": OLD_LABEL, "operator": "DoesNotExist"}]}, {}),
        ({"matchLabels": {"a": "b"}, **NONE}, {"matchLabels": {"a": "b"}}),
        ({}, {}),
    ],
)
def test_the_old_label_of_a_budget_is_only_kept_alone(sent: Object, kept: Object) -> None:
    made = create(POD_DISRUPTION_BUDGET, {"metadata": {"name": "x"}, "spec": {"selector": sent}})
    assert made["spec"]["selector"] == kept
