from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from owned_objects import THING, THINGS, kind_named, part_of, things
from recorded import cases, place, shape_of

from seamark.api import intake
from seamark.api.fields import fieldsets, managed, merging
from seamark.api.fields.apply import apply
from seamark.errors import ApiError, BadRequest, Conflict, status
from seamark.kinds.core.configmap import CONFIG_MAP
from seamark.kinds.core.event import NEW_EVENT
from seamark.kinds.language.decode import conform
from seamark.kinds.wellknown import LAST_APPLIED_ANNOTATION

NOW, LATER = "2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"


def applied(
    config: dict[str, Any],
    live: dict[str, Any] | None = None,
    *,
    kind: str = "core.v1.ConfigMap",
    manager: str = "me",
    force: bool = False,
    subresource: str = "",
    now: str = NOW,
) -> dict[str, Any]:
    """The object after an apply, decoded as the write path does."""
    meant = kind_named(kind)
    config = {"apiVersion": meant.resource.api_version, "kind": meant.resource.kind, **config}
    kept = copy.deepcopy((config, live))
    part = part_of(meant, subresource)
    result = apply(config, live, kind=meant, part=part, manager=manager, force=force, now=now)
    assert (config, live) == kept
    return conform(result, meant.shape)[0]


def updated(
    new: dict[str, Any], old: dict[str, Any] | None = None, *, kind: str = "core.v1.ConfigMap", manager: str = "writer"
) -> dict[str, Any]:
    """The object after an ordinary write."""
    meant = kind_named(kind)
    new = conform(new, meant.shape)[0]
    managed.track(new, old, meant, meant.whole, manager=manager, now=NOW)
    return new


def config_map(data: dict[str, Any] | None = None, **meta: Any) -> dict[str, Any]:
    obj: dict[str, Any] = {"metadata": {"name": "cm", **meta}}
    if data is not None:
        obj["data"] = data
    return obj


def service(*ports: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web"}, "spec": {**spec, "ports": list(ports)}}


def entries(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


# --- recorded ---------------------------------------------------------------------------------------

# These cases are decided before anything is applied, for example by a missing manager or a name that is not the URL's.
ELSEWHERE = {"apply/no-manager", "apply/name-mismatch", "apply/force-elsewhere", "apply/managed-fields-of-update"}
RECORDED = [recorded for recorded in cases("apply") if recorded["name"] not in ELSEWHERE]


@pytest.mark.parametrize("recorded", RECORDED, ids=[recorded["name"] for recorded in RECORDED])
def test_recorded_apply(recorded: dict[str, Any]) -> None:
    live: dict[str, Any] | None = None
    for step in recorded["steps"]:
        shape, query = shape_of(step["path"]), step.get("query", {})
        kind = shape.name.removeprefix("io.k8s.api.")
        body = step["body"] if "body" in step else yaml.safe_load(step["raw"])
        manager = query.get("fieldManager", "recorder")
        if step["method"] == "POST":
            live = updated(body, kind=kind, manager=manager)
            continue
        try:
            live = applied(
                body,
                live,
                kind=kind,
                manager=manager,
                force=query.get("force") == "true",
                subresource=place(step["path"])[1],
            )
        except ApiError as error:
            check_refusal(status(error), step)
        else:
            check_result(live, step)


def check_refusal(answer: dict[str, Any], step: dict[str, Any]) -> None:
    expected = step["expect"]["body"]
    if "match" not in step:
        assert answer == expected
        return
    assert answer["message"].startswith(expected.get("message", "").rstrip("…"))
    for cause in answer.get("details", {}).get("causes", []):
        del cause["message"]
    assert {**answer, "message": expected.get("message")} == {"message": None, **expected}


def check_result(obj: dict[str, Any], step: dict[str, Any]) -> None:
    expected = step["expect"].get("body")
    if expected is None:
        (entry,) = [e for e in obj["metadata"]["managedFields"] if e["manager"] == "lb"]
        assert (entry["operation"], entry["subresource"]) == ("Apply", "status")
        assert entry["fieldsV1"] == {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}
        assert obj["status"] == {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}
        return
    assert obj.get("data") == expected.get("data")
    assert obj["metadata"].get("labels") == expected["metadata"].get("labels")
    if "spec" in expected:
        names = [(port["port"], port["name"]) for port in expected["spec"]["ports"]]
        assert [(port["port"], port["name"]) for port in obj["spec"]["ports"]] == names
    if step.get("managed_fields"):
        found = obj["metadata"].get("managedFields", [])
        timeless = [{**entry, "time": "<time>"} if "time" in entry else entry for entry in found]
        assert timeless == expected["metadata"]["managedFields"]


# --- ownership --------------------------------------------------------------------------------------


def test_several_conflicts_are_listed_by_manager() -> None:
    live = updated(config_map({"a": "1", "b": "1"}, labels={"x": "1"}))
    live = applied(config_map({"c": "1"}), live, manager="applier")
    with pytest.raises(Conflict) as refused:
        applied(config_map({"a": "2", "b": "1", "c": "2"}, labels={"x": "2"}), live)
    assert refused.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "applier":\n- .data.c\n'
        'conflicts with "writer" using v1:\n- .data.a\n- .metadata.labels.x'
    )
    assert [(cause.field, cause.message, cause.reason) for cause in refused.value.causes] == [
        (".data.c", 'conflict with "applier"', "FieldManagerConflict"),
        (".data.a", 'conflict with "writer" using v1', "FieldManagerConflict"),
        (".metadata.labels.x", 'conflict with "writer" using v1', "FieldManagerConflict"),
    ]


def test_conflicts_name_subresources_and_keys() -> None:
    live = applied(service({"port": 80, "name": "a"}), kind="core.v1.Service")
    with pytest.raises(Conflict, match=r'conflict with "me": \.spec\.ports\[port=80,protocol="TCP"\]\.name$'):
        applied(service({"port": 80, "name": "b"}), live, kind="core.v1.Service", manager="other")
    condition = {"type": "A", "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}
    config = {"metadata": {"name": "web"}, "status": {"conditions": [condition]}}
    live = applied(config, live, kind="core.v1.Service", subresource="status")
    config["status"] = {"conditions": [{**condition, "status": "False"}]}
    with pytest.raises(
        Conflict, match=r'conflict with "me" with subresource "status": \.status\.conditions\[type="A"\]'
    ):
        applied(config, live, kind="core.v1.Service", subresource="status", manager="other")


def test_force_takes_fields_from_all_others() -> None:
    live = updated(config_map({"a": "1", "b": "1"}))
    after = applied(config_map({"a": "2"}), live, force=True, now=LATER)
    assert after["data"] == {"a": "2", "b": "1"}
    assert entries(after) == {"me": {"f:data": {"f:a": {}}}, "writer": {"f:data": {".": {}, "f:b": {}}}}


def test_what_others_own_stays() -> None:
    live = applied(config_map({"a": "1", "b": "1", "c": "1"}))
    live = applied(config_map({"b": "1"}), live, manager="other")
    live = updated(config_map({"a": "1", "b": "1", "c": "1", "d": "1"}), live)
    after = applied(config_map({"a": "1"}), live)
    assert after["data"] == {"a": "1", "b": "1", "d": "1"}
    assert applied(config_map(), after)["data"] == {"b": "1", "d": "1"}


def test_an_updated_field_is_no_longer_pruned() -> None:
    live = applied(config_map({"a": "1"}))
    live = updated(config_map({"a": "2"}), live)
    after = applied(config_map(), live)
    assert after["data"] == {"a": "2"}
    assert entries(after) == {"writer": {"f:data": {"f:a": {}}}}


def test_everything_applied_can_be_taken_back() -> None:
    live = applied(config_map({"a": "1"}, labels={"x": "y"}, finalizers=["example.com/x"]))
    after = applied(config_map(), live)
    assert after == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm"}}


def test_null_in_a_configuration_removes_and_owns() -> None:
    live = updated(service({"port": 80}, externalName="x", type="ExternalName"), kind="core.v1.Service")
    config = {"metadata": {"name": "web"}, "spec": {"externalName": None}}
    after = applied(config, live, kind="core.v1.Service", force=True)
    assert "externalName" not in after["spec"]
    assert entries(after)["me"] == {"f:spec": {"f:externalName": {}}}


def test_objects_nobody_tracked_belong_to_what_was_before() -> None:
    live = config_map({"a": "1", "b": "1"}, uid="u")
    with pytest.raises(Conflict, match=r'"before-first-apply" using v1: \.data\.a$'):
        applied(config_map({"a": "2"}), live)
    after = applied(config_map({"a": "1"}), live, now=LATER)
    assert after["data"] == live["data"]
    first, second = after["metadata"]["managedFields"]
    assert (first["manager"], first["operation"], "time" in first) == ("me", "Apply", False)
    assert (second["manager"], second["operation"], second["time"]) == ("before-first-apply", "Update", LATER)
    assert second["fieldsV1"] == {"f:data": {".": {}, "f:a": {}, "f:b": {}}}


def test_status_is_owned_through_status_only() -> None:
    config = {
        "metadata": {"name": "web"},
        "spec": {"type": "LoadBalancer"},
        "status": {"loadBalancer": {"ingress": []}},
    }
    after = applied(config, kind="core.v1.Service")
    assert entries(after)["me"] == {"f:spec": {"f:type": {}}}
    after = applied(config, after, kind="core.v1.Service", subresource="status", manager="lb")
    assert entries(after)["lb"] == {"f:status": {"f:loadBalancer": {"f:ingress": {}}}}


def test_an_applier_is_the_same_in_another_version() -> None:
    event = {"metadata": {"name": "e"}, "reason": "R"}
    live = applied(event, kind="core.v1.Event")
    config = {"apiVersion": "events.k8s.io/v1", "kind": "Event", **event}
    after = apply(config, live, kind=NEW_EVENT, part=NEW_EVENT.whole, manager="me", force=False, now=NOW)
    assert [entry["apiVersion"] for entry in after["metadata"]["managedFields"]] == ["events.k8s.io/v1"]


# --- lists ------------------------------------------------------------------------------------------


def port(number: int, **more: Any) -> dict[str, Any]:
    return {"port": number, **more}


@pytest.mark.parametrize(
    ("live", "config", "after"),
    [
        ([1, 2, 3], [2], [1, 2, 3]),
        ([1, 2, 3], [3, 1], [2, 3, 1]),
        ([1, 2, 3], [4], [1, 2, 3, 4]),
        ([1, 2, 3], [4, 2], [1, 4, 2, 3]),
        ([1, 2, 3], [2, 4], [1, 2, 3, 4]),
        ([1, 2, 3], [3, 4, 1], [2, 3, 4, 1]),
        ([1, 2], [1, 3, 2], [1, 3, 2]),
        ([], [2, 1], [2, 1]),
        ([1], [], [1]),
    ],
)
def test_order_of_merged_lists(live: list[int], config: list[int], after: list[int]) -> None:
    current = updated(service(*(port(n, protocol="TCP") for n in live)), kind="core.v1.Service")
    result = applied(service(*(port(n) for n in config)), current, kind="core.v1.Service")
    assert [p["port"] for p in result["spec"]["ports"]] == after


def test_keys_have_defaults() -> None:
    live = updated(service(port(53, protocol="TCP"), port(53, protocol="UDP", name="dns")), kind="core.v1.Service")
    after = applied(service(port(53, name="tcp")), live, kind="core.v1.Service")
    found = [(p["protocol"], p["name"]) for p in after["spec"]["ports"]]
    assert found == [("TCP", "tcp"), ("UDP", "dns")]
    assert entries(after)["me"] == {
        "f:spec": {"f:ports": {'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}}}}
    }


def test_what_an_applier_owns_is_written_in_order() -> None:
    """As text, which clients compare: Go keeps it as it came."""
    after = applied(service(port(80, protocol="UDP", name="b"), port(9, protocol="UDP")), kind="core.v1.Service")
    assert json.dumps(entries(after)["me"], separators=(",", ":")) == (
        r'{"f:spec":{"f:ports":{"k:{\"port\":9,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}},'
        r'"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{}}}}}'
    )


def test_sets_are_owned_by_value() -> None:
    live = applied(config_map(finalizers=["example.com/a", "example.com/b"]))
    live = applied(config_map(finalizers=["example.com/b", "example.com/c"]), live, manager="other")
    after = applied(config_map(), live)
    assert after["metadata"]["finalizers"] == ["example.com/b", "example.com/c"]
    assert entries(after) == {
        "other": {"f:metadata": {"f:finalizers": {'v:"example.com/b"': {}, 'v:"example.com/c"': {}}}}
    }


def test_atomic_parts_are_owned_as_a_whole() -> None:
    live = applied(service(selector={"a": "1"}), kind="core.v1.Service")
    assert entries(live)["me"] == {"f:spec": {"f:selector": {}}}
    with pytest.raises(Conflict, match=r"\.spec\.selector$"):
        applied(service(selector={"b": "1"}), live, kind="core.v1.Service", manager="other")
    after = applied(service(selector={"b": "1"}), live, kind="core.v1.Service", manager="other", force=True)
    assert after["spec"]["selector"] == {"b": "1"}


def test_twins_in_the_live_object_are_replaced() -> None:
    def container(*env: tuple[str, str]) -> dict[str, Any]:
        return {"name": "c", "image": "x", "env": [{"name": name, "value": value} for name, value in env]}

    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container(("A", "1"), ("B", "1"), ("A", "2"))]}}
    live = updated(pod, kind="core.v1.Pod")
    config = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "env": [{"name": "A", "value": "3"}]}]}}
    after = applied(config, live, kind="core.v1.Pod", force=True)
    assert after["spec"]["containers"][0]["env"] == [{"name": "A", "value": "3"}, {"name": "B", "value": "1"}]


def test_an_emptied_element_goes_with_its_list() -> None:
    live = applied(service(port(80, name="a"), port(81, name="b")), kind="core.v1.Service")
    after = applied(service(port(81, name="b")), live, kind="core.v1.Service")
    assert [p["port"] for p in after["spec"]["ports"]] == [81]
    assert "ports" not in applied({"metadata": {"name": "web"}}, after, kind="core.v1.Service")["spec"]


# --- times ------------------------------------------------------------------------------------------


def test_applying_again_changes_nothing() -> None:
    live = applied(config_map({"a": "1"}))
    assert applied(config_map({"a": "1"}), live, now=LATER) == live
    bare = {key: value for key, value in live.items() if key not in ("apiVersion", "kind")}
    again = applied(config_map({"a": "1"}), bare, now=LATER)
    assert {**bare, "apiVersion": "v1", "kind": "ConfigMap"} == again


def test_applying_again_what_is_not_stored_changes_nothing_in_the_end() -> None:
    live = applied(config_map({}, labels={}))
    again = applied(config_map({}, labels={}), live, now=LATER)
    managed.keep_times(again, live)
    assert again == live
    assert entries(live) == {"me": {"f:data": {}, "f:metadata": {"f:labels": {}}}}


def test_a_change_gets_a_new_time() -> None:
    live = applied(config_map({"a": "1"}))
    after = applied(config_map({"a": "2"}), live, now=LATER)
    assert [entry["time"] for entry in after["metadata"]["managedFields"]] == [LATER]


# --- kubectl ----------------------------------------------------------------------------------------


def last_applied(data: dict[str, str]) -> dict[str, Any]:
    text = '{"apiVersion":"v1","data":%s,"kind":"ConfigMap","metadata":{"name":"cm"}}\n'  # as kubectl writes it
    return {"annotations": {LAST_APPLIED_ANNOTATION: text % str(data).replace("'", '"').replace(" ", "")}}


def test_kubectl_takes_over_from_its_client_side_apply() -> None:
    live = updated(config_map({"a": "1", "b": "1"}, **last_applied({"a": "1"})), manager="kubectl-client-side-apply")
    with pytest.raises(Conflict):
        applied(config_map({"a": "2"}), live)
    after = applied(config_map({"a": "2"}), live, manager="kubectl")
    assert after["data"] == {"a": "2", "b": "1"}
    assert after["metadata"]["annotations"] == last_applied({"a": "2"})["annotations"]


def test_kubectl_does_not_take_what_its_client_side_apply_did_not_set() -> None:
    live = updated(config_map({"a": "1", "b": "1"}, **last_applied({"a": "0"})), manager="kubectl-client-side-apply")
    with pytest.raises(Conflict) as refused:
        applied(config_map({"a": "2", "b": "2"}), live, manager="kubectl")
    assert [cause.field for cause in refused.value.causes] == [".data.a", ".data.b"]
    live["metadata"]["annotations"] = last_applied({"a": "1"})["annotations"]
    with pytest.raises(Conflict) as refused:
        applied(config_map({"a": "2", "b": "2"}), live, manager="kubectl")
    assert [cause.field for cause in refused.value.causes] == [".data.b"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"apiVersion":"v2"}', '{"apiVersion":"v1","nonsense":1}'])
def test_kubectl_cannot_use_a_broken_annotation(text: str) -> None:
    live = updated(
        config_map({"a": "1"}, annotations={LAST_APPLIED_ANNOTATION: text}), manager="kubectl-client-side-apply"
    )
    with pytest.raises(Conflict):
        applied(config_map({"a": "2"}), live, manager="kubectl")


# --- mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into"),
        ("x", "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal string into"),
        (None, "invalid object type: /, Kind="),
        ({"metadata": {"name": "cm"}}, "invalid object type: /, Kind="),
        ({"apiVersion": "v1", "kind": "Pod"}, "invalid object type: /v1, Kind=Pod"),
        ({"apiVersion": "apps/v1", "kind": "ConfigMap"}, "invalid object type: apps/v1, Kind=ConfigMap"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": []}},
            "metadata.managedFields must be nil",
        ),
    ],
)
def test_what_cannot_be_applied(config: Any, message: str) -> None:
    with pytest.raises(BadRequest) as refused:
        apply(
            intake.applied(config, CONFIG_MAP),
            None,
            kind=CONFIG_MAP,
            part=CONFIG_MAP.whole,
            manager="me",
            force=False,
            now=NOW,
        )
    assert refused.value.message.startswith(message)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"foo": 1}, ".spec.foo: field not declared in schema"),
        (
            {"ports": [{"port": "x"}]},
            '.spec.ports[port="x",protocol="TCP"].port: expected numeric (int or float), got string',
        ),
        ({"type": 1}, ".spec.type: expected string, got &value.valueUnstructured{Value:1}"),
        ({"publishNotReadyAddresses": "x"}, ".spec.publishNotReadyAddresses: expected boolean, got &{x}"),
        ({"ports": {"a": 1}}, ".spec.ports: expected list, got &{map[a:1]}"),
        ({"selector": [1, "x"]}, ".spec.selector: expected map, got &{[1 x]}"),
        ({"ports": ["x"]}, ".spec.ports: element 0: associative list with keys may not have non-map elements"),
        ({"ports": [None]}, ".spec.ports: element 0: associative list with keys may not have a null element"),
        (
            {"ports": [port(80), port(80, protocol="TCP")]},
            '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
        ),
        (
            {"ports": [port(80, targetPort=[])]},
            '.spec.ports[port=80,protocol="TCP"].targetPort: expected any scalar, got &{[]}',
        ),
        ({"externalIPs": [1]}, ".spec.externalIPs[0]: expected string, got &value.valueUnstructured{Value:1}"),
        (
            {"type": 1, "clusterIP": True},
            "errors:\n  .spec.type: expected string, got &value.valueUnstructured{Value:1}\n"
            "  .spec.clusterIP: expected string, got &value.valueUnstructured{Value:true}",
        ),
    ],
)
def test_configurations_must_fit_their_shape(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        applied({"metadata": {"name": "web", "namespace": "ns"}, "spec": spec}, kind="core.v1.Service")
    assert refused.value.message == f"failed to create typed patch object (ns/web; /v1, Kind=Service): {message}"
    assert (refused.value.code, refused.value.reason) == (500, "")


@pytest.mark.parametrize(
    ("finalizers", "message"),
    [
        ([{}], "element 0: associative list without keys has an element that's a map type"),
        (["a", "a"], 'duplicate entries for key [="a"]'),
        (["a", None], "element 1: associative list without keys has an element that's an explicit null"),
        ([[]], "element 0: not supported: associative list with lists as elements"),
    ],
)
def test_sets_must_be_sets(finalizers: list[Any], message: str) -> None:
    with pytest.raises(ApiError) as refused:
        applied(config_map(finalizers=finalizers))
    assert refused.value.message.endswith(f".metadata.finalizers: {message}")


def test_elements_without_any_key() -> None:
    config = {"metadata": {"name": "p"}, "spec": {"containers": [{"image": "x"}]}}
    with pytest.raises(ApiError) as refused:
        applied(config, kind="core.v1.Pod")
    assert refused.value.message.endswith(
        '.spec.containers: element 0: associative list with keys has an element that omits all key fields ["name"] '
        "(and doesn't have default values for any key fields)"
    )


# --- properties -------------------------------------------------------------------------------------

managers = st.sampled_from(["a", "b", "c"])
writes = st.lists(st.tuples(things, managers, st.booleans()), max_size=3)


def do(config: Any, live: Any, manager: str, *, force: bool = True, now: str = NOW) -> Any:
    """An apply to the test kind."""
    result = apply(config, live, kind=THINGS, part=THINGS.whole, manager=manager, force=force, now=now)
    return conform(result, THING)[0]


def after(history: list[tuple[Any, str, bool]]) -> Any:
    """An object after some updates and applies."""
    live = None
    for obj, manager, is_apply in history:
        if is_apply or (live is not None and "managedFields" not in live["metadata"]):
            live = do(obj, live, manager)
        else:
            new = conform(obj, THING)[0]
            managed.track(new, live, THINGS, THINGS.whole, manager=manager, now=NOW)
            live = new
    return live


# When an apply removes the last item from them, Kubernetes leaves these containers to their owners.
CONTAINERS = {"f:labels", "f:finalizers", "f:ports", "f:tags", "f:limits", "f:points"}


def missing(paths: set[tuple[str, ...]], obj: Any) -> set[str]:
    """The last steps of those paths that the object does not have."""
    return {path[-1] for path in paths - set(fieldsets.paths(managed.owned(THINGS, THINGS.whole).whole(obj)))}


@settings(deadline=None)
@given(writes, things, managers)
def test_applying_twice_is_applying_once(history: Any, config: Any, manager: str) -> None:
    once = do(config, after(history), manager)
    twice = do(config, once, manager, now=LATER)
    managed.keep_times(twice, once)
    assert twice == once


@settings(deadline=None)
@given(writes, things, managers)
def test_a_manager_owns_what_it_applied_and_it_is_there(history: Any, config: Any, manager: str) -> None:
    result = do(config, after(history), manager)
    named = set(fieldsets.paths(merging.named_fields(managed.owned(THINGS, THINGS.whole), config)))
    mine = [
        e for e in result["metadata"].get("managedFields", []) if e["operation"] == "Apply" and e["manager"] == manager
    ]
    assert {path for entry in mine for path in fieldsets.paths(entry["fieldsV1"])} == named
    assert missing(named, result) <= CONTAINERS
    # The result contains everything in the configuration.
    changed: Any = {}
    managed.owned(THINGS, THINGS.whole).compare(config, result, changed, {})
    assert not set(fieldsets.paths(changed)) & {path for path in named if leaf(path, named)}


def leaf(path: tuple[str, ...], others: set[tuple[str, ...]]) -> bool:
    return not any(other[: len(path)] == path and other != path for other in others)


@settings(deadline=None)
@given(writes, things, managers)
def test_nobody_owns_what_is_not_there(history: Any, config: Any, manager: str) -> None:
    result = do(config, after(history), manager)
    for entry in result["metadata"].get("managedFields", []):
        assert missing(set(fieldsets.paths(entry["fieldsV1"])), result) <= CONTAINERS


@settings(deadline=None)
@given(writes, things, managers)
def test_force_is_only_about_conflicts(history: Any, config: Any, manager: str) -> None:
    live = after(history)
    forced = do(config, live, manager)
    others = [e for e in (live or forced)["metadata"].get("managedFields", []) if e["manager"] != manager]
    try:
        result = do(config, live, manager, force=False)
    except Conflict:
        # Another manager owned something that it no longer owns.
        assert not all(entry in forced["metadata"]["managedFields"] for entry in others) or live_update(live, manager)
    else:
        assert result == forced


def live_update(live: Any, manager: str) -> bool:
    """Whether the manager has updated: its updates and its applies count as different managers."""
    return any(e["manager"] == manager and e["operation"] == "Update" for e in live["metadata"]["managedFields"])


@settings(deadline=None)
@given(things, things)
def test_an_applier_alone_gets_exactly_what_it_applies(first: Any, second: Any) -> None:
    live = do(first, None, "a")
    assume("managedFields" in live["metadata"])
    assert tidy(do(second, live, "a")) == tidy(do(second, None, "a"))


def tidy(value: Any) -> Any:
    """The object without the empty containers that pruning may leave behind."""
    if isinstance(value, dict):
        return {key: left for key, item in value.items() if (left := tidy(item)) not in ({}, [], None)}
    return [tidy(item) for item in value] if isinstance(value, list) else value
