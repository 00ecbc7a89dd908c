"""What our own server seldom does and others do: pages that expire, watches that end."""

from __future__ import annotations

import argparse
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from seamark import errors
from seamark.access.sending import Request
from seamark.cli.objects import get
from seamark.cli.objects.kinds import ServerKind, Target
from seamark.cli.objects.server import Server
from seamark.cli.objects.watch import watch
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

    async def ask(self, request: Request) -> tuple[int, bytes]:
        return 500, self._next(request)

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


async def test_the_checks_that_fail_are_read_from_readyz() -> None:
    page = b"[+]ping ok\n[-]dns failed: cannot listen: it failed: why\n[+]nodes ok\nreadyz check failed\n"
    asked, _ = server(__readyz=[page])
    assert await asked.failing() == {"dns": "cannot listen: it failed: why"}
