"""The ConversionReview, and what an answer must satisfy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from seamark.api.conversion.review import answered, checked, review
from seamark.api.webhooks.review import LONGEST_SHOWN, Refused
from seamark.kinds.language.scalars import DEEPEST

HEAD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
ORIGINAL = {
    "apiVersion": "example.com/v1",
    "kind": "Widget",
    "metadata": {"name": "a", "namespace": "n", "uid": "1", "labels": {"x": "y"}, "generation": 3},
    "spec": {"size": 1},
}
CONVERTED = {**ORIGINAL, "apiVersion": "example.com/v2"}


def test_a_review_names_the_objects_and_the_version() -> None:
    sent = json.loads(review([ORIGINAL], wanted="example.com/v2", version="v1", uid="u"))
    assert sent == {
        **HEAD,
        "request": {"uid": "u", "desiredAPIVersion": "example.com/v2", "objects": [ORIGINAL]},
        "response": {"uid": "", "convertedObjects": None, "result": {"metadata": {}}},
    }


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ({}, "no response provided"),
        ({"response": {"uid": "x"}}, 'expected response.uid="u", got "x"'),
        ({"response": {"uid": "u"}}, "response.result.status was '', not 'Success'"),
        ({"response": {"uid": "u", "result": {"status": "Failure", "message": "no"}}}, "no"),
        ({"response": {"uid": 1}}, "json: cannot unmarshal response: Expected `str`, got `int` - at `$.uid`"),
        (
            {"apiVersion": "apiextensions.k8s.io/v1beta1", "response": {"uid": "u"}},
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got "
            "apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
        ),
    ],
)
def test_an_answer_that_says_no_success_is_refused(answer: Any, sentence: str) -> None:
    with pytest.raises(Refused) as refused:
        answered({**HEAD, **answer}, version="v1", uid="u")
    assert str(refused.value) == sentence


def test_an_answer_to_the_old_review_need_not_name_the_question() -> None:
    found = answered({**HEAD, "response": {"result": {"status": "Success"}}}, version="v1beta1", uid="u")
    assert found == ()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"apiVersion": "example.com/v1"},
            "object at index 0: invalid groupVersion (expected example.com/v2, received",
        ),
        ({"kind": "Gadget"}, "object at index 0: invalid kind (expected Widget, received Gadget)"),
        ({"kind": ""}, "object at index 0: Object 'Kind' is missing in '{"),
        ({"metadata": {"name": "b", "namespace": "n", "uid": "1"}}, "object: must have the same name: a != b"),
        ({"metadata": {"name": "a", "uid": "1"}}, "object: must have the same namespace: n != "),
        ({"metadata": {"name": "a", "namespace": "n", "uid": "2"}}, "object: must have the same UID: 1 != 2"),
        ({"metadata": []}, "metadata: invalid metadata of type []interface {} in converted object"),
        ({"metadata": {"labels": "x"}}, "metadata: invalid metadata.labels of type string in converted object"),
        (
            {"metadata": {"annotations": {"a": 1}}},
            "metadata: metadata.annotations[a] must be a string, but is int64 in converted object",
        ),
        ({"metadata": {"labels": {"a": "!"}}}, 'metadata: metadata.labels: Invalid value: "!"'),
    ],
)
def test_an_object_that_is_no_longer_the_same_is_refused(changes: Any, sentence: str) -> None:
    meta = changes.get("metadata")
    if isinstance(meta, dict) and "name" not in meta:
        changes = {"metadata": {"name": "a", "namespace": "n", "uid": "1", **meta}}
    with pytest.raises(Refused) as refused:
        checked(ORIGINAL, {**CONVERTED, **changes}, wanted="example.com/v2")
    assert str(refused.value).startswith(f"returned invalid {sentence}")


@pytest.mark.parametrize("levels", [DEEPEST + 1, 800])
def test_an_object_that_is_nested_too_deep_is_refused(levels: int) -> None:
    deep = json.loads("[" * levels + "]" * levels)
    with pytest.raises(Refused, match="exceeded max depth"):
        checked(ORIGINAL, {**CONVERTED, "spec": deep}, wanted="example.com/v2")


@pytest.mark.parametrize("key", ["apiVersion", "kind", "metadata", "spec"])
def test_little_of_a_wrong_object_is_told(key: str) -> None:
    long = "x" * 10 * LONGEST_SHOWN
    wrong: Any = {"metadata": {**ORIGINAL["metadata"], "name": long}, "spec": long}.get(key, long)  # type: ignore[dict-item]
    changes = {key: wrong} if key != "spec" else {"kind": "", "spec": long}
    with pytest.raises(Refused) as refused:
        checked(ORIGINAL, {**CONVERTED, **changes}, wanted="example.com/v2")
    assert len(str(refused.value)) < 2 * LONGEST_SHOWN


def test_only_labels_and_annotations_of_the_metadata_may_change() -> None:
    meta = {**ORIGINAL["metadata"], "annotations": {"to": "v2"}, "generation": 9, "finalizers": ["x"]}  # type: ignore[dict-item]
    del meta["labels"]
    found = checked(ORIGINAL, {**CONVERTED, "metadata": meta}, wanted="example.com/v2")
    assert found["metadata"] == {
        "name": "a",
        "namespace": "n",
        "uid": "1",
        "annotations": {"to": "v2"},
        "generation": 3,
    }
