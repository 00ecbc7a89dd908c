"""Custom resources whose versions a webhook converts: reads, watches and writes over a real HTTPS server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest_asyncio
from called_servers import Trusted
from converting import COUNT, DEFINITION, V1, V2, Converter, changed, changed_storage, moved, serving, widget
from served import Served, served

from seamark.api.state import forms
from seamark.controllers.housekeeping.everything import Bare
from seamark.kinds.extensions.custom import STORED_VERSION
from seamark.kinds.resource import Resource
from seamark.store.protocol import Batch, Change

WIDGETS_V2 = Resource("example.com", "v2", "widgets", "Widget", namespaced=True)


@pytest_asyncio.fixture
async def api(converter: Converter) -> AsyncIterator[Served]:
    async with served(max_in_flight=1) as server:
        await serving(server, converter.definition())
        yield server


def specs(listing: Any) -> dict[str, Any]:
    return {item["metadata"]["name"]: item["spec"] for item in listing["items"]}


# --- reads ------------------------------------------------------------------------------------------


async def test_an_object_is_read_in_the_version_asked_for_and_converted_once(api: Served, converter: Converter) -> None:
    made = await api.post(V1, widget("a", size=5))
    assert converter.questions() == []
    for _ in range(2):
        found = await api.get(f"{V2}/a")
        assert (found["apiVersion"], found["spec"]) == ("example.com/v2", {"count": 5})
        assert found["metadata"] == made["metadata"]
    assert converter.questions() == [("example.com/v2", ["a/v1"])]


async def test_an_object_that_becomes_very_long_is_refused_and_not_kept(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", size=5))
    extra = {"extra": "x" * forms.LONGEST}
    converter.change = lambda obj, wanted: {**moved(obj, wanted), "spec": {"count": 1, **extra}}
    for _ in range(2):  # it is asked each time
        refused = await api.ask("GET", f"{V2}/a")
        assert (refused.status, len(refused.body) < 1000) == (500, True)
        assert refused.json["message"].startswith("conversion webhook for Widget returned default/a with more than ")
    assert len(converter.questions()) == 2
    entry = api.api.cache.of(WIDGETS_V2).get("default/a")
    assert entry is not None
    assert all(kind.resource != WIDGETS_V2 for kind in entry.forms or ())
    extra.clear()
    assert (await api.get(f"{V2}/a"))["spec"] == {"count": 1}


async def test_a_list_of_objects_stored_in_different_versions_asks_once_for_those_of_the_other(
    api: Served, converter: Converter
) -> None:
    await api.post(V1, widget("a", size=1))
    await api.post(V1, widget("b", size=2))
    await changed_storage(api, "v2")
    await api.post(V2, widget("c", "v2", count=3))
    assert converter.questions() == []
    assert specs(await api.get(V2)) == {"a": {"count": 1}, "b": {"count": 2}, "c": {"count": 3, "extra": "no"}}
    assert converter.questions() == [("example.com/v2", ["a/v1", "b/v1"])]
    assert specs(await api.get(V1)) == {"a": {"size": 1}, "b": {"size": 2}, "c": {"size": 3}}
    assert converter.questions() == [("example.com/v1", ["c/v2"])]


async def test_what_was_converted_is_converted_anew_when_the_definition_changes(
    api: Served, converter: Converter, trusted: Trusted
) -> None:
    await api.post(V1, widget("a", size=1))
    assert (await api.get(f"{V2}/a"))["spec"] == {"count": 1}
    async with Converter(trusted) as other:
        other.change = lambda obj, wanted: {**obj, "apiVersion": wanted, "spec": {"count": 100}}
        await changed(api, lambda found: found["spec"].update(conversion=other.strategy))
        assert (await api.get(f"{V2}/a"))["spec"] == {"count": 100}


async def test_tables_and_selected_fields_are_those_of_the_version(converter: Converter) -> None:
    columns = [{"name": "Count", "type": "integer", "jsonPath": ".spec.count"}]
    made = converter.definition()
    made["spec"]["versions"][0]["selectableFields"] = [{"jsonPath": ".spec.size"}]
    made["spec"]["versions"][1] |= {
        "selectableFields": [{"jsonPath": ".spec.count"}],
        "additionalPrinterColumns": columns,
    }
    async with served() as api:
        await serving(api, made)
        for name, size in (("a", 1), ("b", 2)):
            await api.post(V1, widget(name, size=size))
        assert specs(await api.get(f"{V1}?fieldSelector=spec.size%3D2")) == {"b": {"size": 2}}
        assert specs(await api.get(f"{V2}?fieldSelector=spec.count%3D2")) == {"b": {"count": 2}}
        table = await api.get(V2, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        assert [row["cells"] for row in table["rows"]] == [["a", 1], ["b", 2]]
        watch = await api.watch(f"{V2}?watch=1&fieldSelector=spec.count%3D2")
        await api.merge(f"{V1}/a", {"spec": {"size": 2}})
        await api.merge(f"{V2}/a", {"spec": {"count": 3}})
        found = await watch.wait_for(3)
        assert [(event["type"], event["object"]["spec"]["count"]) for event in found] == [
            ("ADDED", 2),
            ("ADDED", 2),
            ("DELETED", 2),
        ]


async def test_what_another_version_shows_of_the_past_is_converted(api: Served, converter: Converter) -> None:
    first = await api.post(V1, widget("a", size=1))
    await api.merge(f"{V1}/a", {"spec": {"size": 2}})
    past = await api.get(f"{V2}?resourceVersion={first['metadata']['resourceVersion']}&resourceVersionMatch=Exact")
    assert specs(past) == {"a": {"count": 1}}


# --- watches ----------------------------------------------------------------------------------------


async def test_a_watch_shows_every_event_in_its_version_in_order(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", size=1))
    since = (await api.get(V1))["metadata"]["resourceVersion"]
    begun, later = await api.watch(f"{V2}?watch=1"), await api.watch(f"{V2}?watch=1&resourceVersion={since}")
    for size in range(2, 6):
        await api.merge(f"{V1}/a", {"spec": {"size": size}})
    await api.delete(f"{V1}/a")
    expected: list[Any] = [("MODIFIED", {"count": size}) for size in range(2, 6)] + [("DELETED", {"count": 5})]
    for watch, first in ((begun, [("ADDED", {"count": 1})]), (later, [])):
        found = await watch.wait_for(len(first) + 5)
        assert [(event["type"], event["object"]["spec"]) for event in found] == first + expected
        assert {event["object"]["apiVersion"] for event in found} == {"example.com/v2"}
    # Both watchers shared the answers about the five states, and maybe about the last one under its last version.
    assert sum(len(names) for _, names in converter.questions()) <= 6


async def test_events_wait_for_a_webhook_that_hangs_and_other_versions_do_not(
    api: Served, converter: Converter
) -> None:
    held, own = await api.watch(f"{V2}?watch=1"), await api.watch(f"{V1}?watch=1")
    converter.held = asyncio.Event()
    for name in "abc":
        await api.post(V1, widget(name, size=1))
    await own.wait_for(3)
    assert held.events == []
    converter.held.set()
    assert [event["object"]["metadata"]["name"] for event in await held.wait_for(3)] == ["a", "b", "c"]


async def test_a_slow_client_gets_events_that_wait_for_the_webhook_after_others_of_their_batch(
    api: Served, converter: Converter
) -> None:
    watch = await api.watch(f"{V2}?watch=1")
    await api.post(V1, widget("a", size=1))
    await watch.wait_for(1)
    watch.write_stalls = True
    cache = api.api.cache
    key, revision = f"{cache.of(WIDGETS_V2).prefix}default/a", cache.revision
    stored = [
        {"metadata": {STORED_VERSION: version, "name": "a", "namespace": "default"}, "spec": spec}
        for version, spec in (("v2", {"count": 2}), ("v1", {"size": 3}), ("v2", {"count": 4}))
    ]
    changes = [Change(key, msgspec.json.encode(obj), None, revision + n) for n, obj in enumerate(stored, 1)]
    cache.apply(Batch(changes, revision + 3))
    await watch.wait_for(2)
    watch.read_again()
    found = await watch.wait_for(4)
    assert [event["object"]["spec"]["count"] for event in found] == [1, 2, 3, 4]


async def test_a_watch_ends_with_an_error_when_the_webhook_fails(api: Served, converter: Converter) -> None:
    converter.response = {"result": {"status": "Failure", "message": "no"}}
    watch = await api.watch(f"{V2}?watch=1")
    await api.post(V1, widget("a", size=1))
    (event,) = await watch.ended()
    assert event["type"] == "ERROR"
    assert event["object"]["message"] == "conversion webhook for example.com/v1, Kind=Widget failed: no"


async def test_an_object_that_leaves_the_selection_is_shown_as_it_was(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", meta={"labels": {"in": "yes"}}, size=1))
    watch = await api.watch(f"{V2}?watch=1&labelSelector=in%3Dyes")
    await watch.wait_for(1)
    await api.merge(f"{V1}/a", {"metadata": {"labels": {"in": "no"}}, "spec": {"size": 2}})
    last = (await watch.wait_for(2))[-1]
    assert (last["type"], last["object"]["spec"]) == ("DELETED", {"count": 1})


async def test_components_of_this_process_read_and_watch_converted_objects(api: Served, converter: Converter) -> None:
    cluster = api.api.cluster("apiserver")
    await api.post(V1, widget("a", size=1))
    listing = await cluster.list(WIDGETS_V2, namespace="default")
    assert [item["spec"] for item in listing.items] == [{"count": 1}]
    assert (await cluster.get(WIDGETS_V2, "a", namespace="default"))["spec"] == {"count": 1}
    changes = cluster.watch(WIDGETS_V2, since=listing.version, namespace="default")
    await anext(changes)
    await api.merge(f"{V1}/a", {"spec": {"size": 2}})
    change = await anext(changes)
    assert change.object["spec"] == {"count": 2}
    await changes.aclose()


async def test_readers_of_bare_metadata_need_no_webhook(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", size=1))
    listing = await api.api.cluster("apiserver").list(WIDGETS_V2, namespace="default", as_=Bare)
    assert [item.metadata.name for item in listing.items] == ["a"]
    assert converter.questions() == []


# --- writes -----------------------------------------------------------------------------------------


async def test_what_is_written_in_another_version_is_stored_in_the_storage_version(
    api: Served, converter: Converter
) -> None:
    made = await api.post(V2, widget("a", "v2", count=5))
    assert (made["spec"], made["metadata"]["generation"]) == ({"count": 5}, 1)
    assert (await api.get(f"{V1}/a"))["spec"] == {"size": 5}
    patched = await api.merge(f"{V2}/a", {"spec": {"count": 6}})
    assert (patched["spec"], patched["metadata"]["generation"]) == ({"count": 6}, 2)
    patched["spec"]["count"] = 7
    assert (await api.put(f"{V2}/a", patched))["spec"] == {"count": 7}
    await api.merge(f"{V2}/a/status", {"status": {}})
    config = widget("a", "v2", count=8)
    applied = await api.done("PATCH", f"{V2}/a?fieldManager=x&force=true", config, type="application/apply-patch+yaml")
    assert applied["spec"] == {"count": 8}
    assert (await api.get(f"{V1}/a"))["spec"] == {"size": 8}
    dry = await api.merge(f"{V2}/a?dryRun=All", {"spec": {"count": 9}})
    assert dry["spec"] == {"count": 9}
    assert (await api.get(f"{V1}/a"))["spec"] == {"size": 8}


async def test_an_object_is_checked_by_the_version_it_is_written_in(api: Served) -> None:
    answer = await api.ask("POST", V2, widget("a", "v2", count="many"))
    assert (answer.status, "spec.count" in answer.json["message"]) == (422, True)


async def test_an_object_written_anew_moves_to_the_storage_version(api: Served, converter: Converter) -> None:
    made = await api.post(V1, widget("a", size=1))
    await changed_storage(api, "v2")
    moved = await api.put(f"{V1}/a", await api.get(f"{V1}/a"))
    assert moved["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
    assert moved["spec"] == {"size": 1}
    converter.questions()
    assert (await api.get(f"{V2}/a"))["spec"] == {"count": 1, "extra": "no"}
    assert converter.questions() == []
    again = await api.put(f"{V2}/a", await api.get(f"{V2}/a"))
    assert "storedVersion" not in again["metadata"]


async def test_a_deletion_answers_in_the_version_it_was_asked_in(api: Served) -> None:
    await changed_storage(api, "v2")
    await api.post(V2, widget("a", "v2", meta={"finalizers": ["example.com/x"]}, count=1))
    held = await api.delete(f"{V1}/a")
    assert (held["spec"], "deletionTimestamp" in held["metadata"]) == ({"size": 1}, True)
    assert "storedVersion" not in held["metadata"]
    await api.merge(f"{V1}/a", {"metadata": {"finalizers": []}})
    assert (await api.ask("GET", f"{V2}/a")).status == 404


# --- a webhook that fails or hangs ------------------------------------------------------------------


async def test_a_webhook_that_fails_keeps_only_those_that_need_it(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", size=1))
    converter.response = {"result": {"status": "Failure", "message": "out of order"}}
    said = "conversion webhook for example.com/{}, Kind=Widget failed: out of order"
    for method, path, body, version in (
        ("GET", f"{V2}/a", None, "v1"),
        ("GET", V2, None, "v1"),
        ("POST", V2, widget("b", "v2", count=1), "v2"),
        ("DELETE", f"{V2}/a", None, "v1"),
    ):
        answer = await api.ask(method, path, body)
        assert (answer.status, answer.json["message"]) == (500, said.format(version)), (method, path)
        assert "reason" not in answer.json
    assert specs(await api.get(V1)) == {"a": {"size": 1}}
    await api.merge(f"{V1}/a", {"spec": {"size": 2}})
    await api.delete(f"{V1}/a")
    converter.response = {}
    assert specs(await api.get(V2)) == {}


async def test_a_webhook_that_is_gone_is_named_in_the_error(converter: Converter) -> None:
    made = converter.definition()
    made["spec"]["conversion"]["webhook"]["clientConfig"]["url"] = "https://127.0.0.1:1/convert"
    async with served() as api:
        await serving(api, made)
        await api.post(V1, widget("a", size=1))
        answer = await api.ask("GET", f"{V2}/a")
    assert answer.json["message"] == (
        'conversion webhook for example.com/v1, Kind=Widget failed: Post "https://127.0.0.1:1/convert?timeout=30s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


async def test_a_webhook_that_hangs_delays_nobody_else(api: Served, converter: Converter) -> None:
    """There is one seat; the same object is written in the other version meanwhile."""
    await api.post(V1, widget("a", size=1))
    converter.held = asyncio.Event()
    waiting = []
    for method, path, body in (
        ("GET", f"{V2}/a", None),
        ("PATCH", f"{V2}/a", {"spec": {"count": 7}}),
        ("POST", V2, widget("b", "v2", count=1)),
    ):
        news = asyncio.create_task(converter.wait())
        type = "application/merge-patch+json" if method == "PATCH" else "application/json"
        waiting.append(asyncio.create_task(api.ask(method, path, body, type=type)))
        if method != "PATCH":  # It waits for the answer to the first question.
            await news
        else:
            news.cancel()
            await asyncio.sleep(0)
    await api.merge(f"{V1}/a", {"spec": {"size": 3}})
    await api.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "other"}})
    assert not any(task.done() for task in waiting)
    converter.held.set()
    read, patched, made = await asyncio.gather(*waiting)
    assert (read.json["spec"], patched.json["spec"], made.status) == ({"count": 1}, {"count": 7}, 201)
    assert specs(await api.get(V1)) == {"a": {"size": 7}, "b": {"size": 1}}


async def test_those_who_wait_for_the_same_object_ask_once(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", size=1))
    converter.held = asyncio.Event()
    first = asyncio.create_task(api.ask("GET", f"{V2}/a"))
    await converter.wait()
    others = [asyncio.create_task(api.ask("GET", f"{V2}/a")) for _ in range(5)]
    await asyncio.sleep(0)
    first.cancel()  # The others still get the answer.
    converter.held.set()
    assert [answer.json["spec"] for answer in await asyncio.gather(*others)] == [{"count": 1}] * 5
    assert len(converter.questions()) == 1


async def test_a_definition_goes_although_its_webhook_is_away(api: Served, converter: Converter) -> None:
    await api.post(V1, widget("a", size=1))
    converter.response = {"result": {"status": "Failure"}}
    await changed_storage(api, "v2")
    await api.delete(f"{DEFINITION}/widgets.example.com")
    while (await api.ask("GET", f"{DEFINITION}/widgets.example.com")).status != 404:
        await asyncio.sleep(0)


async def test_defaults_of_the_stored_version_are_filled_in_before_it_is_converted(converter: Converter) -> None:
    async with served() as api:
        made = converter.definition(storage="v2")
        made["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"] = COUNT
        await serving(api, made)
        await api.post(V1, widget("a", size=1))
        assert (await api.get(f"{V2}/a"))["spec"] == {"count": 1, "extra": "no"}
        assert (await api.get(f"{V1}/a"))["spec"] == {"size": 1}
