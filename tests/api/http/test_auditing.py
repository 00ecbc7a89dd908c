"""The audit log and the answers that it is about."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from served import served

from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import API_VERSION, Policy, Rule
from seamark.clock import SYSTEM_CLOCK
from seamark.metrics import Registry


@pytest.mark.parametrize("path", ["/api/v1/namespaces/default", "/api/v1/namespaces/none", "/api", "/nothing"])
async def test_an_answer_names_its_entry_in_the_log(tmp_path: Path, path: str) -> None:
    """By the client's own word for it, if it sends one."""
    file, rules = tmp_path / "audit.log", (Rule("Metadata"),)
    log = AuditLog(file, policy=Policy(API_VERSION, "Policy", rules), clock=SYSTEM_CLOCK, metrics=Registry())
    async with served(audit=log) as api:
        first = await api.ask("GET", path)
        second = await api.ask("GET", path, headers={"audit-id": "mine"})
    logged = [json.loads(line) for line in file.read_text().splitlines()]
    ids = [each["auditID"] for each in logged if each["stage"] == "ResponseComplete" and each["requestURI"] == path]
    assert ids == [first.header("Audit-Id"), "mine"]
    assert second.header("Audit-Id") == "mine"
