"""Kinds that appear and vanish while the server runs: everything that walks kinds goes along."""

import asyncio
import gc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from served import served

from protobuf_wire import envelope
from seamark.errors import Conflict, NotFound
from seamark.kinds.resource import CONFIGMAPS, Resource
from seamark.store.protocol import Write
from widgets import NAME, WIDGETS, shape, widget, widget_kind

ALL = "/apis/example.com/v1/widgets"
BASE = "/apis/example.com/v1/namespaces/default/widgets"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
INITIAL = "watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
AGGREGATED = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}


@pytest.fixture
async def widgets(api):
    await api.api.add_kind(widget_kind())
    return api


def told(events):
    return [(e["type"], e["object"]["metadata"]["name"]) for e in events]


# --- verbs -------------------------------------------------------------------------------------------


async def test_before_it_is_added_nothing_is_there(api):
    assert (await api.ask("GET", BASE)).status == 404
    assert (await api.ask("POST", BASE, widget("a"))).status == 404


async def test_objects_are_created_read_changed_and_deleted(widgets):
    made = await widgets.post(BASE, widget("a", size=3, parts=[{"name": "wheel", "count": 4}], none=1))
    assert (made["kind"], made["apiVersion"]) == ("Widget", "example.com/v1")
    assert made["spec"] == {"size": 3, "parts": [{"name": "wheel", "count": 4}]}
    assert made["metadata"]["generation"] == 1
    assert await widgets.get(f"{BASE}/a") == made
    listed = await widgets.get(ALL)
    assert (listed["kind"], [item["metadata"]["name"] for item in listed["items"]]) == ("WidgetList", ["a"])

    put = await widgets.put(f"{BASE}/a", {**made, "spec": {"size": 4}, "status": {"phase": "no"}})
    assert (put["spec"], put.get("status"), put["metadata"]["generation"]) == ({"size": 4}, None, 2)
    merged = await widgets.merge(f"{BASE}/a", {"spec": {"color": "red", "size": None}})
    assert (merged["spec"], merged["metadata"]["generation"]) == ({"color": "red"}, 3)
    operations = [{"op": "add", "path": "/spec/tags", "value": ["x"]}, {"op": "remove", "path": "/spec/color"}]
    patched = await widgets.done("PATCH", f"{BASE}/a", operations, type="application/json-patch+json")
    assert patched["spec"] == {"tags": ["x"]}
    status = await widgets.merge(f"{BASE}/a/status", {"status": {"phase": "Ready"}, "spec": {"size": 9}})
    assert (status["status"], status["spec"]) == ({"phase": "Ready"}, {"tags": ["x"]})
    assert status["metadata"]["generation"] == patched["metadata"]["generation"]

    assert (await widgets.delete(f"{BASE}/a"))["status"] == "Success"
    assert (await widgets.ask("GET", f"{BASE}/a")).json["message"] == 'widgets.example.com "a" not found'
    await widgets.cache_equals_store()


async def test_its_own_rules_refuse_what_they_must(widgets):
    made = await widgets.post(BASE, widget("a", size=3))
    wrong = await widgets.ask("POST", BASE, widget("b", size="three"))
    assert (wrong.status, "cannot unmarshal string" in wrong.json["message"]) == (400, True)
    strict = await widgets.ask("POST", f"{BASE}?fieldValidation=Strict", widget("b", weight=1))
    assert (strict.status, 'unknown field "spec.weight"' in strict.json["message"]) == (400, True)
    gadget = await widgets.ask("POST", BASE, widget("b") | {"kind": "Gadget"})
    message = 'Gadget.example.com "b" is invalid: kind: Invalid value: "Gadget": must be Widget'
    assert (gadget.status, gadget.json["message"]) == (422, message)
    assert (await widgets.ask("PUT", f"{BASE}/a", made | {"kind": "Gadget"})).status == 422
    newer = await widgets.ask("POST", BASE, widget("b") | {"apiVersion": "example.com/v2"})
    message = "the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)"
    assert (newer.status, newer.json["message"]) == (400, message)
    del made["metadata"]["resourceVersion"]
    assert (await widgets.ask("PUT", f"{BASE}/a", made)).status == 422
    strategic = await widgets.ask("PATCH", f"{BASE}/a", {}, type="application/strategic-merge-patch+json")
    assert strategic.status == 415
    assert strategic.json["message"].endswith("application/merge-patch+json, application/apply-patch+yaml")
    body = envelope("example.com/v1", "Widget", b"")
    encoded = await widgets.ask("POST", BASE, body, type="application/vnd.kubernetes.protobuf")
    assert (encoded.status, "does not implement the protobuf marshalling" in encoded.json["message"]) == (400, True)
    assert (await widgets.ask("POST", BASE.replace("default", "nowhere"), widget("a"))).status == 404


async def test_apply_merges_lists_by_their_keys(widgets):
    first = widget("a", parts=[{"name": "wheel", "count": 4}, {"name": "seat", "count": 1}], tags=["x"])
    await widgets.done("PATCH", f"{BASE}/a?fieldManager=one", first, type=APPLY)
    second = widget("a", parts=[{"name": "door", "count": 2}], tags=["y"], size=1)
    both = await widgets.done("PATCH", f"{BASE}/a?fieldManager=two", second, type=APPLY)
    assert [part["name"] for part in both["spec"]["parts"]] == ["wheel", "seat", "door"]
    assert both["spec"]["tags"] == ["x", "y"]
    taken = widget("a", parts=[{"name": "wheel", "count": 5}])
    conflict = await widgets.ask("PATCH", f"{BASE}/a?fieldManager=two", taken, type=APPLY)
    assert conflict.status == 409
    assert '.spec.parts[name="wheel"].count' in conflict.json["message"]
    less = await widgets.done("PATCH", f"{BASE}/a?fieldManager=one", widget("a", tags=["x"]), type=APPLY)
    assert [part["name"] for part in less["spec"]["parts"]] == ["door"]
    odd = await widgets.ask("PATCH", f"{BASE}/a?fieldManager=one", widget("a", weight=1), type=APPLY)
    assert ".spec.weight: field not declared in schema" in odd.json["message"]


async def test_tables_have_its_own_columns(widgets):
    await widgets.post(BASE, widget("a", size=3))
    table = await widgets.get(BASE, headers=TABLE)
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size", "Age"]
    assert table["rows"][0]["cells"][:2] == ["a", 3]


# --- what describes the API --------------------------------------------------------------------------


async def test_discovery_has_it_while_it_is_served(api):
    async def seen():
        groups = [group["name"] for group in (await api.get("/apis"))["groups"]]
        paths = (await api.get("/"))["paths"]
        aggregated = await api.ask("GET", "/apis", headers=AGGREGATED)
        names = [item["metadata"]["name"] for item in aggregated.json["items"]]
        resources = (await api.ask("GET", "/apis/example.com/v1")).status
        return "example.com" in groups, "/apis/example.com/v1" in paths, "example.com" in names, resources == 200

    tag = (await api.ask("GET", "/apis", headers=AGGREGATED)).header("etag")
    assert await seen() == (False, False, False, False)
    await api.api.add_kind(widget_kind())
    assert await seen() == (True, True, True, True)
    again = await api.ask("GET", "/apis", headers={**AGGREGATED, "if-none-match": tag})
    assert (again.status, again.header("etag") != tag) == (200, True)
    plain, status = (await api.get("/apis/example.com/v1"))["resources"]
    assert (plain["shortNames"], plain["categories"], plain["singularName"]) == (["wd"], ["all"], "widget")
    assert (status["name"], status["kind"]) == ("widgets/status", "Widget")
    await api.api.remove_kind(WIDGETS)
    assert await seen() == (False, False, False, False)
    assert (await api.ask("GET", "/apis", headers={**AGGREGATED, "if-none-match": tag})).status == 304


async def test_openapi_has_it_while_it_is_served(api):
    async def v3():
        answer = await api.ask("GET", "/openapi/v3/apis/example.com/v1")
        return answer.json if answer.status == 200 else None

    before, old_index = await api.ask("GET", "/openapi/v2"), (await api.get("/openapi/v3"))["paths"]
    assert (await v3(), NAME in before.json["definitions"]) == (None, False)
    await api.api.add_kind(widget_kind())
    document = await v3()
    schema = document["components"]["schemas"][NAME]
    assert schema["description"] == "A Widget is what tests are made of."
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    spec = document["components"]["schemas"]["com.example.v1.WidgetSpec"]["properties"]
    assert spec["parts"]["x-kubernetes-list-map-keys"] == ["name"]
    assert f"{NAME}List" in document["components"]["schemas"]
    one = document["paths"]["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"]
    assert "application/strategic-merge-patch+json" not in one["patch"]["requestBody"]["content"]
    assert "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/status" in document["paths"]
    index = (await api.get("/openapi/v3"))["paths"]
    address = index.pop("apis/example.com/v1")["serverRelativeURL"]
    assert index == old_index  # clients need not fetch the other documents again
    whole = await api.ask("GET", "/openapi/v2", headers={"if-none-match": before.header("etag")})
    assert (whole.status, NAME in whole.json["definitions"], f"{ALL}" in whole.json["paths"]) == (200, True, True)
    # Another shape has another address, for clients keep documents by it.
    await api.api.add_kind(widget_kind(shape({"weight": "int32 keep"})))
    changed = (await api.get("/openapi/v3"))["paths"]["apis/example.com/v1"]["serverRelativeURL"]
    assert changed != address
    assert (await api.ask("GET", address)).header("location") == changed
    await api.api.remove_kind(WIDGETS)
    assert await v3() is None
    assert (await api.ask("GET", "/openapi/v2")).body == before.body


# --- coming and going --------------------------------------------------------------------------------


async def test_watches_end_and_paths_vanish_with_the_kind(widgets):
    await widgets.post(BASE, widget("a"))
    everywhere = await widgets.watch(f"{ALL}?watch=1")
    one = await widgets.watch(f"{BASE}?watch=1&fieldSelector=metadata.name%3Da")
    other = await widgets.watch("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=1")
    cluster = widgets.api.cluster("tester")
    listing = await cluster.list(WIDGETS)
    local = cluster.watch(WIDGETS, since=listing.version)
    assert (await anext(local)).type == "BOOKMARK"
    await widgets.merge(f"{BASE}/a", {"spec": {"size": 1}})
    await everywhere.wait_for(2)
    await widgets.api.remove_kind(WIDGETS)
    assert told(await everywhere.ended()) == [("ADDED", "a"), ("MODIFIED", "a")]
    assert told(await one.ended()) == [("ADDED", "a"), ("MODIFIED", "a")]
    assert [change.type async for change in local] == ["MODIFIED"]
    assert not other.finished
    assert {watch.watching.selection.kind.resource for watch in widgets.api.watches.open} == {CONFIGMAPS}
    for method, path in (("GET", ALL), ("GET", f"{BASE}/a"), ("DELETE", f"{BASE}/a"), ("GET", f"{ALL}?watch=1")):
        assert (await widgets.ask(method, path)).status == 404
    with pytest.raises(NotFound):
        await cluster.get(WIDGETS, "a", namespace="default")
    with pytest.raises(NotFound):
        await anext(cluster.watch(WIDGETS, since=listing.version))


async def test_a_request_under_way_when_the_kind_vanishes_finds_nothing(widgets):
    await widgets.post(BASE, widget("a"))
    writing = asyncio.ensure_future(widgets.ask("PATCH", f"{BASE}/a", {"spec": {"size": 1}}, type=MERGE))
    await asyncio.sleep(0)
    await widgets.api.remove_kind(WIDGETS)
    assert (await writing).status in (200, 404)


async def test_objects_in_the_store_are_there_when_the_kind_comes_back(widgets):
    for number in range(3):
        await widgets.post(BASE, widget(f"w{number}", size=number))
    version = (await widgets.get(ALL))["metadata"]["resourceVersion"]
    await widgets.merge(f"{BASE}/w0", {"spec": {"size": 10}})
    await widgets.api.remove_kind(WIDGETS)
    await widgets.api.add_kind(widget_kind())
    listed = await widgets.get(ALL)
    assert {item["metadata"]["name"]: item["spec"]["size"] for item in listed["items"]} == {"w0": 10, "w1": 1, "w2": 2}
    # What happened before the kind came is still in the store's log.
    lines = await widgets.watch(f"{ALL}?watch=1&resourceVersion={version}")
    await widgets.delete(f"{BASE}/w1")
    assert told(await lines.wait_for(2)) == [("MODIFIED", "w0"), ("DELETED", "w1")]
    await widgets.cache_equals_store()


async def test_writes_by_another_server_while_the_kind_is_read_are_not_lost(api, monkeypatch):
    """Another server of the same store has the kind already, and goes on writing while this one reads its objects."""
    cache = api.api.cache
    await api.api.add_kind(widget_kind())
    await api.post(BASE, widget("old"))
    await api.post(BASE, widget("gone"))
    await api.api.remove_kind(WIDGETS)
    rows = (await api.store.read("/example.com/", "/example.com0")).rows
    reading = type(cache)._fill

    async def meanwhile(self, collection, revision):
        value = rows[0].value
        await write(api.store, "/example.com/widgets/default/new", value)
        await reading(self, collection, revision)
        await write(api.store, "/example.com/widgets/default/gone", None)

    monkeypatch.setattr(type(cache), "_fill", meanwhile)
    await api.api.add_kind(widget_kind())
    await api.cache_equals_store()
    assert sorted(cache.of(WIDGETS).entries) == ["default/new", "default/old"]


async def write(store, key, value):
    row = next(iter((await store.read(key, key + "\0")).rows), None)
    await store.commit([Write(key, value, row.revision if row else 0)])


async def test_another_shape_counts_from_then_on(widgets):
    await widgets.post(BASE, widget("a", size=3))
    old = await widgets.watch(f"{ALL}?watch=1")
    await old.wait_for(1)
    await widgets.api.add_kind(widget_kind(shape({"weight": "int32 keep"})))
    await old.ended()  # so that clients come back to the new rules
    made = await widgets.post(BASE, widget("b", size=3, weight=4))
    assert made["spec"] == {"weight": 4}
    applied = await widgets.done("PATCH", f"{BASE}/b?fieldManager=one&force=true", widget("b", weight=5), type=APPLY)
    assert applied["spec"] == {"weight": 5}
    # What is stored is not touched; the next write brings it into its new form.
    assert (await widgets.get(f"{BASE}/a"))["spec"] == {"size": 3}
    assert (await widgets.merge(f"{BASE}/a", {"spec": {"weight": 1}}))["spec"] == {"weight": 1}


async def test_versions_of_a_kind_share_their_objects(widgets):
    beta = Resource("example.com", "v1beta1", "widgets", "Widget")
    await widgets.api.add_kind(widget_kind(resource=beta))
    await widgets.post(BASE, widget("a", size=3))
    assert (await widgets.get(f"{BASE.replace('v1', 'v1beta1')}/a"))["apiVersion"] == "example.com/v1beta1"
    await widgets.api.remove_kind(WIDGETS)
    assert (await widgets.ask("GET", ALL)).status == 404
    assert (await widgets.get(f"{BASE.replace('v1', 'v1beta1')}/a"))["spec"] == {"size": 3}
    await widgets.api.remove_kind(beta)
    assert (await widgets.ask("GET", ALL.replace("v1", "v1beta1"))).status == 404


async def test_a_kind_of_a_taken_name_is_refused(widgets):
    with pytest.raises(Conflict, match=r"Widget is the kind of widgets\.example\.com already"):
        await widgets.api.add_kind(widget_kind(resource=Resource("example.com", "v1", "gadgets", "Widget")))
    assert (await widgets.ask("GET", "/apis/example.com/v1/gadgets")).status == 404
    with pytest.raises(NotFound):
        widgets.api.cache.of(Resource("example.com", "v1", "gadgets", "Widget"))


async def test_nothing_remembers_a_kind_that_is_gone(api):
    kind = widget_kind()
    kept = [weakref.ref(kind), weakref.ref(kind.shape), weakref.ref(kind.shape.fields["spec"].type)]
    await api.api.add_kind(kind)
    del kind
    lines = await api.watch(f"{ALL}?{INITIAL}")
    await api.post(BASE, widget("a", size=3, parts=[{"name": "wheel"}]))
    await api.merge(f"{BASE}/a", {"spec": {"color": "red"}})
    await api.merge(f"{BASE}/a/status", {"status": {"phase": "Ready"}})
    await api.done("PATCH", f"{BASE}/a?fieldManager=one&force=true", widget("a", size=1), type=APPLY)
    await api.get(BASE, headers=TABLE)
    await api.get("/openapi/v2")
    await api.get("/openapi/v3/apis/example.com/v1")
    await api.get("/apis/example.com/v1")
    await api.api.cluster("tester").list(WIDGETS)
    await lines.wait_for(4)
    await api.delete(f"{BASE}/a")
    await api.api.remove_kind(WIDGETS)
    await lines.ended()
    await api.get("/openapi/v2")  # made anew, without it
    del lines
    gc.collect()
    assert [ref() for ref in kept] == [None, None, None]


# --- any order of events -----------------------------------------------------------------------------

NAMES = ("a", "b", "c")
STEPS = st.one_of(
    st.tuples(st.sampled_from(("create", "change", "delete")), st.sampled_from(NAMES)),
    st.tuples(st.sampled_from(("add", "remove", "watch")), st.just("")),
)


@settings(max_examples=40)
@given(st.lists(STEPS, max_size=25))
async def test_whatever_comes_and_goes_the_server_has_what_the_store_has(steps):
    """Against a model: objects live on in the store while their kind is away."""
    model, here, watches = {}, False, []
    async with served() as api:
        for step, name in steps:
            present = here and name in model
            if step == "add":  # or replace
                await api.api.add_kind(widget_kind())
                here = True
            elif step == "remove":
                await api.api.remove_kind(WIDGETS)
                here = False
            elif step == "watch" and here:
                watches.append(await api.watch(f"{ALL}?watch=1"))
            elif step == "create":
                answer = await api.ask("POST", BASE, widget(name, size=0))
                assert answer.status == (404 if not here else 409 if present else 201)
                if here:
                    model.setdefault(name, 0)
            elif step == "change":
                patch = {"spec": {"size": model.get(name, 0) + 1}}
                assert (await api.ask("PATCH", f"{BASE}/{name}", patch, type=MERGE)).status == (200 if present else 404)
                if present:
                    model[name] += 1
            elif step == "delete":
                assert (await api.ask("DELETE", f"{BASE}/{name}")).status == (200 if present else 404)
                if present:
                    del model[name]
            if step in ("add", "remove"):
                assert all(lines.finished for lines in watches)
                watches.clear()
            if here:
                await api.cache_equals_store()
                items = (await api.get(ALL))["items"]
                assert {item["metadata"]["name"]: item["spec"]["size"] for item in items} == model
        assert len(api.api.watches.open) == len(watches)
