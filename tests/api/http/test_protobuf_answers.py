"""Answers in protobuf, as Go clients ask for them: objects, lists, watches, metadata and errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from served import Served

from protobuf_wire import members
from seamark.kinds.language import protobuf, shapes
from seamark.kinds.language.decode import conform

PROTOBUF = "application/vnd.kubernetes.protobuf"
ACCEPT = {"accept": f"{PROTOBUF}, */*"}
BASE = "/api/v1/namespaces/default/services"
SERVICE = {"metadata": {"name": "web", "labels": {"a": "b"}}, "spec": {"ports": [{"port": 80, "targetPort": "http"}]}}


def read(body: bytes) -> Any:
    """What an answer says, with its apiVersion and kind."""
    api_version, kind, message = protobuf.unwrap(body)
    shape = shapes.of(shapes.load().kinds[api_version, kind])
    return {"kind": kind, "apiVersion": api_version, **conform(protobuf.read(message, shape), shape)[0]}


def items(found: Any) -> Any:
    """A list with its items' metadata only, since conforming fills what they leave out."""
    return [item["metadata"] for item in found["items"]]


def events(frames: list[bytes]) -> Iterator[tuple[str, Any]]:
    """The events in the chunks of a watch."""
    for chunk in frames:
        size, _, rest = chunk.partition(b"\r\n")
        data = rest[: int(size, 16)]
        while data:
            length = int.from_bytes(data[:4], "big")
            fields = dict(members(data[4 : 4 + length]))
            data = data[4 + length :]
            kind, inner = fields[1], fields[2]
            assert isinstance(kind, bytes)
            assert isinstance(inner, bytes)
            whole = dict(members(inner))[1]
            assert isinstance(whole, bytes)
            yield kind.decode(), read(whole)


async def test_objects_and_lists_say_what_json_says(api: Served) -> None:
    created = await api.ask("POST", BASE, SERVICE, headers=ACCEPT)
    assert (created.status, created.type) == (201, PROTOBUF)
    plain = (await api.ask("GET", f"{BASE}/web")).json
    assert read(created.body) == plain
    for _ in range(2):  # the second is made from what the first kept
        assert read((await api.ask("GET", f"{BASE}/web", headers=ACCEPT)).body) == plain
    listed = read((await api.ask("GET", BASE, headers=ACCEPT)).body)
    assert items(listed) == items((await api.ask("GET", BASE)).json)
    changed = await api.ask("PUT", f"{BASE}/web", {**plain, "metadata": {**plain["metadata"], "labels": {"a": "c"}}})
    assert changed.status == 200
    again = read((await api.ask("GET", f"{BASE}/web", headers=ACCEPT)).body)
    assert (again["metadata"]["labels"], again) == ({"a": "c"}, changed.json)


async def test_watches_are_frames_with_their_length(api: Served) -> None:
    lines = await api.watch(
        f"{BASE}?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
        headers=ACCEPT,
    )
    await api.post(BASE, SERVICE)
    await api.ask("DELETE", f"{BASE}/web")
    seen = list(events(lines.frames))
    assert [kind for kind, _ in seen] == ["BOOKMARK", "ADDED", "DELETED"]
    assert seen[0][1]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert [obj["metadata"]["name"] for _, obj in seen[1:]] == ["web", "web"]
    begun = api.begin("GET", f"{BASE}?watch=1", headers=ACCEPT)
    assert begun.content_type == f"{PROTOBUF};stream=watch"


async def test_errors_come_in_the_format_asked_for(api: Served) -> None:
    missing = await api.ask("GET", f"{BASE}/none", headers=ACCEPT)
    assert (missing.status, missing.type, read(missing.body)["reason"]) == (404, PROTOBUF, "NotFound")
    missing = await api.ask("GET", f"{BASE}/none", headers={"accept": "application/yaml"})
    assert (missing.type, b"reason: NotFound\n" in missing.body) == ("application/yaml", True)
    unreadable = await api.ask("GET", "/api/v1/nonsense", headers={"accept": "text/html"})
    assert (unreadable.status, unreadable.type, unreadable.json["code"]) == (406, "application/json", 406)


async def test_metadata_only_and_tables(api: Served) -> None:
    await api.post(BASE, SERVICE)
    form = f"{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
    answer = await api.ask("GET", f"{BASE}/web", headers={"accept": form})
    api_version, kind, message = protobuf.unwrap(answer.body)
    assert (answer.type, api_version, kind) == (PROTOBUF, "meta.k8s.io/v1", "PartialObjectMetadata")
    assert dict(members(message)).keys() == {1}
    # A Table has no protobuf encoding, so the next of the formats is taken.
    form = ",".join(f"{media};as=Table;g=meta.k8s.io;v=v1" for media in (PROTOBUF, "application/json"))
    assert (await api.ask("GET", BASE, headers={"accept": form})).json["kind"] == "Table"
