"""Requests and answers as the audit log sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from served import served

from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import API_VERSION, Policy, Rule
from seamark.api.http.fairness import LONG_LIST
from seamark.clock import SYSTEM_CLOCK
from seamark.haste import LARGE
from seamark.kinds.language import yaml_body
from seamark.metrics import Registry

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def log(file: Path, **more: Any) -> AuditLog:
    rules = (Rule("RequestResponse", omit_stages=("RequestReceived",), **more),)
    return AuditLog(file, policy=Policy(API_VERSION, "Policy", rules), clock=SYSTEM_CLOCK, metrics=Registry())


def last(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text().splitlines()[-1])


async def test_a_large_body_in_yaml_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []
    parse = yaml_body.read
    monkeypatch.setattr(yaml_body, "read", lambda body: (read.append(body), parse(body))[1])
    async with served(audit=log(file)) as api:
        text = "x" * LARGE
        body = f"metadata: {{name: c}}\ndata:\n  k: {text}\n".encode()
        for verb, path, type in (
            ("POST", CONFIGMAPS, "application/yaml"),
            ("PATCH", f"{CONFIGMAPS}/d?fieldManager=m", "application/apply-patch+yaml"),
        ):
            sent = body if verb == "POST" else b"apiVersion: v1\nkind: ConfigMap\n" + body.replace(b"c}", b"d}")
            answer = await api.ask(verb, path, sent, type=type)
            assert answer.status == 201
            assert read == [sent]
            assert last(file)["requestObject"]["data"] == {"k": text}
            read.clear()
        await api.ask("POST", CONFIGMAPS, b"metadata: [", type="application/yaml")
        assert (last(file)["responseStatus"]["code"], "requestObject" in last(file)) == (400, False)


@pytest.mark.parametrize("omitted", [False, True])
async def test_a_long_list_is_logged_as_it_is_sent(file: Path, omitted: bool) -> None:
    async with served(audit=log(file, omit_managed_fields=omitted)) as api:
        for number in range(3):
            await api.post(CONFIGMAPS, {"metadata": {"name": f"c{number}"}, "data": {"k": "x" * LONG_LIST}})
        answer = await api.ask("GET", CONFIGMAPS)
        items = last(file)["responseObject"]["items"]
        assert [item["data"] for item in items] == [item["data"] for item in msgspec.json.decode(answer.body)["items"]]
        assert {"managedFields" in item["metadata"] for item in items} == {not omitted}


@pytest.mark.parametrize("path", ["/api/v1/namespaces/default", "/api/v1/namespaces/none", "/api", "/nothing"])
async def test_an_answer_names_its_entry_in_the_log(file: Path, path: str) -> None:
    """By the client's own word for it, if it sends one."""
    async with served(audit=log(file)) as api:
        first = await api.ask("GET", path)
        second = await api.ask("GET", path, headers={"audit-id": "mine"})
    logged = [json.loads(line) for line in file.read_text().splitlines()]
    ids = [each["auditID"] for each in logged if each["stage"] == "ResponseComplete" and each["requestURI"] == path]
    assert ids == [first.header("Audit-Id"), "mine"]
    assert second.header("Audit-Id") == "mine"
