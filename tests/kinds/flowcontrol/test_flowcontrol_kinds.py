"""FlowSchema and PriorityLevelConfiguration."""

from __future__ import annotations

from typing import Any

import pytest
from refusing import made, patched, refusals

from seamark.errors import Object
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
        ({"distinguisherMethod": {"type": "Odd"}}, ['distinguisherMethod.type: Unsupported value: "Odd"']),
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
    exempt = made(PRIORITY_LEVEL, spec={"type": "Exempt", "exempt": {}})
    assert exempt["spec"]["exempt"] == {"nominalConcurrencyShares": 0, "lendablePercent": 0}


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"type": "Odd"}, ['type: Unsupported value: "Odd": supported values: "Exempt", "Limited"']),
        ({**limited(), "type": "Exempt"}, ["limited: Forbidden: must be nil if the type is not Limited"]),
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
    ],
)
def test_levels_that_are_refused(spec: Object, wrong: list[str]) -> None:
    found = refusals(PRIORITY_LEVEL, spec=spec)
    assert len(found) == len(wrong), found
    for sentence, start in zip(found, wrong, strict=True):
        assert sentence.startswith(f"spec.{start}"), sentence
