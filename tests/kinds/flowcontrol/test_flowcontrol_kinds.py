"""FlowSchema and PriorityLevelConfiguration."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from refusing import change_refusals, made, patched, refusals

from seamark.errors import Object
from seamark.kinds.flowcontrol import defaults
from seamark.kinds.flowcontrol.flowschema import FLOW_SCHEMA
from seamark.kinds.flowcontrol.prioritylevel import PRIORITY_LEVEL

RULE = {
    "subjects": [{"kind": "User", "user": {"name": "u"}}],
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}],
}


def schema(**more: Any) -> Object:
    return {"priorityLevelConfiguration": {"name": "l"}, "rules": [RULE], **more}


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"matchingPrecedence": -1}, ["matchingPrecedence: Invalid value: -1: must be a positive value"]),
        ({"matchingPrecedence": 10001}, ["matchingPrecedence: Invalid value: 10001: must not be greater than 10000"]),
        ({"matchingPrecedence": 1}, ["matchingPrecedence: Invalid value: 1: only the schema named 'exempt'"]),
        ({"distinguisherMethod": {"type": "Odd"}}, ['distinguisherMethod.type: Unsupported value: {"Type":"Odd"}']),
        ({"priorityLevelConfiguration": {}}, ["priorityLevelConfiguration.name: Required value: must reference"]),
        ({"priorityLevelConfiguration": {"name": "A_"}}, ['priorityLevelConfiguration.name: Invalid value: "A_"']),
        ({"rules": [{}]}, ["rules[0].subjects: Required value", "rules[0]: Required value: at least one of"]),
        (
            {"rules": [{"subjects": [{"kind": "Odd"}, {"kind": "Group"}], "nonResourceRules": [{"verbs": ["*"]}]}]},
            [
                "rules[0].subjects[0].kind: Unsupported value",
                "rules[0].subjects[1].group: Required value: group is required when subject kind is 'Group'",
                "rules[0].nonResourceRules[0].nonResourceURLs: Required value",
            ],
        ),
    ],
)
def test_schemas_that_are_refused(more: Object, wrong: list[str]) -> None:
    found = refusals(FLOW_SCHEMA, spec=schema(**more))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.{start}"), sentence


@pytest.mark.parametrize(
    ("subject", "wrong"),
    [
        ({"kind": "User", "user": {}, "group": {"name": "g"}},
         ["user.name: Required value", "group: Forbidden: group is forbidden when subject kind is not 'Group'"]),
        ({"kind": "ServiceAccount", "serviceAccount": {"name": "A_"}},
         ['serviceAccount.name: Invalid value: "A_": a lowercase',
          "serviceAccount.namespace: Required value: must specify namespace for service account"]),
        ({"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "A_"}},
         ['serviceAccount.namespace: Invalid value: "A_": a lowercase']),
    ],
)  # fmt: skip
def test_subjects_that_are_refused(subject: Object, wrong: list[str]) -> None:
    found = refusals(FLOW_SCHEMA, spec=schema(rules=[{**RULE, "subjects": [subject]}]))
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.rules[0].subjects[0].{start}"), sentence


def test_rules_that_are_refused() -> None:
    resources = {"verbs": ["*", "get"], "apiGroups": ["*", "a"], "resources": [], "namespaces": ["A_"]}
    urls = {"verbs": ["zap"], "nonResourceURLs": ["x", "/a b", "/a//b", "/*b", "", "/", "/a/*"]}
    rule = {**RULE, "resourceRules": [resources], "nonResourceRules": [urls]}
    start = "spec.rules[0]."
    found = [text.removeprefix(start) for text in refusals(FLOW_SCHEMA, spec=schema(rules=[rule]))]
    assert found[:3] == [
        'resourceRules[0].verbs: Invalid value: ["*","get"]: if \'*\' is present, must not specify other verbs',
        'resourceRules[0].apiGroups: Invalid value: ["*","a"]: if \'*\' is present, must not specify other api groups',
        "resourceRules[0].resources: Required value: resource rules must supply at least one resource",
    ]
    each = "each member of this list must be '*' or a DNS-1123 label; a lowercase"
    assert found[3].startswith(f'resourceRules[0].namespaces[0]: Invalid value: "A_": {each}')
    assert found[4].startswith('nonResourceRules[0].verbs: Unsupported value: ["zap"]: supported values: "create",')
    assert [text.rpartition(": ")[2] for text in found[5:]] == [
        "must start with slash",
        "must not contain white-space",
        "must not contain double slash",
        "wildcard can only do suffix matching",
        "must not be empty",
    ]
    bare = {"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"]}
    assert refusals(FLOW_SCHEMA, spec=schema(rules=[{**RULE, "resourceRules": [bare]}])) == [
        f"{start}resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply "
        "at least one namespace"
    ]
    assert made(FLOW_SCHEMA, spec=schema(rules=[{**RULE, "resourceRules": [{**bare, "clusterScope": True}]}]))


def test_conditions_have_types_of_their_own() -> None:
    conditions = [{"type": "Dangling"}, {"type": "Dangling"}, {"type": ""}]
    old = made(FLOW_SCHEMA, spec=schema())
    assert change_refusals(FLOW_SCHEMA, old, {"status": {"conditions": conditions}}, "status") == [
        'status.conditions[1].type: Duplicate value: "Dangling"',
        "status.conditions[2].type: Required value: must not be empty",
    ]


def test_a_schema() -> None:
    obj = made(FLOW_SCHEMA, spec=schema())
    assert FLOW_SCHEMA.row(obj, 0.0)[:4] == ["x", "l", 1000, "<none>"]
    assert patched(FLOW_SCHEMA, obj, {"spec": {"matchingPrecedence": 5}})["metadata"]["generation"] == 2


def limited(**more: Any) -> Object:
    return {"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": {}}, **more}}


def test_what_a_level_is_filled_up_with() -> None:
    obj = made(PRIORITY_LEVEL, spec=limited())
    assert obj["spec"]["limited"]["limitResponse"]["queuing"] == {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
    assert PRIORITY_LEVEL.row(obj, 0.0)[1:6] == ["Limited", 30, 64, 8, 50]
    exempt = made(PRIORITY_LEVEL, metadata={"name": "exempt"}, spec={"type": "Exempt", "exempt": {}})
    assert exempt["spec"]["exempt"] == {"nominalConcurrencyShares": 0, "lendablePercent": 0}
    assert PRIORITY_LEVEL.row(exempt, 0.0)[1:6] == ["Exempt", *["<none>"] * 4]


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"type": "Odd"}, ['type: Unsupported value: "Odd": supported values: "Exempt", "Limited"']),
        (
            {**limited(), "type": "Exempt", "exempt": {"lendablePercent": 101}},
            [
                "type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'",
                "limited: Forbidden: must be nil if the type is not Limited",
                "exempt.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
            ],
        ),
        ({"type": "Limited", "exempt": {}}, ["exempt: Forbidden", "limited: Required value: must not be empty"]),
        (
            limited(
                nominalConcurrencyShares=-1,
                lendablePercent=101,
                borrowingLimitPercent=-1,
                limitResponse={"type": "Odd"},
            ),
            [
                "limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer",
                "limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive",
                "limited.borrowingLimitPercent: Invalid value: -1",
                'limited.limitResponse.type: Unsupported value: "Odd"',
            ],
        ),
        (limited(limitResponse={"type": "Reject", "queuing": {}}), ["limited.limitResponse.queuing: Forbidden"]),
        (limited(limitResponse={"type": "Queue"}), ["limited.limitResponse.queuing: Required value"]),
        (
            limited(limitResponse={"type": "Queue", "queuing": {"queues": 4, "handSize": 5, "queueLengthLimit": -1}}),
            [
                "limited.limitResponse.queuing.queueLengthLimit: Invalid value: -1: must be positive",
                "limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)",
            ],
        ),
        (
            limited(limitResponse={"type": "Queue", "queuing": {"queues": 128, "handSize": 9}}),
            [
                "limited.limitResponse.queuing.handSize: Invalid value: 9: required entropy bits of deckSize 128 and "
                "handSize 9 should not be greater than 60"
            ],
        ),
    ],
)
def test_levels_that_are_refused(spec: Object, wrong: list[str]) -> None:
    found = refusals(PRIORITY_LEVEL, spec=spec)
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.{start}"), sentence


@pytest.mark.parametrize(("queues", "hand"), [(1 << 20, 3), (10_000_000, 2), (1, 1)])
def test_a_hand_may_need_as_many_bits_as_a_flow_has(queues: int, hand: int) -> None:
    queuing = {"queues": queues, "handSize": hand}
    assert made(PRIORITY_LEVEL, spec=limited(limitResponse={"type": "Queue", "queuing": queuing}))


def test_the_mark_of_zero_shares_in_v1beta3_is_not_for_v1() -> None:
    mark = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
    assert refusals(PRIORITY_LEVEL, metadata={"annotations": {mark: ""}}, spec=limited()) == [
        f"metadata.annotations: Forbidden: annotation '{mark}' is forbidden"
    ]


# --- what every cluster has ------------------------------------------------------------------------


@pytest.mark.parametrize("obj", defaults.flow_schemas(), ids=lambda obj: obj["metadata"]["name"])
def test_every_schema_of_ours_is_valid(obj: Object) -> None:
    assert made(FLOW_SCHEMA, **copy.deepcopy(obj))["spec"] == obj["spec"]


@pytest.mark.parametrize("obj", defaults.priority_levels(), ids=lambda obj: obj["metadata"]["name"])
def test_every_level_of_ours_is_valid(obj: Object) -> None:
    assert made(PRIORITY_LEVEL, **copy.deepcopy(obj))


@pytest.mark.parametrize("name", ["exempt", "catch-all"])
@pytest.mark.parametrize(
    "patch",
    [
        {"matchingPrecedence": 7},
        {"priorityLevelConfiguration": {"name": "workload-low"}},
        {"distinguisherMethod": {"type": "ByNamespace"}},
        {"rules": [RULE]},
    ],
)
def test_the_schemas_without_which_a_request_had_none_stay_as_they_are(name: str, patch: Object) -> None:
    old = made(FLOW_SCHEMA, **_ours(defaults.flow_schemas(), name))
    [sentence] = change_refusals(FLOW_SCHEMA, old, {"spec": patch})
    assert sentence.startswith('spec: Invalid value: {"PriorityLevelConfiguration":{"Name":')
    assert sentence.endswith(f"spec of '{name}' must equal the fixed value")
    assert patched(FLOW_SCHEMA, old, {"metadata": {"labels": {"a": "b"}}})


def test_the_last_level_stays_as_it_is() -> None:
    old = made(PRIORITY_LEVEL, **_ours(defaults.priority_levels(), "catch-all"))
    assert change_refusals(PRIORITY_LEVEL, old, {"spec": {"limited": {"nominalConcurrencyShares": 6}}}) == [
        'spec: Invalid value: {"Type":"Limited","Limited":{"NominalConcurrencyShares":6,'
        '"LimitResponse":{"Type":"Reject","Queuing":null},"LendablePercent":0,"BorrowingLimitPercent":null},'
        "\"Exempt\":null}: spec of 'catch-all' must equal the fixed value"
    ]


def test_of_the_exempt_level_only_the_shares_can_be_set() -> None:
    old = made(PRIORITY_LEVEL, **_ours(defaults.priority_levels(), "exempt"))
    shares = {"nominalConcurrencyShares": 10, "lendablePercent": 10}
    assert patched(PRIORITY_LEVEL, old, {"spec": {"exempt": shares}})["spec"]["exempt"] == shares
    found = change_refusals(PRIORITY_LEVEL, old, {"spec": limited()})
    assert [sentence.rpartition(": ")[2] for sentence in found] == [
        "must be 'Exempt' if and only if `name` is 'exempt'",
        "must be nil if the type is Limited",
        "spec of 'exempt' except the 'spec.exempt' field must equal the fixed value",
    ]


def _ours(objects: list[Object], name: str) -> Object:
    return next(obj for obj in objects if obj["metadata"]["name"] == name)
