"""Role, ClusterRole and their bindings as objects, and what aggregation gathers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from kind_rules import Recorded, change, check, create, recorded_creations, sentences

from seamark.errors import Invalid, Object
from seamark.kinds.kind import Kind
from seamark.kinds.rbac.aggregation import gathered
from seamark.kinds.rbac.binding import CLUSTER_ROLE_BINDING, ROLE_BINDING
from seamark.kinds.rbac.role import CLUSTER_ROLE, ROLE


@pytest.mark.parametrize(
    "recorded", recorded_creations("roles", "clusterroles", "rolebindings", "clusterrolebindings"), ids=str
)
def test_recorded(recorded: Recorded) -> None:
    check(recorded)


def refusals(kind: Kind, **fields: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        create(kind, {"metadata": {"name": "x"}, **fields})
    return sentences(refused.value)


def test_missing_verbs_are_told_last() -> None:
    assert refusals(ROLE, rules=[{"resources": ["pods"]}, {"apiGroups": [""]}]) == [
        "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
        "rules[1].resources: Required value: resource rules must supply at least one resource",
        "rules[0].verbs: Required value",
        "rules[1].verbs: Required value",
    ]


def test_a_cluster_role_is_about_resources_or_urls() -> None:
    rule = {"nonResourceURLs": ["/x"], "resourceNames": ["y"], "verbs": ["get"]}
    assert refusals(CLUSTER_ROLE, rules=[rule]) == [
        'rules[0].nonResourceURLs: Invalid value: ["/x"]: rules cannot apply to both regular resources and '
        "non-resource URLs"
    ]


def test_a_cluster_role_binding_binds_only_cluster_roles_and_needs_namespaces_of_accounts() -> None:
    accounts = [{"kind": "ServiceAccount", "name": "a"}]
    assert refusals(CLUSTER_ROLE_BINDING, roleRef={"kind": "Role", "name": "r"}, subjects=accounts) == [
        'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        "subjects[0].namespace: Required value",
    ]


def test_the_role_of_a_binding_stays() -> None:
    old = create(ROLE_BINDING, {"metadata": {"name": "x"}, "roleRef": {"kind": "Role", "name": "r"}})
    with pytest.raises(Invalid) as refused:
        change(ROLE_BINDING, old, {"metadata": {"name": "x"}, "roleRef": {"kind": "Role", "name": "s"}})
    assert sentences(refused.value) == [
        'roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"s"}: field is immutable'
    ]


def test_a_row_names_the_subjects_by_kind() -> None:
    users = [{"kind": "User", "name": name} for name in ("a", "b")]
    subjects = [*users, {"kind": "Group", "name": "g"}, {"kind": "ServiceAccount", "name": "s", "namespace": "n"}]
    made = create(
        ROLE_BINDING,
        {"metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": subjects},
    )
    row = ROLE_BINDING.row(made, 2147483647.0)
    assert (row[:2], row[3:]) == (["x", "ClusterRole/r"], ["a, b", "g", "n/s"])


class Labelled(NamedTuple):
    name: str
    labels: Mapping[str, str]
    rules: list[Object]


def test_an_aggregated_role_gathers_each_rule_once_by_selector_and_name() -> None:
    get, list_ = {"verbs": ["get"]}, {"verbs": ["list"]}
    roles = [
        Labelled("b", {"to": "x"}, [list_, get]),
        Labelled("a", {"to": "x"}, [get]),
        Labelled("c", {"to": "y"}, [{"verbs": ["watch"]}]),
        Labelled("all", {"to": "x"}, [{"verbs": ["*"]}]),
    ]
    assert gathered("all", [{"matchLabels": {"to": "x"}}], roles) == [get, list_]
    both = [{"matchLabels": {"to": "y"}}, {"matchLabels": {"to": "x"}}]
    assert gathered("all", both, roles) == [{"verbs": ["watch"]}, get, list_]
