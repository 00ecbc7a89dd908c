"""Job as an object: what it becomes, what is refused, and what may change."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from kind_rules import Recorded, change, check, create, recorded_creations, sentences

from seamark.errors import Invalid, Object
from seamark.kinds.batch.job import JOB

POD: Object = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}
INDEXED = {"completionMode": "Indexed", "completions": 10, "parallelism": 10}
CODES = {"operator": "In", "values": [1]}
NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"


RECORDED = [each for each in recorded_creations("jobs", "cronjobs") if each.code == 201 or "message" in each.answer]


@pytest.mark.parametrize("recorded", RECORDED, ids=str)
def test_recorded(recorded: Recorded) -> None:
    body = {**recorded.body, "metadata": {**recorded.body["metadata"], "uid": "u"}}
    answer = json.loads(json.dumps(recorded.answer).replace("<uid-1>", "u"))
    check(recorded._replace(body=body, answer=answer))


def job(name: str = "j", **spec: Any) -> Object:
    return {"metadata": {"name": name, "uid": "u"}, "spec": {"template": {"spec": POD}, **spec}}


def refusals(**spec: Any) -> list[str]:
    with pytest.raises(Invalid) as refused:
        create(JOB, job(**spec))
    return [sentence.removeprefix("spec.") for sentence in sentences(refused.value)]


def test_labels_of_the_user_are_not_added_to() -> None:
    made = create(JOB, {**job(), "metadata": {"name": "j", "uid": "u", "labels": {"mine": "x"}}})
    assert made["metadata"]["labels"] == {"mine": "x"}
    assert made["spec"]["template"]["metadata"]["labels"]["job-name"] == "j"


def test_labels_that_contradict_the_generated_ones_are_refused() -> None:
    said = refusals(template={"metadata": {"labels": {"job-name": "other"}}, "spec": POD})
    assert [sentence.partition(":")[0] for sentence in said] == ["template.metadata.labels[job-name]"]
    assert said[0].endswith("must be 'j'")
    uid = "batch.kubernetes.io/controller-uid"
    said = refusals(template={"metadata": {"labels": {uid: "other"}}, "spec": POD})
    fields = [f"template.metadata.labels[{uid}]", "template.metadata.labels"]
    assert [sentence.partition(":")[0] for sentence in said] == fields


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"managedBy": ""}, ["managedBy: Required value"]),
        (
            {"managedBy": "me"},
            ['managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")'],
        ),
        ({"managedBy": "acme.io/" + "x" * 60}, ["managedBy: Too long: may not be more than 63 bytes"]),
        (
            {"completionMode": "Indexed", "parallelism": 1},
            ["completions: Required value: when completion mode is Indexed"],
        ),
        (
            {**INDEXED, "completions": 100_001, "parallelism": 20_000, "backoffLimitPerIndex": 1},
            [
                "maxFailedIndexes: Required value: must be specified when completions is above 100000",
                "parallelism: Invalid value: 20000: must be less than or equal to 10000 when completions are above "
                "100000 "
                "and used with backoff limit per index",
            ],
        ),
        (
            {"successPolicy": {"rules": [{"succeededCount": 1}]}},
            [
                'successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: requires '
                "indexed completion mode"
            ],
        ),
        (
            {**INDEXED, "successPolicy": {"rules": []}},
            [
                "successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is "
                "specified"
            ],
        ),
        (
            {**INDEXED, "successPolicy": {"rules": [{}, {"succeededCount": 11}]}},
            [
                "successPolicy.rules[0]: Required value: at least one of succeededCount or succeededIndexes must be "
                "specified",
                "successPolicy.rules[1].succeededCount: Invalid value: 11: must be less than or equal to 10 (the "
                "number of "
                "specified completions)",
            ],
        ),
        (
            {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "1-2", "succeededCount": 3}]}},
            [
                "successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the "
                "number of "
                "indexes in the specified succeededIndexes field)"
            ],
        ),
        (
            {**INDEXED, "successPolicy": {"rules": [{"succeededIndexes": "3,2"}]}},
            [
                'successPolicy.rules[0].succeededIndexes: Invalid value: "3,2": error parsing succeededIndexes: '
                "non-increasing order, previous: 3, current: 2"
            ],
        ),
        (
            {"podFailurePolicy": {"rules": [{"action": "", "onExitCodes": CODES}]}},
            [
                'podFailurePolicy.rules[0].action: Required value: valid values: ["Count" "FailIndex" "FailJob" '
                '"Ignore"]',
            ],
        ),
        (
            {
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onExitCodes": {"operator": "Is", "values": [1, 1]}}]
                }
            },
            [
                'podFailurePolicy.rules[0].onExitCodes.operator: Unsupported value: "Is": supported values: "In", '
                '"NotIn"',
                "podFailurePolicy.rules[0].onExitCodes.values[1]: Duplicate value: 1",
            ],
        ),
        (
            {
                "podFailurePolicy": {
                    "rules": [
                        {"action": "Count", "onExitCodes": CODES, "onPodConditions": [{"type": "X", "status": "y"}]}
                    ]
                }
            },
            [
                'podFailurePolicy.rules[0].onPodConditions[0].status: Unsupported value: "y": supported values: '
                '"False", '
                '"True", "Unknown"',
                "podFailurePolicy.rules[0]: Invalid value: specifying both OnExitCodes and OnPodConditions is not "
                "supported",
            ],
        ),
        (
            {"podReplacementPolicy": "Never"},
            ['podReplacementPolicy: Unsupported value: "Never": supported values: "Failed", "TerminatingOrFailed"'],
        ),
    ],
)
def test_refusals(spec: Object, expected: list[str]) -> None:
    assert refusals(**spec) == expected


def test_the_hostname_of_the_last_pod_has_to_be_valid() -> None:
    with pytest.raises(Invalid) as refused:
        create(JOB, job(name="x" * 62, **INDEXED))
    assert sentences(refused.value) == [
        f'metadata.name: Invalid value: "{"x" * 62}": will not able to create pod with invalid DNS label: {"x" * 62}-9'
    ]


def test_warnings() -> None:
    [surprising] = JOB.warnings(create(JOB, job(name="a.b")), None)
    assert surprising.startswith("metadata.name: this is used in Pod names and hostnames")
    made = create(JOB, job(completionMode="Indexed", completions=200_000, parallelism=20_000))
    [many] = JOB.warnings(made, None)
    assert many.startswith("In Indexed Jobs with a number of completions higher than 10^5")
    assert JOB.warnings(made, made) == []


# --- changes ---------------------------------------------------------------------------------------


def changes(before: Object, **spec: Any) -> list[str]:
    after = copy.deepcopy(before)
    after["spec"] |= spec
    try:
        change(JOB, before, after)
    except Invalid as error:
        return [sentence.removeprefix("spec.").partition(":")[0] for sentence in sentences(error)]
    return []


def test_an_indexed_job_grows_with_its_parallelism() -> None:
    made = create(JOB, job(**INDEXED))
    assert changes(made, completions=5, parallelism=5) == []
    assert changes(made, completions=5) == ["completions"]


def test_policies_that_may_not_change_are_shown_as_go_prints_them() -> None:
    before = create(JOB, job(**INDEXED))
    after = copy.deepcopy(before)
    after["spec"]["podFailurePolicy"] = {"rules": [{"action": "FailJob", "onExitCodes": CODES}]}
    after["spec"]["podReplacementPolicy"] = "Failed"
    after["spec"]["successPolicy"] = {"rules": [{"succeededCount": 1}]}
    with pytest.raises(Invalid) as refused:
        change(JOB, before, after)
    rule = (
        '{"Action":"FailJob","OnExitCodes":{"ContainerName":null,"Operator":"In","Values":[1]},"OnPodConditions":null}'
    )
    assert sentences(refused.value) == [
        f'spec.podFailurePolicy: Invalid value: {{"Rules":[{rule}]}}: field is immutable',
        'spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: field is '
        "immutable",
    ]


def test_the_pods_of_a_suspended_job_may_be_placed_differently() -> None:
    suspended, running = create(JOB, job(suspend=True)), create(JOB, job())
    template = copy.deepcopy(suspended["spec"]["template"])
    template["spec"] |= {"nodeSelector": {"a": "b"}, "tolerations": [{"key": "k", "operator": "Exists"}]}
    node = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": []}]}}
    template["spec"]["affinity"] = {"nodeAffinity": {**node}}
    template["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
    template["metadata"]["annotations"] = {"x": "y"}
    assert changes(suspended, template=template) == []
    assert changes(running, template=template) == ["template.metadata", "template.spec"]
    template["spec"]["containers"][0]["image"] = "other"
    assert changes(suspended, template=template) == ["template.spec"]


# --- status ----------------------------------------------------------------------------------------


def status_refusals(before: Object, after: Object, **spec: Any) -> list[str]:
    old = create(JOB, job(**spec))
    old["status"] = before
    try:
        change(JOB, old, {**copy.deepcopy(old), "status": after}, "status")
    except Invalid as error:
        return [sentence.removeprefix("status.") for sentence in sentences(error)]
    return []


def true(*types: str) -> list[Object]:
    return [{"type": each, "status": "True"} for each in types]


DONE = {"startTime": NOW, "completionTime": LATER, "conditions": true("SuccessCriteriaMet", "Complete")}
FAILED = {"startTime": NOW, "conditions": true("FailureTarget", "Failed")}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, DONE, []),
        ({}, FAILED, []),
        ({}, {**DONE, "startTime": None}, ["startTime: Required value: startTime is required for finished job"]),
        (
            {},
            {**FAILED, "terminating": 1},
            ["terminating: Invalid value: 1: terminating>0 is invalid for finished job"],
        ),
        (
            {},
            {**FAILED, "conditions": true("Failed")},
            ["conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition"],
        ),
        (
            {},
            {**DONE, "conditions": true("SuccessCriteriaMet", "Complete", "FailureTarget", "Failed")},
            [
                "conditions: Invalid value: cannot set Complete=True and Failed=true conditions",
                "conditions: Invalid value: cannot set Complete=True and FailureTarget=true conditions",
                "conditions: Invalid value: cannot set Failed=True and SuccessCriteriaMet=true conditions",
                "conditions: Invalid value: cannot set FailureTarget=True and SuccessCriteriaMet=true conditions",
            ],
        ),
        (
            {},
            {"startTime": NOW, "completionTime": LATER},
            [
                f'completionTime: Invalid value: "{LATER}": cannot set completionTime when there is no Complete=True '
                "condition"
            ],
        ),
        (
            {},
            {**DONE, "startTime": LATER, "completionTime": NOW},
            [f'completionTime: Invalid value: "{NOW}": completionTime cannot be set before startTime'],
        ),
        (
            {},
            {**DONE, "uncountedTerminatedPods": {"failed": ["a"]}},
            [
                'uncountedTerminatedPods: Invalid value: {"Succeeded":null,"Failed":["a"]}: uncountedTerminatedPods '
                "needs to be empty for finished job"
            ],
        ),
        (
            {},
            {"uncountedTerminatedPods": {"succeeded": ["a", ""], "failed": ["a"]}},
            [
                'uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
                'uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
            ],
        ),
        ({}, {"ready": 2, "active": 1}, ["ready: Invalid value: 2: cannot set more ready pods than active"]),
        (
            {},
            {"completedIndexes": "1"},
            [
                'completedIndexes: Invalid value: "1": error parsing completedIndexes: too large index: "1"',
                'completedIndexes: Invalid value: "1": cannot set non-empty completedIndexes when non-indexed '
                "completion "
                "mode",
            ],
        ),
        (
            {},
            {"failedIndexes": ""},
            ['failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null'],
        ),
        ({"failed": 2}, {"failed": 1}, ["failed: Invalid value: 1: cannot decrease the failed counter"]),
        ({"succeeded": 2}, {"succeeded": 1}, ["succeeded: Invalid value: 1: cannot decrease the succeeded counter"]),
        (
            FAILED,
            {"startTime": NOW},
            [
                "conditions: Invalid value: cannot disable the terminal Failed=True condition",
                "conditions: Invalid value: cannot disable the terminal FailureTarget=True condition",
            ],
        ),
        ({"startTime": NOW}, {}, ["startTime: Required value: startTime cannot be removed for unsuspended job"]),
        (
            DONE,
            {**DONE, "completionTime": "2026-01-01T02:00:00Z"},
            ['completionTime: Invalid value: "2026-01-01T02:00:00Z": field is immutable'],
        ),
        (
            {"conditions": true("SuccessCriteriaMet")},
            {},
            ["conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition"],
        ),
    ],
)
def test_status(before: Object, after: Object, expected: list[str]) -> None:
    assert status_refusals(before, after) == expected


def test_indexes_in_the_status() -> None:
    indexed = {**INDEXED, "backoffLimitPerIndex": 1}
    assert status_refusals({}, {"completedIndexes": "0,2-4", "failedIndexes": "1,5"}, **indexed) == []
    assert status_refusals({}, {"completedIndexes": "0,2-4", "failedIndexes": "3-5"}, **indexed) == [
        'failedIndexes: Invalid value: "3-5": failedIndexes and completedIndexes overlap at index 3'
    ]
    assert status_refusals({"succeeded": 5}, {"succeeded": 3}, **indexed) == [], "it was scaled down"


def test_row() -> None:
    made = create(JOB, job(parallelism=3, completions=None))
    now = 1767225700.0  # 100 s after NOW
    assert JOB.row(made, now)[1:4] == ["Running", "0/1 of 3", ""]
    made["status"] = {"startTime": NOW, "succeeded": 1}
    assert JOB.row(made, now)[1:4] == ["Running", "1/1 of 3", "100s"]
    made["status"] = {**DONE, "succeeded": 1}
    assert JOB.row(made, now)[1:4] == ["Complete", "1/1 of 3", "60m"]
    made["status"] = {"conditions": true("Suspended")}
    assert JOB.row(made, now)[1] == "Suspended"
    made["metadata"]["deletionTimestamp"] = NOW
    assert JOB.row(made, now)[1] == "Terminating"
    assert JOB.fields(made) == {"status.successful": "0"}
