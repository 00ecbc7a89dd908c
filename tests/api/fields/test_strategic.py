from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from owned_objects import THING, things

from seamark.api.fields.patch import apply_patch
from seamark.errors import ApiError, BadRequest, Invalid
from seamark.kinds.language import shapes

POD = shapes.of("io.k8s.api.core.v1.Pod")
SERVICE = shapes.of("io.k8s.api.core.v1.Service")
DEPLOYMENT = shapes.of("io.k8s.api.apps.v1.Deployment")


def service(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": spec}


def patched(document: Any, **spec: Any) -> dict[str, Any]:
    """The spec of a Service after a patch to its spec."""
    current = service(**spec)
    kept = copy.deepcopy((current, document))
    result = apply_patch("strategic", {"spec": document}, current, SERVICE)
    assert (current, document) == kept
    spec_after: dict[str, Any] = result["spec"]
    return spec_after


def ports(*numbers: int, **more: Any) -> list[dict[str, Any]]:
    return [{"port": number, **more} for number in numbers]


def finalizers(document: dict[str, Any], *current: str) -> list[str]:
    obj = {"metadata": {"name": "x", "finalizers": list(current)}}
    found: list[str] = apply_patch("strategic", {"metadata": document}, obj, SERVICE)["metadata"]["finalizers"]
    return found


# --- maps -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "selector"),
    [
        ({"selector": {"c": "3"}}, {"a": "1", "b": "2", "c": "3"}),
        ({"selector": {"a": None}}, {"b": "2"}),
        ({"selector": {"zz": None}}, {"a": "1", "b": "2"}),
        ({"selector": {"$patch": "replace", "c": "3"}}, {"c": "3"}),
        ({"selector": {"$patch": "delete", "c": "3"}}, {}),
        ({"selector": {"$retainKeys": ["b", "c"], "c": "3"}}, {"b": "2", "c": "3"}),
        ({"selector": None}, None),
    ],
)
def test_maps(document: Any, selector: Any) -> None:
    assert patched(document, selector={"a": "1", "b": "2"}).get("selector") == selector


def test_what_is_new_is_taken_without_its_directives_and_nulls() -> None:
    assert patched({"selector": {"a": "1", "b": None}}) == {"selector": {"a": "1"}}
    assert patched({"selector": {"$patch": "delete"}}) == {}
    assert patched({"ports": [{"$patch": "delete", "port": 80}, {"port": 81, "name": None}]}) == {"ports": ports(81)}
    assert patched({"$deleteFromPrimitiveList/clusterIPs": ["x"]}) == {}


def test_another_type_replaces() -> None:
    assert patched({"selector": "x"}, selector={"a": "1"}) == {"selector": "x"}
    assert patched({"ports": ports(80)}, ports=None) == {"ports": ports(80)}


def test_a_field_with_the_replace_strategy_is_taken_whole() -> None:
    budget = shapes.of("io.k8s.api.policy.v1.PodDisruptionBudget")
    assert budget.fields["spec"].type.fields["selector"].patch_strategy == "replace"  # type: ignore[union-attr]
    current = {"spec": {"selector": {"matchLabels": {"a": "1"}}, "minAvailable": 1}}
    document = {"spec": {"selector": {"matchLabels": {"b": "2"}}}}
    assert apply_patch("strategic", document, current, budget) == {
        "spec": {"selector": {"matchLabels": {"b": "2"}}, "minAvailable": 1}
    }


# --- merged lists -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "numbers"),
    [
        ({"ports": ports(4)}, [4, 1, 2, 3]),
        ({"ports": ports(2)}, [1, 2, 3]),
        ({"ports": ports(3, 1)}, [2, 3, 1]),
        ({"ports": [*ports(2), *ports(4)]}, [1, 2, 4, 3]),
        ({"ports": [{"$patch": "delete", "port": 2}]}, [1, 3]),
        ({"ports": [{"$patch": "delete", "port": 9}]}, [1, 2, 3]),
        ({"ports": [{"$patch": "replace"}, *ports(9, 8)]}, [9, 8]),
        ({"ports": [{"$patch": "replace"}]}, []),
        ({"ports": []}, [1, 2, 3]),
        ({"$setElementOrder/ports": ports(3, 1, 2)}, [3, 1, 2]),
        ({"$setElementOrder/ports": ports(3, 1)}, [2, 3, 1]),
        ({"$setElementOrder/ports": ports(3, 2, 4), "ports": ports(2, 4)}, [1, 3, 2, 4]),
        ({"$setElementOrder/ports": ports(3, 1), "ports": [{"$patch": "delete", "port": 2}]}, [3, 1]),
        ({"$setElementOrder/ports": []}, [1, 2, 3]),
    ],
)
def test_order_of_merged_lists(document: Any, numbers: list[int]) -> None:
    after = patched(document, ports=ports(1, 2, 3, protocol="TCP"))["ports"]
    assert [port["port"] for port in after] == numbers


def test_elements_are_merged_by_their_key() -> None:
    current = [{"port": 80, "name": "a", "targetPort": 8080}, {"port": 81, "name": "b"}]
    document = {"ports": [{"port": 80, "name": "c", "targetPort": None}]}
    assert patched(document, ports=current)["ports"] == [{"port": 80, "name": "c"}, {"port": 81, "name": "b"}]


def test_only_the_first_of_two_with_one_key_is_merged() -> None:
    current = [{"port": 53, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]
    after = patched({"ports": [{"port": 53, "name": "x"}]}, ports=current)["ports"]
    assert after == [{"port": 53, "protocol": "TCP", "name": "x"}, {"port": 53, "protocol": "UDP"}]
    assert patched({"ports": [{"$patch": "delete", "port": 53}]}, ports=current)["ports"] == []


def test_directives_inside_elements() -> None:
    def pod(**container: Any) -> dict[str, Any]:
        return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", **container}], "volumes": []}}

    current = pod(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}], resources={"limits": {"cpu": "1"}})
    document = pod(
        **{
            "$setElementOrder/env": [{"name": "B"}, {"name": "C"}],
            "env": [{"name": "C", "value": "3"}, {"$patch": "delete", "name": "A"}],
            "resources": {"$patch": "replace", "requests": {"cpu": "2"}},
        }
    )
    container = apply_patch("strategic", document, current, POD)["spec"]["containers"][0]
    assert container == {
        "name": "c",
        "env": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}],
        "resources": {"requests": {"cpu": "2"}},
    }


def test_volumes_retain_keys() -> None:
    current = {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    document = {"spec": {"volumes": [{"$retainKeys": ["name", "hostPath"], "name": "v", "hostPath": {"path": "/x"}}]}}
    after = apply_patch("strategic", document, current, POD)["spec"]["volumes"]
    assert after == [{"name": "v", "hostPath": {"path": "/x"}}]


@pytest.mark.parametrize(
    ("document", "after"),
    [
        ({"finalizers": ["c"]}, ["c", "a", "b"]),
        ({"finalizers": ["b", "c"]}, ["a", "b", "c"]),
        ({"finalizers": ["c", "c"]}, ["c", "a", "b"]),
        ({"$deleteFromPrimitiveList/finalizers": ["a", "zz"]}, ["b"]),
        ({"$deleteFromPrimitiveList/finalizers": ["a"], "finalizers": ["c"]}, ["c", "b"]),
        (
            {
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["b", "c"],
                "finalizers": ["c"],
            },
            ["b", "c"],
        ),
        ({"$setElementOrder/finalizers": ["b", "a"]}, ["b", "a"]),
    ],
)
def test_sets(document: Any, after: list[str]) -> None:
    assert finalizers(document, "a", "b") == after


def test_lists_without_the_merge_strategy_are_replaced() -> None:
    assert patched({"externalIPs": ["192.0.2.2"]}, externalIPs=["192.0.2.1"])["externalIPs"] == ["192.0.2.2"]


def test_a_patch_cannot_change_the_kind() -> None:
    assert apply_patch("strategic", {"kind": "Pod", "apiVersion": "v9"}, service(), SERVICE) == service()
    assert "kind" not in apply_patch("strategic", {"kind": "Pod"}, {"metadata": {}}, SERVICE)


@pytest.mark.parametrize("document", [None, {}])
def test_an_empty_patch_changes_nothing(document: Any) -> None:
    assert apply_patch("strategic", document, service(ports=ports(80)), SERVICE) == service(ports=ports(80))


# --- mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"selector": {"$patch": "merge"}}, "unknown patch type: merge in map: map[$patch:merge]"),
        (
            {"ports": [{"$patch": "explode", "port": 80}]},
            "unknown patch type: explode in map: map[$patch:explode port:80]",
        ),
        ({"ports": [{"$patch": "merge", "port": 80}]}, "merging lists cannot yet be specified in the patch"),
        ({"ports": [{"$patch": "delete"}]}, "map: map[$patch:delete] does not contain declared merge key: port"),
        ({"ports": [{"name": "x"}]}, "map: map[name:x] does not contain declared merge key: port"),
        ({"ports": ["x"]}, "list element types are not identical: [[map[port:80]] [x]]"),
        ({"$setElementOrder/ports": "x"}, "expected a []interface {}, but received a string"),
        ({"$setElementOrder/ports": [{"name": "x"}]}, "map: map[name:x] does not contain declared merge key: port"),
        ({"$setElementOrder/ports": ["x"]}, "expected a map[string]interface {}, but received a string"),
        (
            {"$setElementOrder/foo": []},
            'unable to find api field in struct ServiceSpec for the json field "foo"',
        ),
        (
            {"$setElementOrder/ports": ports(80), "ports": ports(81)},
            "The order in patch list:\n[map[port:81]]\n doesn't match $setElementOrder list:\n[map[port:80]]\n",
        ),
    ],
)
def test_mistakes_that_kubernetes_calls_its_own(document: Any, message: str) -> None:
    with pytest.raises(ApiError) as refused:
        patched(document, ports=ports(80), selector={"a": "1"})
    assert refused.value.message == message
    assert (refused.value.code, refused.value.reason) == (500, "")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"selector": {"$retainKeys": "x"}}, "invalid patch format of retainKeys"),
        ({"selector": {"$retainKeys": ["a"], "b": "2"}}, "invalid patch format of retainKeys"),
        ({"$deleteFromPrimitiveList": ["x"]}, "invalid patch format of primitive list"),
        ({"$setElementOrder": ["x"]}, "invalid patch format of setElementOrder list"),
    ],
)
def test_mistakes_of_form(document: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        patched(document, selector={"a": "1"})
    assert refused.value.message == message


def test_lists_of_lists_are_unprocessable() -> None:
    with pytest.raises(Invalid):
        patched({"ports": [[]]}, ports=ports(80))


@pytest.mark.parametrize(("document", "found"), [([], "array"), ("x", "string"), (3, "number")])
def test_a_patch_must_be_an_object(document: Any, found: str) -> None:
    with pytest.raises(BadRequest) as refused:
        apply_patch("strategic", document, service(), SERVICE)
    assert refused.value.message == f"json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"


def test_long_lists_take_no_time() -> None:
    # Quadratic merging of a list that fits into one request would stop the server for minutes.
    many = [f"example.com/{number}" for number in range(20_000)]
    assert len(finalizers({"finalizers": many[::-1]}, *many)) == len(many)
    entries = ports(*range(20_000))
    assert len(patched({"ports": entries[::-1], "$setElementOrder/ports": entries[::-1]}, ports=entries)["ports"])


# --- diff -------------------------------------------------------------------------------------------


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """A strategic merge patch from one object of the test kind to another, as kubectl makes them."""
    document: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if isinstance(value, dict) and isinstance(before, dict):
            document[key] = difference(before, value)
        elif key == "ports" and before is not None:
            known = {port["port"]: port for port in before}
            document[key] = [
                {"port": port["port"], **difference(known.get(port["port"], {}), port)} for port in value
            ] + [{"$patch": "delete", "port": n} for n in known if n not in [port["port"] for port in value]]
            if value:
                document["$setElementOrder/ports"] = [{"port": port["port"]} for port in value]
        elif key in ("tags", "finalizers") and before:
            document[key] = [tag for tag in value if tag not in before]
            document[f"$deleteFromPrimitiveList/{key}"] = [tag for tag in before if tag not in value]
            if value:
                document[f"$setElementOrder/{key}"] = value
        elif key not in old or before != value:
            document[key] = value
    return document


def one_protocol(thing: dict[str, Any]) -> dict[str, Any]:
    """Without ports that only the protocol tells apart: the merge key would not."""
    thing = copy.deepcopy(thing)
    if "ports" in thing["spec"]:
        thing["spec"]["ports"] = list({port["port"]: port for port in thing["spec"]["ports"]}.values())
        for port in thing["spec"]["ports"]:
            port.pop("tags", None)
    for point in thing["spec"].get("points", {}).values():
        point.pop("tags", None)
    return thing


@settings(deadline=None)
@given(things.map(one_protocol), things.map(one_protocol))
def test_a_patch_made_from_a_difference_gives_the_target(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply_patch("strategic", difference(old, new), old, THING) == new
