from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import case, patches, place, shape_of

from seamark.api.fields.patch import MOST_OPERATIONS, apply_patch, merge_patch, unusable
from seamark.errors import ApiError, BadRequest, Invalid, RequestEntityTooLarge, status
from seamark.kinds.language import shapes

CONFIGMAP = shapes.of("io.k8s.api.core.v1.ConfigMap")
TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
}

# What the rest of the write path adds or carries over, so that a patch's plain result may differ in it.
SERVER_SET = {"resourceVersion", "generation", "protocol", "targetPort", "nodePort", "externalTrafficPolicy"}
SERVER_SET |= {"lastProbeTime", "lastTransitionTime", "ipMode", "allocateLoadBalancerNodePorts", "podIPs", "hostIPs"}

# The other recorded patches meet a kind's own rules: addresses of Services, stringData of Secrets.
RECORDED = [
    row
    for row in patches(["patch", "crud", "pods", "endpoints", "watch", "events"])
    if row[1]["expect"]["status"] == 200
    and "body" in row[1]["expect"]
    and not place(row[1]["path"])[1]
    and "stringData" not in row[1]["body"]
]


def agrees(result: Any, expected: Any) -> bool:
    if isinstance(result, dict) and isinstance(expected, dict):
        keys = (result.keys() | expected.keys()) - SERVER_SET
        return all(agrees(result.get(key), expected.get(key)) for key in keys)
    if isinstance(result, list) and isinstance(expected, list):
        return len(result) == len(expected) and all(map(agrees, result, expected))
    return result == expected or not (result or expected)


def config_map(**data: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}, "data": data}


NESTED = {"y": ["z"]}


def patch(type: Any, document: Any, current: dict[str, Any]) -> dict[str, Any]:
    return apply_patch(type, document, current, CONFIGMAP)


# --- recorded ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "step", "current"), RECORDED, ids=[row[0] for row in RECORDED])
def test_recorded_patch(name: str, step: dict[str, Any], current: dict[str, Any]) -> None:
    before, document = copy.deepcopy(current), copy.deepcopy(step["body"])
    result = apply_patch(TYPES[step["content_type"]], document, current, shape_of(step["path"]))  # type: ignore[arg-type]
    assert agrees(result, step["expect"]["body"]), result
    assert current == before
    assert document == step["body"]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("patch/json-test-op", 1),
        ("patch/json-missing-path", 1),
        ("patch/json-missing-path", 3),
        ("patch/json-missing-path", 4),
        ("patch/merge-invalid-result", 3),
        ("patch/merge-not-object", 1),
        ("patch/strategic-bad-directive", 1),
        ("patch/strategic-bad-directive", 2),
    ],
)
def test_recorded_refusal(name: str, number: int) -> None:
    steps = case(name)
    step = steps[number]
    document = step.get("body", [])
    with pytest.raises(ApiError) as refused:
        apply_patch(TYPES[step["content_type"]], document, steps[0]["expect"]["body"], shape_of(step["path"]))  # type: ignore[arg-type]
    answer = status(refused.value)
    answer.pop("message")
    for cause in answer.get("details", {}).get("causes", []):
        cause.pop("message")
    assert answer == step["expect"]["body"]


# --- JSON patch -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
        ([{"op": "replace", "path": "/data/b", "value": "2"}], {"a": "1", "b": "2"}),
        ([{"op": "add", "path": "/data/x~1y~0z", "value": "2"}], {"a": "1", "x/y~z": "2"}),
        ([{"op": "add", "path": "/data/~01", "value": "2"}], {"a": "1", "~1": "2"}),
        ([{"op": "add", "path": "/data/"}], {"a": "1", "": None}),
        ([{"op": "copy", "from": "/data/zz", "path": "/data/b"}], {"a": "1", "b": None}),
        ([{"op": "move", "from": "/data/a", "path": "/data/b"}], {"b": "1"}),
        ([{"op": "test", "path": "/data/zz", "value": None}], {"a": "1"}),
        ([{"op": "test", "path": "/data", "value": {"a": "1"}}], {"a": "1"}),
        ([], {"a": "1"}),
        (None, {"a": "1"}),
    ],
)
def test_json_patch_of_a_map(operations: Any, data: dict[str, Any]) -> None:
    assert patch("json", operations, config_map(a="1")) == config_map(**data)


@pytest.mark.parametrize(
    ("operation", "after"),
    [
        ({"op": "add", "path": "/list/0", "value": 0}, [0, 1, 2, 3]),
        ({"op": "add", "path": "/list/3", "value": 4}, [1, 2, 3, 4]),
        ({"op": "add", "path": "/list/-", "value": 4}, [1, 2, 3, 4]),
        ({"op": "add", "path": "/list/-1", "value": 4}, [1, 2, 3, 4]),
        ({"op": "add", "path": "/list/-2", "value": 4}, [1, 2, 4, 3]),
        ({"op": "remove", "path": "/list/-1"}, [1, 2]),
        ({"op": "replace", "path": "/list/-3", "value": 0}, [0, 2, 3]),
        ({"op": "move", "from": "/list/0", "path": "/list/2"}, [2, 3, 1]),
        ({"op": "test", "path": "/list/1", "value": 2}, [1, 2, 3]),
    ],
)
def test_json_patch_of_a_list(operation: dict[str, Any], after: list[int]) -> None:
    current = {**config_map(), "list": [1, 2, 3]}
    assert patch("json", [operation], current)["list"] == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove", "path": "/data/zz"},
        {"op": "remove", "path": "/nowhere/a"},
        {"op": "remove", "path": "/list/3"},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": ""},
        {"op": "add", "path": "", "value": {}},
        {"op": "add", "path": "/data/a/b", "value": "1"},
        {"op": "add", "path": "/list/4", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": "/list/ 1", "value": 1},
        {"op": "replace", "path": "/list/3", "value": 1},
        {"op": "replace", "path": "", "value": "text"},
        {"op": "move", "from": "/data/zz", "path": "/data/a"},
        {"op": "move", "path": "/data/a"},
        {"op": "copy", "from": "/nowhere/b", "path": "/data/a"},
        {"op": "test", "path": "/list/0", "value": True},
        {"op": "test", "path": "/list/0", "value": 1.0},
        {"op": "test", "path": "/data/a"},
        {"op": "test", "path": "kind", "value": "ConfigMap"},
        {"op": "frobnicate", "path": "/data/a"},
        {"path": "/data/a"},
        {"op": "add"},
        None,
    ],
)
def test_inapplicable_operation_is_unprocessable(operation: Any) -> None:
    current = {**config_map(a="1"), "list": [1, 2, 3]}
    with pytest.raises(Invalid) as refused:
        patch("json", [operation], current)
    assert status(refused.value) == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "the server rejected our request due to an error in our request",
        "reason": "Invalid",
        "details": {},
        "code": 422,
    }


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"op": "add"}, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
        (["x"], "cannot unmarshal string into Go value of type handlers.jsonPatchOp"),
        ([{"op": 5}], "cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
    ],
)
def test_json_patch_that_is_none(document: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=r"^error decoding patch: json: ") as refused:
        patch("json", document, config_map())
    assert refused.value.message.endswith(message)


def test_operations_are_limited() -> None:
    operation = {"op": "add", "path": "/data/a", "value": "1"}
    assert patch("json", [operation] * MOST_OPERATIONS, config_map()) == config_map(a="1")
    with pytest.raises(RequestEntityTooLarge, match="is 10000, got 10001"):
        patch("json", [operation] * (MOST_OPERATIONS + 1), config_map())


def test_copying_is_limited() -> None:
    copies = [{"op": "copy", "from": "/data/a", "path": f"/data/{i}"} for i in range(4)]
    with pytest.raises(Invalid):
        patch("json", copies, config_map(a="x" * 1024 * 1024))


def test_whole_document_can_be_replaced_but_not_by_a_list() -> None:
    other = config_map(z="1")
    assert patch("json", [{"op": "replace", "path": "", "value": other}], config_map(a="1")) == other
    with pytest.raises(Invalid, match="cannot unmarshal array"):
        patch("json", [{"op": "replace", "path": "", "value": []}], config_map(a="1"))


# --- merge patch ------------------------------------------------------------------------------------

# The examples of RFC 7386, appendix A, that are about objects.
RFC_7386 = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("data", "document", "after"), RFC_7386)
def test_rfc_7386(data: dict[str, Any], document: dict[str, Any], after: dict[str, Any]) -> None:
    assert patch("merge", {"data": document}, config_map(**data)) == config_map(**after)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"),
        ("x", "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}"),
        (None, "Invalid JSON Patch"),
    ],
)
def test_merge_patch_must_be_an_object(document: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        patch("merge", document, config_map())
    assert refused.value.message == message


json_values = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=2), children, max_size=3),
    max_leaves=12,
)
json_objects = st.dictionaries(st.text(max_size=2), json_values, max_size=4)


def merge_difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    document: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        if isinstance(value, dict) and isinstance(old.get(key), dict):
            document[key] = merge_difference(old[key], value)
        elif key not in old or old[key] != value or type(old[key]) is not type(value):
            document[key] = value
    return document


@settings(deadline=None)
@given(json_objects, json_objects)
def test_merge_patch_made_from_a_difference_gives_the_target(old: dict[str, Any], new: dict[str, Any]) -> None:
    document = {"data": merge_difference(old, new)}
    assert patch("merge", document, config_map(**old)) == config_map(**new)


def json_difference(old: Any, new: Any, path: str) -> list[dict[str, Any]]:
    if isinstance(old, dict) and isinstance(new, dict):
        operations = [{"op": "remove", "path": f"{path}/{escaped(key)}"} for key in old if key not in new]
        for key, value in new.items():
            at = f"{path}/{escaped(key)}"
            operations += (
                json_difference(old[key], value, at) if key in old else [{"op": "add", "path": at, "value": value}]
            )
        return operations
    if isinstance(old, list) and isinstance(new, list):
        operations = [{"op": "remove", "path": f"{path}/-1"}] * max(0, len(old) - len(new))
        for index, value in enumerate(new):
            if index < len(old):
                operations += json_difference(old[index], value, f"{path}/{index}")
            else:
                operations.append({"op": "add", "path": f"{path}/-", "value": value})
        return operations
    return [{"op": "test", "path": path, "value": old}, {"op": "replace", "path": path, "value": new}]


def escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


@settings(deadline=None)
@given(json_objects, json_objects)
def test_json_patch_made_from_a_difference_gives_the_target(old: dict[str, Any], new: dict[str, Any]) -> None:
    operations = json_difference(old, new, "/data")
    assert patch("json", operations, config_map(**old)) == config_map(**new)


# --- what a result must be --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("type", "document"),
    [
        ("merge", {"kind": "Pod"}),
        ("merge", {"kind": None}),
        ("merge", {"apiVersion": None}),
        ("merge", {"apiVersion": "v2"}),
        ("json", [{"op": "remove", "path": "/kind"}]),
    ],
)
def test_kind_may_not_change(type: Any, document: Any) -> None:
    with pytest.raises(Invalid) as refused:
        patch(type, document, config_map())
    assert [cause.field for cause in refused.value.causes] == ["patch"]


def test_objects_without_kind_stay_without_it() -> None:
    bare = {"metadata": {"name": "cm"}}
    assert patch("merge", {"data": {"a": "1"}}, bare) == {**bare, "data": {"a": "1"}}
    with pytest.raises(Invalid):
        patch("merge", {"kind": "Pod"}, bare)


def test_refusal_of_a_result_shows_it() -> None:
    error = unusable({"spec": 1}, "no")
    assert error.message == ' "" is invalid: patch: Invalid value: "{\\"spec\\":1}": no'


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "add", "path": "/data/x", "value": NESTED}, {"op": "add", "path": "/data/x/y/-", "value": "edited"}],
        [{"op": "copy", "from": "/data/a", "path": "/data/x"}, {"op": "add", "path": "/data/x/y/-", "value": "edited"}],
        [{"op": "move", "from": "/data/a", "path": "/data/x"}, {"op": "remove", "path": "/data/x/y/0"}],
        [{"op": "replace", "path": "", "value": config_map(a=NESTED)}, {"op": "remove", "path": "/data/a"}],
        [
            {"op": "replace", "path": "/data/a/y/0", "value": "first"},
            {"op": "copy", "from": "/data/a", "path": "/data/x"},
            {"op": "replace", "path": "/data/x/y/0", "value": "second"},
            {"op": "test", "path": "/data/a/y/0", "value": "first"},
        ],
    ],
)
def test_operations_edit_neither_object_nor_patch(operations: list[dict[str, Any]]) -> None:
    current = config_map(a=NESTED)
    kept = copy.deepcopy((current, operations))
    assert patch("json", operations, current) != current
    assert (current, operations) == kept


def test_too_deep_a_patch_is_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(5000):
        document = {"data": document}
    with pytest.raises(BadRequest, match="exceeded max depth"):
        patch("merge", document, config_map())


def test_a_merge_takes_over_copies_made_plain_of_what_is_typed() -> None:
    class Condition(msgspec.Struct, omit_defaults=True):
        type: str
        reason: str | None = None

    typed: dict[str, Any] = {
        "status": {"conditions": (Condition("Ready"),), "labels": {"a": "b", "gone": None}},
        "spec": Condition("x"),
    }
    merged = merge_patch(typed, {"status": {"phase": "Running"}, "spec": {"kept": True}})
    assert merged == {
        "status": {"phase": "Running", "conditions": [{"type": "Ready"}], "labels": {"a": "b"}},
        "spec": {"kept": True, "type": "x"},
    }
    merged["status"]["labels"]["a"] = "changed"
    assert typed["status"]["labels"]["a"] == "b", "what the caller gave is the caller's"
