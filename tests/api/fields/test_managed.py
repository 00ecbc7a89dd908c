from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from owned_objects import THINGS, kind_named, part_of, things
from recorded import case

from seamark.api.fields import fieldsets, managed
from seamark.api.fields.patch import apply_patch
from seamark.kinds.core.configmap import CONFIG_MAP
from seamark.kinds.language.decode import conform

NOW, LATER = "2025-01-01T00:00:00Z", "2025-01-01T00:00:01Z"


def tracked(
    new: dict[str, Any],
    old: dict[str, Any] | None = None,
    *,
    kind: str = "core.v1.ConfigMap",
    manager: str = "me",
    subresource: str = "",
    now: str = NOW,
) -> dict[str, Any]:
    """A copy of ``new`` as it is after the write."""
    written = kind_named(kind)
    new, kept = conform(new, written.shape)[0], copy.deepcopy(old)
    managed.track(new, old, written, part_of(written, subresource), manager=manager, now=now)
    assert old == kept
    return new


def config_map(data: dict[str, str], **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": "cm", **meta}, "data": data}


def entries(obj: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(e["manager"], e.get("time", ""), e["fieldsV1"]) for e in obj["metadata"].get("managedFields", [])]


def fields(obj: dict[str, Any]) -> Any:
    return obj["metadata"]["managedFields"][0]["fieldsV1"]


# --- recorded ---------------------------------------------------------------------------------------


def test_recorded_updates() -> None:
    created, *patches = case("apply/managed-fields-of-update")
    obj = tracked(created["body"], manager=managed.manager_name(created["agent"], ""))
    assert timeless(obj) == created["expect"]["body"]["metadata"]["managedFields"]
    for step in patches:
        new = apply_patch("merge", step["body"], obj, CONFIG_MAP.shape)
        obj = tracked(new, obj, manager=managed.manager_name(step.get("agent", ""), ""))
        assert timeless(obj) == step["expect"]["body"]["metadata"].get("managedFields", [])


def timeless(obj: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries without times, as in recordings."""
    return [{**entry, "time": "<time>"} for entry in obj["metadata"].get("managedFields", [])]


# --- creation ---------------------------------------------------------------------------------------


def test_an_entry_says_who_how_and_when() -> None:
    (entry,) = tracked(config_map({"a": "1"}))["metadata"]["managedFields"]
    assert list(entry.items()) == [
        ("manager", "me"),
        ("operation", "Update"),
        ("apiVersion", "v1"),
        ("time", NOW),
        ("fieldsType", "FieldsV1"),
        ("fieldsV1", {"f:data": {".": {}, "f:a": {}}}),
    ]


def test_the_systems_own_fields_belong_to_nobody() -> None:
    meta = {
        "generateName": "cm-",
        "namespace": "ns",
        "uid": "u",
        "resourceVersion": "5",
        "generation": 3,
        "creationTimestamp": NOW,
        "selfLink": "/x",
    }
    obj = tracked({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "cm", **meta}})
    assert fields(obj) == {"f:metadata": {"f:generateName": {}}}
    assert "managedFields" not in tracked({"metadata": {"name": "cm"}})["metadata"]


def test_fields_of_a_service() -> None:
    """As in Kubernetes: lists that are always written have no dot, atomic maps no parts, the status no owner."""
    service = {
        "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["example.com/x"]},
        "spec": {
            "internalTrafficPolicy": "Cluster",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
            "selector": {"app": "web"},
            "sessionAffinity": "None",
            "type": "ClusterIP",
        },
        "status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}},
    }
    assert fields(tracked(service, kind="core.v1.Service")) == {
        "f:metadata": {
            "f:labels": {".": {}, "f:app": {}},
            "f:finalizers": {".": {}, 'v:"example.com/x"': {}},
        },
        "f:spec": {
            "f:internalTrafficPolicy": {},
            "f:ports": {
                ".": {},
                'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:protocol": {}, "f:targetPort": {}},
            },
            "f:selector": {},
            "f:sessionAffinity": {},
            "f:type": {},
        },
    }


def test_fields_of_a_deployment() -> None:
    deployment = {
        "metadata": {
            "name": "d",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-1"}],
        },
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "a"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {
                "metadata": {"labels": {"app": "a"}},
                "spec": {
                    "containers": [
                        {"name": "c", "image": "example/app:1", "env": [{"name": "A", "value": "1"}], "args": ["x"]}
                    ],
                    "securityContext": {},
                    "tolerations": [{"key": "x"}],
                },
            },
        },
    }
    assert fields(tracked(deployment, kind="apps.v1.Deployment")) == {
        "f:metadata": {"f:ownerReferences": {".": {}, 'k:{"uid":"u-1"}': {}}},
        "f:spec": {
            "f:replicas": {},
            "f:selector": {},
            "f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}}, "f:type": {}},
            "f:template": {
                "f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                "f:spec": {
                    "f:containers": {
                        'k:{"name":"c"}': {
                            ".": {},
                            "f:name": {},
                            "f:image": {},
                            "f:args": {},
                            "f:env": {".": {}, 'k:{"name":"A"}': {".": {}, "f:name": {}, "f:value": {}}},
                            "f:resources": {},
                        }
                    },
                    "f:securityContext": {},
                    "f:tolerations": {},
                },
            },
        },
    }


# --- updates ----------------------------------------------------------------------------------------


def test_changed_fields_change_hands() -> None:
    first = tracked(config_map({"a": "1", "b": "1"}, labels={"x": "y"}), manager="first")
    new = config_map({"a": "2", "b": "1", "c": "1"}, labels={"x": "y"})
    assert entries(tracked(new, first, manager="second", now=LATER)) == [
        ("first", NOW, {"f:data": {".": {}, "f:b": {}}, "f:metadata": {"f:labels": {".": {}, "f:x": {}}}}),
        ("second", LATER, {"f:data": {"f:a": {}, "f:c": {}}}),
    ]


def test_removed_fields_leave_all_entries_and_times_stay() -> None:
    first = tracked(config_map({"a": "1", "b": "1"}), manager="first")
    second = tracked(config_map({"a": "1", "b": "1", "c": "1"}), first, manager="second")
    third = tracked(config_map({"b": "1"}), second, manager="third", now=LATER)
    assert entries(third) == [("first", NOW, {"f:data": {".": {}, "f:b": {}}})]
    assert "managedFields" not in tracked({"metadata": {"name": "cm"}}, third)["metadata"]


def test_the_same_manager_keeps_what_it_has() -> None:
    first = tracked(config_map({"a": "1", "b": "1"}))
    second = tracked(config_map({"a": "2", "b": "1"}), first, now=LATER)
    assert entries(second) == [("me", LATER, {"f:data": {".": {}, "f:a": {}, "f:b": {}}})]
    third = tracked(config_map({"a": "2"}), second, now="2025-01-01T00:00:09Z")
    assert entries(third) == [("me", LATER, {"f:data": {".": {}, "f:a": {}}})]


def test_a_write_that_changes_nothing_changes_no_entry() -> None:
    first = tracked(config_map({"a": "1"}))
    for meta in ({}, {"managedFields": copy.deepcopy(first["metadata"]["managedFields"])}):
        assert tracked(config_map({"a": "1"}, **meta), first, manager="other", now=LATER) == first


def test_entries_are_sorted_by_operation_time_and_name() -> None:
    obj = tracked(config_map({"a": "1"}), manager="z")
    for manager, now in (("c", LATER), ("b", LATER), ("d", NOW)):
        obj = tracked(config_map({**obj["data"], manager: "1"}), obj, manager=manager, now=now)
    assert [name for name, *_ in entries(obj)] == ["d", "z", "b", "c"]


def test_elements_of_lists_are_owned_by_key() -> None:
    def service(*ports: dict[str, Any]) -> dict[str, Any]:
        return {"metadata": {"name": "web"}, "spec": {"ports": list(ports)}}

    a, b = {"name": "a", "port": 80, "protocol": "TCP"}, {"name": "b", "port": 80, "protocol": "UDP"}
    old = tracked(service(a, b), kind="core.v1.Service", manager="first")
    new = tracked(service({**b, "name": "c"}), old, kind="core.v1.Service", manager="second")
    tcp, udp = (fieldsets.key_step({"port": 80, "protocol": protocol}) for protocol in ("TCP", "UDP"))
    first, second = (fields for _, _, fields in entries(new))
    assert tcp not in first["f:spec"]["f:ports"]
    assert "f:name" not in first["f:spec"]["f:ports"][udp]
    assert second == {"f:spec": {"f:ports": {udp: {"f:name": {}}}}}


def test_objects_without_entries_stay_without() -> None:
    old = config_map({"a": "1"}, uid="u")
    assert "managedFields" not in tracked(config_map({"a": "2"}), old)["metadata"]


@pytest.mark.parametrize("reset", [[], [{}]])
def test_entries_can_be_reset(reset: Any) -> None:
    old = tracked(config_map({"a": "1"}))
    new = config_map({"a": "2"})
    new["metadata"]["managedFields"] = reset
    managed.track(new, old, CONFIG_MAP, CONFIG_MAP.whole, manager="me", now=LATER)
    assert "managedFields" not in new["metadata"]


def test_entries_can_be_edited() -> None:
    old = tracked(config_map({"a": "1", "b": "1"}), manager="first")
    sent = copy.deepcopy(old["metadata"]["managedFields"])
    sent[0]["manager"], sent[0]["fieldsV1"] = "renamed", {"f:data": {"f:a": {}, "f:b": None}, "z:later": {}}
    new = tracked(config_map({"a": "1", "b": "2"}, managedFields=sent), old, manager="second", now=LATER)
    assert entries(new) == [
        ("renamed", NOW, {"f:data": {"f:a": {}}}),
        ("second", LATER, {"f:data": {"f:b": {}}}),
    ]


@pytest.mark.parametrize(
    "broken",
    [
        {"operation": "Delete"},
        {"apiVersion": ""},
        {"fieldsType": "FieldsV2"},
        {"fieldsV1": {"nonsense": {}}},
    ],
)
def test_broken_entries_are_ignored(broken: dict[str, Any]) -> None:
    old = tracked(config_map({"a": "1"}))
    sent = [{**old["metadata"]["managedFields"][0], **broken}]
    assert tracked(config_map({"a": "1"}, managedFields=sent), old) == old


def test_entries_of_versions_that_do_not_exist_go_away() -> None:
    old = tracked(config_map({"a": "1"}))
    sent = [*old["metadata"]["managedFields"], {**old["metadata"]["managedFields"][0], "apiVersion": "v9"}]
    new = tracked(config_map({"a": "1", "b": "1"}, managedFields=sent), old, manager="other")
    assert [name for name, *_ in entries(new)] == ["me", "other"]


# --- subresources -----------------------------------------------------------------------------------


def pod(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}, **more}


def test_status_and_spec_are_owned_by_those_who_may_write_them() -> None:
    condition = {"type": "Ready", "status": "True"}
    created = tracked(pod(status={"phase": "Running"}), kind="core.v1.Pod")
    assert "f:status" not in fields(created)
    new = pod(status={"phase": "Running", "podIP": "10.0.0.1", "conditions": [condition]})
    new["spec"]["nodeName"] = "ignored"
    new["metadata"]["ownerReferences"] = [{"uid": "ignored"}]
    new = tracked(new, created, kind="core.v1.Pod", manager="kubelet", subresource="status", now=LATER)
    assert new["metadata"]["managedFields"][0] == created["metadata"]["managedFields"][0]
    assert new["metadata"]["managedFields"][1] == {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": LATER,
        "fieldsType": "FieldsV1",
        "fieldsV1": {
            "f:status": {
                "f:podIP": {},
                "f:conditions": {
                    ".": {},
                    'k:{"type":"Ready"}': {
                        ".": {},
                        "f:type": {},
                        "f:status": {},
                        "f:lastProbeTime": {},
                        "f:lastTransitionTime": {},
                    },
                },
            }
        },
        "subresource": "status",
    }


def test_a_put_without_status_takes_nothing_from_its_owners() -> None:
    created = tracked(pod(), kind="core.v1.Pod")
    running = tracked(
        pod(status={"phase": "Running"}), created, kind="core.v1.Pod", manager="kubelet", subresource="status"
    )
    assert (
        tracked(pod(), running, kind="core.v1.Pod")["metadata"]["managedFields"] == running["metadata"]["managedFields"]
    )


def test_subresources_cannot_edit_entries() -> None:
    created = tracked(pod(), kind="core.v1.Pod")
    new = pod(status={"phase": "Running"})
    new["metadata"]["managedFields"] = [{}]
    new = tracked(new, created, kind="core.v1.Pod", subresource="status", now=LATER)
    assert [(e["manager"], e.get("subresource")) for e in new["metadata"]["managedFields"]] == [
        ("me", None),
        ("me", "status"),
    ]


def test_labels_of_a_deployment_are_not_written_through_status() -> None:
    old = tracked({"metadata": {"name": "d"}, "spec": {}}, kind="apps.v1.Deployment")
    new = {"metadata": {"name": "d", "labels": {"a": "b"}}, "spec": {}, "status": {"replicas": 1}}
    old["metadata"]["managedFields"] = tracked(config_map({"a": "1"}))["metadata"]["managedFields"]
    old["metadata"]["managedFields"][0]["apiVersion"] = "apps/v1"
    new = tracked(new, old, kind="apps.v1.Deployment", subresource="status", manager="ctl")
    assert new["metadata"]["managedFields"][0]["fieldsV1"] == {"f:status": {"f:replicas": {}}}


@pytest.mark.parametrize(
    ("subresource", "owned"),
    [
        (
            "resize",
            {
                "f:containers": {
                    'k:{"name":"c"}': {"f:resources": {"f:requests": {".": {}, "f:cpu": {}}}},
                }
            },
        ),
        (
            "ephemeralcontainers",
            {"f:ephemeralContainers": {".": {}, 'k:{"name":"e"}': {".": {}, "f:name": {}, "f:resources": {}}}},
        ),
    ],
)
def test_subresources_that_edit_parts_of_the_spec(subresource: str, owned: Any) -> None:
    created = tracked(pod(), kind="core.v1.Pod")
    new = pod(status={"phase": "Running"})
    new["metadata"]["labels"] = {"a": "b"}
    new["spec"]["containers"][0].update(image="y", resources={"requests": {"cpu": "1"}})
    new["spec"]["ephemeralContainers"] = [{"name": "e"}]
    new = tracked(new, created, kind="core.v1.Pod", subresource=subresource, now=LATER)
    assert new["metadata"]["managedFields"][1]["fieldsV1"] == {"f:spec": owned}


# --- too many managers ------------------------------------------------------------------------------


def test_the_oldest_of_too_many_managers_are_merged() -> None:
    obj = tracked(config_map({"k0": "1"}), manager="m0")
    for number in range(1, 13):
        now = f"2025-01-01T00:00:{number:02d}Z"
        obj = tracked(config_map({**obj["data"], f"k{number}": "1"}), obj, manager=f"m{number}", now=now)
        if number == 10:
            assert entries(obj)[0] == ("ancient-changes", LATER, {"f:data": {".": {}, "f:k0": {}, "f:k1": {}}})
    found = entries(obj)
    assert [name for name, *_ in found] == ["ancient-changes", *(f"m{number}" for number in range(4, 13))]
    assert found[0][1] == "2025-01-01T00:00:03Z"
    assert found[0][2] == {"f:data": {".": {}, **{f"f:k{number}": {} for number in range(4)}}}


# --- times ------------------------------------------------------------------------------------------


def test_times_are_kept_if_nothing_else_changed() -> None:
    old = tracked(config_map({"a": "1"}))
    new = copy.deepcopy(old)
    new["metadata"]["managedFields"][0]["time"] = LATER
    changed = copy.deepcopy(new)
    changed["data"]["a"] = "2"
    managed.keep_times(new, old)
    assert new == old
    managed.keep_times(changed, old)
    assert changed["metadata"]["managedFields"][0]["time"] == LATER
    fresh = config_map({"a": "1"})
    managed.keep_times(fresh, old)
    assert fresh == config_map({"a": "1"})


# --- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "field_manager", "name"),
    [
        ("kubectl/v1.99 (x)", "", "kubectl"),
        ("my-controller", "", "my-controller"),
        ("kubectl/v1", "mine", "mine"),
        ("", "", "unknown"),
        ("/x", "", "unknown"),
        ("Mozilla 5\x00\n é", "", "Mozilla 5 é"),
        ("x" * 200, "", "x" * 128),
        ("é" * 100, "", "é" * 64),
        ("a" + "é" * 100, "", "a" + "é" * 63),
    ],
)
def test_managers_are_named_by_their_agent(agent: str, field_manager: str, name: str) -> None:
    assert managed.manager_name(agent, field_manager) == name


# --- properties -------------------------------------------------------------------------------------


def write(new: Any, old: Any, manager: str) -> Any:
    new = copy.deepcopy(new)
    managed.track(new, old, THINGS, THINGS.whole, manager=manager, now=NOW)
    return new


@settings(deadline=None)
@given(st.lists(st.tuples(things, st.sampled_from(["a", "b", "c"])), min_size=1, max_size=4))
def test_every_leaf_has_exactly_one_updater(writes: list[tuple[Any, str]]) -> None:
    old = None
    for new, manager in writes:
        # Without entries, tracking ends; that is another test's topic.
        if old is not None and "managedFields" not in old["metadata"]:
            return
        old = write(new, old, manager)
    assert old is not None
    plan = managed.owned(THINGS, THINGS.whole)
    whole = {path for path in fieldsets.paths(plan.whole(old)) if path not in (("f:metadata",), ("f:spec",))}
    owned = [path for e in old["metadata"].get("managedFields", []) for path in fieldsets.paths(e["fieldsV1"])]
    assert len(owned) == len(set(owned))
    assert set(owned) <= whole
    # A container that was empty when it was set keeps its owner after it is filled; all leaves have an owner.
    leaves = {path for path in whole if not any(other[: len(path)] == path and other != path for other in whole)}
    assert leaves <= set(owned)
