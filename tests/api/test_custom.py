"""Definitions are followed: their kinds appear, change and vanish while the server runs."""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import pytest
from custom_resources import BASE, DEFINITIONS, NAME, defined, definition, established, version, widget
from served import OTHER, Answer, Served, served

from seamark.api import custom
from seamark.api.http.wire.incoming import MAX_BODY
from seamark.api.write.values import LARGEST_OBJECT
from seamark.kinds.kind import Kind
from seamark.kinds.resource import DEFINITIONS as RESOURCE
from seamark.store.opening import open_store
from seamark.store.protocol import StoreError, Write


async def until(api: Served, path: str, status: int = 200) -> None:
    """Return when the path is answered with this status: definitions take effect a moment after they are written."""
    while (await api.ask("GET", path)).status != status:
        await asyncio.sleep(0.001)


async def test_an_established_kind_is_served(api: Served) -> None:
    await defined(api, shortNames=["wd"])
    made = await api.post(BASE, widget("a", size=3))
    assert (made["metadata"]["generation"], made["spec"]) == (1, {"size": 3})
    refused = await api.ask("POST", BASE, widget("b", size=30))
    assert refused.json["details"]["causes"][0]["message"] == (
        "Invalid value: 30: spec.size in body should be less than or equal to 10"
    )
    kinds = [group["name"] for group in (await api.get("/apis"))["groups"]]
    assert "example.com" in kinds


async def test_who_may_not_define_or_read_is_refused() -> None:
    async with served(rbac=True) as api:
        refused = await api.ask("POST", DEFINITIONS, definition(), token=OTHER)
        assert refused.status == 403
        await defined(api)
        assert (await api.ask("GET", BASE, token=OTHER)).status == 403


async def test_kinds_are_served_again_after_a_restart(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with served(url=url) as api:
        await defined(api)
        await api.post(BASE, widget("a", size=3))
    async with served(url=url) as api:
        await api.api.definitions.caught_up.wait()
        assert [item["metadata"]["name"] for item in (await api.get(BASE))["items"]] == ["a"]


async def test_a_definition_takes_its_instances_along(api: Served) -> None:
    await defined(api)
    await api.post(BASE, widget("a"))
    held = widget("b")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await api.post(BASE, held)
    lines = await api.watch(f"{BASE}?watch=1&resourceVersion=0")
    await api.delete(f"{DEFINITIONS}/{NAME}")
    await until(api, f"{BASE}/a", 404)
    refused = await api.ask("POST", BASE, widget("c"))
    assert (refused.status, "is terminating" in refused.json["message"]) == (403, True)
    await api.merge(f"{BASE}/b", {"metadata": {"finalizers": None}})
    assert ("DELETED", "b") in [(e["type"], e["object"]["metadata"]["name"]) for e in await lines.ended()]
    await until(api, f"{DEFINITIONS}/{NAME}", 404)
    await until(api, BASE, 404)
    assert not [row for row in (await api.store.read("/", "0")).rows if "/widgets/" in row.key]


async def test_instances_of_a_version_that_is_no_longer_served_go_too(api: Served) -> None:
    await defined(api)
    await api.post(BASE, widget("a"))
    off = definition(version() | {"served": False})["spec"]["versions"]
    await api.merge(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": off}})
    await until(api, BASE, 404)
    await api.delete(f"{DEFINITIONS}/{NAME}")
    await until(api, f"{DEFINITIONS}/{NAME}", 404)
    assert not [row for row in (await api.store.read("/", "0")).rows if "/widgets/" in row.key]


async def test_a_deletion_goes_on_after_a_restart(tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    async with served(url=url) as api:
        await defined(api)
        held = widget("b")
        held["metadata"]["finalizers"] = ["example.com/hold"]
        await api.post(BASE, held)
        await api.delete(f"{DEFINITIONS}/{NAME}")
    async with served(url=url) as api:
        await api.api.definitions.caught_up.wait()
        assert (await api.ask("POST", BASE, widget("c"))).status == 403
        await api.merge(f"{BASE}/b", {"metadata": {"finalizers": None}})
        await until(api, f"{DEFINITIONS}/{NAME}", 404)


async def test_names_are_free_at_the_moment_when_their_definition_is_gone(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may know it, too: what that one accepts is not refused here."""
    definitions = api.api.definitions
    finish, gone, go_on = definitions._finish, asyncio.Event(), asyncio.Event()

    async def finish_slowly(name: str, found: Any) -> None:
        await finish(name, found)
        gone.set()
        await go_on.wait()

    monkeypatch.setattr(definitions, "_finish", finish_slowly)
    await defined(api)
    await api.post(DEFINITIONS, definition(plural="wonders"))
    path = f"{DEFINITIONS}/wonders.example.com"
    while await accepted(api, path) != "False":
        await asyncio.sleep(0.001)
    await api.ask("DELETE", f"{DEFINITIONS}/{NAME}")
    await gone.wait()
    await definitions._look_at("wonders.example.com")
    assert await accepted(api, path) == "True"
    go_on.set()


async def accepted(api: Served, path: str) -> str | None:
    conditions = (await api.get(path))["status"].get("conditions") or ()
    return next((each["status"] for each in conditions if each["type"] == "NamesAccepted"), None)


async def test_names_are_free_again_when_their_definition_is_gone(api: Served) -> None:
    await defined(api, shortNames=["w"])
    await api.post(DEFINITIONS, definition(plural="wonders", kind="Wonder", shortNames=["w"]))
    assert (await api.ask("GET", BASE.replace("widgets", "wonders"))).status == 404
    await api.delete(f"{DEFINITIONS}/{NAME}")
    await established(api, "wonders.example.com")
    await api.get(BASE.replace("widgets", "wonders"))


async def test_a_definition_takes_the_kind_of_one_that_goes_at_the_same_time(
    api: Served, caplog: pytest.LogCaptureFixture
) -> None:
    await defined(api)
    (row,) = [row for row in (await api.store.read("/", "0")).rows if row.key.endswith(NAME)]
    other = Write(row.key.replace("widgets", "wonders"), row.value.replace(b"widgets", b"wonders"))
    await api.store.commit([Write(row.key, None), other])
    await until(api, BASE.replace("widgets", "wonders"))
    await until(api, BASE, 404)
    assert "cannot serve" not in caplog.text


async def test_what_the_store_refuses_is_tried_again(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom, "RETRY_SECONDS", 0.001)
    definitions = api.api.definitions
    add, failures = definitions._load, [StoreError("away"), StoreError("away")]

    async def fails_at_first(kind):
        if failures:
            raise failures.pop()
        await add(kind)

    monkeypatch.setattr(definitions, "_load", fails_at_first)
    await defined(api)
    await api.get(BASE)
    assert not failures


async def test_every_server_of_a_shared_store_serves_it(etcd) -> None:
    url = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    async with served(store=open_store(url)) as one, served(store=open_store(url)) as two:
        await one.post(DEFINITIONS, definition())
        await until(two, BASE)
        await two.post(BASE, widget("a", size=3))
        assert (await one.get(f"{BASE}/a"))["spec"] == {"size": 3}
        await two.delete(f"{DEFINITIONS}/{NAME}")
        await until(one, BASE, 404)
        await until(two, BASE, 404)
        assert not one.api.cache.of(RESOURCE).entries


@pytest.mark.parametrize("shared", [False, True], ids=["memory", "etcd"])
async def test_objects_are_as_large_as_etcd_takes_them(shared: bool, request: pytest.FixtureRequest) -> None:
    url = "memory:"
    if shared:
        etcd = request.getfixturevalue("etcd")
        url = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    async with served(url=url) as api:
        await api.post(DEFINITIONS, definition(version(spec=free)))
        await until(api, BASE)
        large = await api.post(BASE, widget("large", text="x" * (LARGEST_OBJECT - 1024)))
        refused = [
            await api.ask("POST", BASE, widget("larger", text="x" * (LARGEST_OBJECT + 1))),
            await api.ask("PUT", f"{BASE}/large", {**large, "spec": {"text": "x" * (LARGEST_OBJECT + 1)}}),
            await api.ask(
                "PATCH", f"{BASE}/large", {"spec": {"more": "y" * 2048}}, type="application/merge-patch+json"
            ),
        ]
        for answer in refused:
            assert (answer.status, answer.json["message"]) == (500, "etcdserver: request is too large")
            assert "reason" not in answer.json
        whole = await api.ask("POST", BASE, widget("larger", text="x" * MAX_BODY))
        assert (whole.status, whole.json["reason"]) == (413, "RequestEntityTooLarge")
        assert (await api.get(f"{BASE}/large")) == large
        assert [item["metadata"]["name"] for item in (await api.get(BASE))["items"]] == ["large"]


async def test_defaults_come_to_what_was_stored_before_them(api: Served) -> None:
    await defined(api)
    await api.post(BASE, widget("a", size=3))
    spec = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
    }
    await api.merge(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": [version(spec=spec)]}})
    while (await api.get(f"{BASE}/a"))["spec"] != {"size": 3, "color": "red"}:
        await asyncio.sleep(0.001)
    assert (await api.get(BASE))["items"][0]["spec"] == {"size": 3, "color": "red"}


async def test_discovery_tells_which_version_is_stored_if_it_is_served(api: Served) -> None:
    async def told(version: str) -> str | None:
        [found] = (await api.get(f"/apis/example.com/{version}"))["resources"]
        return found.get("storageVersionHash")

    await defined(api, version("v1"), version("v2", storage=False))
    assert await told("v1") == await told("v2") == "gIwvi5rymmg="
    versions = [version("v1") | {"served": False}, version("v2", storage=False)]
    await api.merge(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": versions}})
    await until(api, BASE, 404)
    assert await told("v2") is None


async def test_versions_show_the_same_objects_by_their_own_fields(api: Served) -> None:
    colored = {"type": "object", "properties": {"size": {"type": "integer"}, "color": {"type": "string"}}}
    await defined(api, version("v1", colored), version("v2", storage=False))
    await api.post(BASE, widget("a", size=3, color="red"))
    other = BASE.replace("/v1/", "/v2/")
    assert (await api.get(f"{other}/a"))["spec"] == {"size": 3}
    await api.merge(f"{other}/a", {"spec": {"size": 4}})
    assert (await api.get(f"{BASE}/a"))["spec"] == {"size": 4}


async def test_a_kind_that_keeps_all_fields_can_be_applied(api: Served) -> None:
    free = version()
    free["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await defined(api, free)
    for manager, more in (("one", {"spec": {"a": 1}, "more": [1]}), ("two", {"other": {"b": 2}})):
        config = {**widget("w"), **more}
        if manager == "two":
            del config["spec"]
        await api.done("PATCH", f"{BASE}/w?fieldManager={manager}", config, type="application/apply-patch+yaml")
    found = await api.get(f"{BASE}/w")
    assert (found["spec"], found["more"], found["other"]) == ({"a": 1}, [1], {"b": 2})
    owned = {entry["manager"]: set(entry["fieldsV1"]) for entry in found["metadata"]["managedFields"]}
    assert owned == {"one": {"f:spec", "f:more"}, "two": {"f:other"}}
    config = {**widget("w"), "spec": {"a": 1}}
    await api.done("PATCH", f"{BASE}/w?fieldManager=one", config, type="application/apply-patch+yaml")
    assert "more" not in await api.get(f"{BASE}/w")


KEEPING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize("known", [None, {"known": {"type": "string"}}], ids=["nothing known", "a field known"])
async def test_fields_that_no_schema_knows_have_their_own_managers(api: Served, known: object) -> None:
    """Maps are owned key by key, lists and all else as a whole."""
    spec = KEEPING if known is None else {**KEEPING, "properties": known}
    await defined(api, version(spec=spec))

    async def apply(manager: str, **spec: object) -> Answer:
        where = f"{BASE}/w?fieldManager={manager}"
        return await api.ask("PATCH", where, widget("w", **spec), type="application/apply-patch+yaml")

    await apply("one", a={"b": 1, "c": {"d": [1, 2]}}, text="x")
    await apply("two", a={"e": {}}, other=None)
    found = await api.get(f"{BASE}/w")
    assert found["spec"] == {"a": {"b": 1, "c": {"d": [1, 2]}, "e": {}}, "text": "x", "other": None}
    owned = {entry["manager"]: entry["fieldsV1"]["f:spec"] for entry in found["metadata"]["managedFields"]}
    inner = {".": {}, "f:b": {}, "f:c": {".": {}, "f:d": {}}}
    assert owned == {
        "one": {"f:a": inner, "f:text": {}},
        "two": {"f:a": {".": {}, "f:e": {}}, "f:other": {}},
    }
    conflict = await apply("two", a={"b": 2})
    assert (conflict.status, conflict.json["details"]["causes"][0]["field"]) == (409, ".spec.a.b")
    assert (await apply("one", a={"b": 3})).status == 200  # it gives up the others
    assert (await api.get(f"{BASE}/w"))["spec"] == {"a": {"b": 3, "e": {}}, "other": None}
    await api.merge(f"{BASE}/w?fieldManager=three", {"spec": {"a": {"b": 4, "f": "x"}, "text": {"now": "a map"}}})
    found = await api.get(f"{BASE}/w")
    third = next(each for each in found["metadata"]["managedFields"] if each["manager"] == "three")
    assert third["fieldsV1"]["f:spec"] == {"f:a": {"f:b": {}, "f:f": {}}, "f:text": {".": {}, "f:now": {}}}


@pytest.mark.parametrize("spec", [3, "x", [1], {"a": 3}, {"a": [1]}, {"l": 3}, {"l": {"a": 1}}, {"m": 3}, {"m": [2]}])
async def test_values_of_wrong_types_are_refused(api: Served, spec: object) -> None:
    text = {"type": "string"}
    fields = {
        "a": {"type": "object", "properties": {"b": text}},
        "l": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
        "m": {"type": "object", "additionalProperties": text},
    }
    await defined(api, version(spec={"type": "object", "properties": fields}))
    await api.post(BASE, widget("a", a={"b": "x"}, l=["x"], m={"a": "b"}))
    wrong = {"spec": spec}
    answers = [
        await api.ask("POST", BASE, {**widget("b"), **wrong}),
        await api.ask("PATCH", f"{BASE}/a", wrong, type="application/merge-patch+json"),
        await api.ask("PUT", f"{BASE}/a", {**await api.get(f"{BASE}/a"), **wrong}),
    ]
    for answer in answers:
        assert (answer.status, "must be of type" in answer.json["message"]) == (422, True)


async def test_managers_stay_when_another_version_is_written(api: Served) -> None:
    await defined(api, version(), version("v2", storage=False))
    await api.post(f"{BASE}?fieldManager=one", widget("a", size=3))
    other = BASE.replace("/v1/", "/v2/")
    made = await api.merge(f"{other}/a?fieldManager=two", {"metadata": {"labels": {"a": "b"}}})
    managers = {each["manager"]: each["apiVersion"] for each in made["metadata"]["managedFields"]}
    assert managers == {"one": "example.com/v1", "two": "example.com/v2"}
    config = {**widget("a", "v2", size=4), "apiVersion": "example.com/v2"}
    refused = await api.ask("PATCH", f"{other}/a?fieldManager=three", config, type="application/apply-patch+yaml")
    assert refused.status == 409


# --- definitions that changed ---------------------------------------------------------------------------


def with_default(colour: str) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "colour": {"type": "string", "default": colour}},
    }


async def changed(api: Served, *versions: object) -> None:
    """Give the definition these versions, and return when they are served."""
    lines = await api.watch(f"{BASE}?watch=1")
    await api.merge(f"{DEFINITIONS}/{NAME}", {"spec": {"versions": list(versions)}})
    await lines.ended()  # watches end when the kind is replaced, without a turn of the event loop in between


async def test_what_is_kept_of_objects_follows_the_definition(api: Served) -> None:
    await defined(api)
    made = await api.post(BASE, widget("a", size=3))
    since = int(made["metadata"]["resourceVersion"]) - 1
    for colour in ("red", "blue"):
        await changed(api, version(spec=with_default(colour)))
        for _ in range(2):  # the second time from what was kept
            assert (await api.get(f"{BASE}/a"))["spec"] == {"size": 3, "colour": colour}
            assert [item["spec"]["colour"] for item in (await api.get(BASE))["items"]] == [colour]
            lines = await api.watch(f"{BASE}?watch=1&resourceVersion={since}")
            assert (await lines.wait_for(1))[0]["object"]["spec"]["colour"] == colour
            lines.abort()


async def test_objects_are_decoded_once_for_all_reads_of_a_version(api: Served) -> None:
    await defined(api, version(), version("v2", storage=False))
    await api.post(BASE, widget("a", size=3))
    await api.get(BASE)
    kind = api.api.kinds.by_plural("example.com", "v2", "widgets")
    assert kind is not None
    entry = api.api.cache.of(kind.resource).get("default/a")
    assert entry is not None
    for _ in range(2):
        shown = [await api.get(f"/apis/example.com/{name}/namespaces/default/widgets/a") for name in ("v1", "v2")]
        assert [each["apiVersion"] for each in shown] == ["example.com/v1", "example.com/v2"]
    assert entry.forms is not None
    kept = dict(entry.forms)
    assert {each.resource.version for each in kept} == {"v1", "v2"}
    await api.get(BASE)
    assert all(entry.forms[each] is kept[each] for each in kept)


async def test_every_version_is_selected_by_its_own_fields(api: Served) -> None:
    by_size = {"selectableFields": [{"jsonPath": ".spec.size"}]}
    await defined(api, version(), version("v2", storage=False, **by_size))
    await api.post(BASE, widget("a", size=3))
    assert len((await api.get(f"{BASE}?fieldSelector=metadata.name!=b"))["items"]) == 1
    other = BASE.replace("v1", "v2")
    for size, found in ((3, 1), (4, 0)):
        assert len((await api.get(f"{other}?fieldSelector=spec.size={size}"))["items"]) == found
    await changed(api, version(**by_size))
    assert len((await api.get(f"{BASE}?fieldSelector=spec.size=3"))["items"]) == 1


FAULTY = """{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","name":"a","odd":1},
"spec":{"z":1,"y":1,"y":{"b":1,"b":2},"template":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","odd":1}},"size":3,"size":4}}"""


async def test_repeated_keys_are_told_before_unknown_fields_and_those_of_embedded_objects_last(api: Served) -> None:
    embedded = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "template": embedded}}
    await defined(api, version(spec=spec))
    refused = await api.ask("POST", f"{BASE}?fieldValidation=Strict", FAULTY.encode())
    assert refused.json["message"].partition("strict decoding error: ")[2].split(", ") == [
        'duplicate field "metadata.name"',
        'duplicate field "spec.y"',
        'duplicate field "spec.y.b"',
        'duplicate field "spec.size"',
        'unknown field "metadata.odd"',
        'unknown field "spec.y"',
        'unknown field "spec.z"',
        'unknown field "spec.template.metadata.odd"',
    ]


async def test_kinds_are_served_from_the_moment_that_their_definition_is_established(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()
    write = api.api.definitions._write

    async def held(*arguments: object) -> None:
        asked.set()
        await go_on.wait()
        await write(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(api.api.definitions, "_write", held)
    await api.post(DEFINITIONS, definition())
    await asked.wait()
    assert (await api.ask("GET", BASE)).status == 404
    go_on.set()
    await established(api)
    assert (await api.ask("GET", BASE)).status == 200


async def test_a_plural_can_be_the_singular_and_a_short_name_too(api: Served) -> None:
    sheep = definition(plural="sheep", kind="Sheep", singular="sheep", shortNames=["sheep"])
    await api.post(DEFINITIONS, sheep)
    await established(api, "sheep.example.com")
    path = BASE.replace("widgets", "sheep")
    assert (await api.get(path))["items"] == []
    await api.delete(f"{DEFINITIONS}/sheep.example.com")
    await until(api, path, 404)
    await defined(api)


async def test_a_definition_that_cannot_be_served_keeps_no_other_from_it(
    api: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(custom, "RETRY_SECONDS", 600.0)
    load = api.api.definitions._load

    async def fail(kind: Kind) -> None:
        if kind.resource.plural == "odd":
            raise ZeroDivisionError("a mistake")
        await load(kind)

    monkeypatch.setattr(api.api.definitions, "_load", fail)
    await api.post(DEFINITIONS, definition(plural="odd", kind="Odd"))
    await defined(api)
    assert (await api.get(BASE))["items"] == []
    assert "cannot serve the definition odd.example.com" in caplog.text


async def test_why_a_definition_cannot_be_served_is_told_once(
    api: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Some wait for ever for what their users have to mend, and are tried again every second."""
    monkeypatch.setattr(custom, "RETRY_SECONDS", 0.0)
    definitions = api.api.definitions
    load, tries = definitions._load, 0

    async def fail(kind: Kind) -> None:
        nonlocal tries
        tries += 1
        if tries < 10:
            raise StoreError("not now" if tries < 5 else "nor now")
        await load(kind)

    monkeypatch.setattr(definitions, "_load", fail)
    await defined(api)
    told = [record.getMessage() for record in caplog.records if record.name == custom._log.name]
    assert told == [f"cannot serve the definition {NAME} yet: {why}" for why in ("not now", "nor now")]
