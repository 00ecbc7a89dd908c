"""Discovery old and new, pages that expire, servers without tables: what our own server never does, others do."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from seamark import errors
from seamark.access.transport import Request
from seamark.cli import get
from seamark.cli.get_tables import as_table
from seamark.cli.get_watch import watch
from seamark.cli.server import Server
from seamark.cli.server_kinds import ServerKind
from seamark.cli.targets import Target
from seamark.kinds.resource import SERVICES


class Scripted:
    """Answers by path and query, each once, in the order they were written down; the last one stays."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        self.answers = answers
        self.asked: list[Request] = []

    async def send(self, request: Request) -> bytes:
        self.asked.append(request)
        answer = self._next(request)
        return answer if isinstance(answer, bytes) else json.dumps(answer).encode()

    async def stream(self, request: Request, *, lifetime: float) -> AsyncIterator[list[bytes]]:
        self.asked.append(request)
        yield []
        for event in self._next(request):
            yield [json.dumps(event).encode()]

    def _next(self, request: Request) -> Any:
        key = request.path + ("?watch" if ("watch", "true") in request.query else "")
        waiting = self.answers.get(key)
        if not waiting:
            raise errors.NotFound(f"the server could not find {key}")
        answer = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def server(**answers: list[Any]) -> tuple[Server, Scripted]:
    transport = Scripted({path.replace("__", "/"): answer for path, answer in answers.items()})
    return Server(transport), transport  # type: ignore[arg-type]  # all of a transport that a Server uses


OLD = {
    "__api": [{"kind": "APIVersions", "versions": ["v1"]}],
    "__apis": [
        {
            "kind": "APIGroupList",
            "groups": [
                {
                    "name": "apps",
                    "versions": [{"groupVersion": "apps/v1beta1"}, {"groupVersion": "apps/v1"}],
                    "preferredVersion": {"groupVersion": "apps/v1"},
                },
                {"name": "down.example", "versions": [{"groupVersion": "down.example/v1"}]},
            ],
        }
    ],
    "__api__v1": [
        {
            "resources": [
                {"name": "services", "singularName": "", "namespaced": True, "kind": "Service", "shortNames": ["svc"]},
                {"name": "services/status", "namespaced": True, "kind": "Service"},
            ]
        }
    ],
    "__apis__apps__v1": [{"resources": [{"name": "deployments", "namespaced": True, "kind": "Deployment"}]}],
    "__apis__apps__v1beta1": [{"resources": [{"name": "deployments", "namespaced": True, "kind": "Deployment"}]}],
    "__apis__down.example__v1": [errors.ServiceUnavailable("down")],
}


async def test_discovery_of_older_servers() -> None:
    asking, transport = server(**OLD)
    kinds = await asking.kinds()
    assert [kind.resource.qualified for kind in kinds.all] == ["services", "deployments.apps"]
    assert kinds.find("deployment")[0].resource.version == "v1"
    assert kinds.by_kind("apps/v1beta1", "Deployment") is not None
    assert kinds.find("svc")[0].singular == "service"
    before = len(transport.asked)
    await asking.kinds()
    assert len(transport.asked) == before


async def test_pages_go_on_after_the_version_expired() -> None:
    pages = [
        {"metadata": {"continue": "c1"}, "items": [1]},
        errors.Expired("too old", metadata={"continue": "c2"}),
        {"metadata": {}, "items": [2]},
    ]
    asking, transport = server(__api__v1__services=pages)
    found = [page["items"] async for page in asking.pages(SERVICES, namespace="", query={"labelSelector": "a"})]
    assert found == [[1], [2]]
    assert [dict(request.query).get("continue") for request in transport.asked] == [None, "c1", "c2"]
    assert all(dict(request.query)["labelSelector"] == "a" for request in transport.asked)


async def test_pages_that_cannot_go_on_say_so() -> None:
    asking, _ = server(__api__v1__services=[errors.Expired("too old")])
    with pytest.raises(errors.Expired):
        [page async for page in asking.pages(SERVICES, namespace="", query={})]


async def test_counting_reads_one_object() -> None:
    asking, transport = server(__api__v1__services=[{"metadata": {"remainingItemCount": 41}, "items": [{}]}])
    assert await asking.count(SERVICES) == 42
    assert dict(transport.asked[0].query) == {"limit": "1"}


async def test_nonsense_is_called_that() -> None:
    asking, _ = server(__api=[b"<html>"])
    asking._transport.connection = argparse.Namespace(server="https://x")  # type: ignore[assignment]  # all that is asked
    with pytest.raises(errors.InternalError, match="https://x answered /api with what is not JSON"):
        await asking.kinds()


def test_a_server_without_tables_still_gets_one() -> None:
    table = as_table({"kind": "ServiceList", "items": [{"metadata": {"name": "web"}}]})
    assert [row.cells for row in table.rows] == [("web", "<unknown>")]
    table = as_table({"kind": "Service", "metadata": {"name": "web"}})
    assert [row.cells for row in table.rows] == [("web", "<unknown>")]


# --- watching --------------------------------------------------------------------------------------


def row(name: str, version: str) -> dict[str, Any]:
    return {"cells": [name], "object": {"metadata": {"uid": name, "resourceVersion": version}}}


def table(*rows: dict[str, Any], version: str = "", columns: bool = True) -> dict[str, Any]:
    columns_ = [{"name": "Name", "format": "name"}] if columns else []
    return {
        "kind": "Table",
        "metadata": {"resourceVersion": version},
        "columnDefinitions": columns_,
        "rows": list(rows),
    }


async def test_a_watch_outlives_its_server_and_repeats_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """The server ends a watch, then forgets: what has been shown is not shown again."""
    lists = [
        table(row("a", "1"), row("b", "2"), version="2"),
        table(row("a", "1"), row("b", "9"), row("c", "8"), version="9"),
    ]
    watches = [
        [{"type": "ADDED", "object": table(row("d", "3"), columns=False)}],
        [{"type": "BOOKMARK", "object": table(row("", "5"))}],
        [{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}],
        errors.Forbidden("enough"),
    ]
    asking, transport = server(**{"__api__v1__services": lists, "__api__v1__services?watch": watches})
    options = get.parser().parse_intermixed_args(["svc", "-A", "-w"])
    kind = ServerKind(SERVICES)
    with pytest.raises(errors.Forbidden):
        await watch(asking, [Target(kind)], options)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["NAMESPACE", "NAME"], ["a"], ["b"], ["d"], ["b"], ["c"]]
    since = [dict(request.query).get("resourceVersion") for request in transport.asked]
    assert since == [None, "2", "3", "5", None, "9"]


async def test_only_changes_and_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    watches = [
        [
            {"type": "ADDED", "object": table(row("b", "3"))},
            {"type": "DELETED", "object": table(row("a", "4"), columns=False)},
        ],
        errors.Forbidden("enough"),
    ]
    lists = [table(row("a", "1"), version="2")]
    asking, _ = server(**{"__api__v1__services": lists, "__api__v1__services?watch": watches})
    options = get.parser().parse_intermixed_args(["svc", "-A", "--watch-only", "--output-watch-events"])
    with pytest.raises(errors.Forbidden):
        await watch(asking, [Target(ServerKind(SERVICES, short_names=("svc",)))], options)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines == [["EVENT", "NAMESPACE", "NAME"], ["ADDED", "b"], ["DELETED", "a"]]
