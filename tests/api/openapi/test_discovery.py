"""Discovery documents, compared with the recorded ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from described_kinds import KINDS
from replay_paths import lookup, remove

from conformance_files import API
from seamark import errors
from seamark.api.http.wire.messages import Request, Response
from seamark.api.openapi import discovery
from seamark.kinds import table


def ask(path: str, accept: str = "application/json", **headers: str) -> Response | None:
    named = {"accept": accept, "host": "localhost:6443"} | {k.replace("_", "-"): v for k, v in headers.items()}
    return discovery.Discovery(KINDS).answer(Request("GET", path, "", named, b""))


def document(path: str, accept: str = "application/json") -> Any:
    response = ask(path, accept)
    assert response is not None
    assert isinstance(response.body, bytes)
    return msgspec.json.decode(response.body)


def recorded() -> list[Any]:
    cases = json.loads((API / "discovery.json").read_text())["cases"]
    return [
        pytest.param(step, id=f"{case['name']}{step['path']}")
        for case in cases
        for step in case["steps"]
        if step["path"].startswith("/api")
    ]


@pytest.mark.parametrize("step", recorded())
def test_documents_are_the_recorded_ones(step: dict[str, Any]) -> None:
    expect = step["expect"]
    accept = step.get("accept", "application/json")
    if expect["status"] == 406:
        with pytest.raises(errors.NotAcceptable):
            ask(step["path"], accept)
        return
    response = ask(step["path"], accept)
    if expect["status"] == 404:
        assert response is None
        return
    assert response is not None
    assert response.status == expect["status"]
    assert response.content_type == expect.get("content_type", "application/json")
    assert isinstance(response.body, bytes)
    body = msgspec.json.decode(response.body)
    for path in step.get("ignore", ()):
        remove(body, path)
    if "body" in expect:
        assert body == expect["body"]
    for path, value in expect.get("paths", {}).items():
        assert lookup(body, path) == value


def test_resources_come_in_order_and_groups_by_priority() -> None:
    names = [resource["name"] for resource in document("/api/v1")["resources"]]
    assert names == sorted(names)
    groups = [group["name"] for group in document("/apis")["groups"]]
    assert groups == ["apps", "events.k8s.io", "authentication.k8s.io", "coordination.k8s.io", "discovery.k8s.io"]
    aggregated = document("/apis", discovery.AGGREGATED)["items"]
    assert [item["metadata"]["name"] for item in aggregated] == groups


def test_what_is_stored_says_in_which_version() -> None:
    """The hashes are those of a real cluster, which the recordings leave out."""
    hashes = {}
    for group, version in (("", "v1"), ("apps", "v1"), ("autoscaling", "v1"), ("events.k8s.io", "v1")):
        listed = discovery.resource_list(table.KINDS, group, version)
        assert listed is not None
        hashes |= {f"{group}/{each['name']}": each.get("storageVersionHash") for each in listed["resources"]}
    assert hashes["/pods"] == "xPOwRZ+Yhw8="
    assert hashes["/services"] == "0/CO1lhkEBI="
    assert hashes["apps/deployments"] == "8aSe+NMegvE="
    assert hashes["/events"] == hashes["events.k8s.io/events"] == "r2yiGXH7wu8="
    assert hashes["autoscaling/horizontalpodautoscalers"] == "qwQve8ut294="
    assert {hashes["/pods/status"], hashes["/componentstatuses"]} == {None}


def test_the_root_lists_what_can_be_asked_for() -> None:
    listed = document("/")["paths"]
    assert listed == sorted(listed)
    assert {"/api/v1", "/apis", "/apis/apps/v1", "/apis/discovery.k8s.io", "/readyz", "/openapi/v3"} <= set(listed)


def test_api_says_where_the_client_reached_us() -> None:
    assert document("/api/")["serverAddressByClientCIDRs"] == [
        {"clientCIDR": "0.0.0.0/0", "serverAddress": "localhost:6443"}
    ]


@pytest.mark.parametrize("path", ["/api/v2", "/apis/apps/v9", "/apis/nope/v1", "/apis//v1", "/nothing", "/api/v1/pods"])
def test_other_paths_are_nobodys(path: str) -> None:
    assert ask(path) is None


@pytest.mark.parametrize(
    ("accept", "aggregated"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/vnd.kubernetes.protobuf, application/json", False),
        (f"application/json;q=0.5,{discovery.AGGREGATED}", True),
        (f"{discovery.AGGREGATED};q=0.5,application/json", False),
        (f"{discovery.AGGREGATED},application/json", True),
        (f"{discovery.AGGREGATED};profile=nopeer,application/json", True),
    ],
)
def test_the_form_is_the_one_the_client_likes_best(accept: str, aggregated: bool) -> None:
    assert discovery.wants_aggregated(accept) is aggregated


def test_only_unknown_forms_are_not_acceptable() -> None:
    with pytest.raises(errors.NotAcceptable):
        discovery.wants_aggregated("text/html")
    with pytest.raises(errors.NotAcceptable):
        ask("/api/v1", "text/html")


def test_an_unchanged_document_is_not_sent_again() -> None:
    first = ask("/apis", discovery.AGGREGATED)
    assert first is not None
    tag = dict(first.headers)["ETag"]
    again = ask("/apis", discovery.AGGREGATED, if_none_match=tag)
    assert again is not None
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(("accept", "said"), [(discovery.AGGREGATED, "public"), ("application/json", None)])
def test_only_the_aggregated_form_may_be_kept_by_others(accept: str, said: str | None) -> None:
    answer = ask("/apis", accept)
    assert answer is not None
    assert dict(answer.headers).get("Cache-Control") == said


def test_yaml_for_those_who_ask() -> None:
    response = ask("/apis", "application/yaml")
    assert response is not None
    assert response.content_type == "application/yaml"
    assert isinstance(response.body, bytes)
    assert b"kind: APIGroupList" in response.body
