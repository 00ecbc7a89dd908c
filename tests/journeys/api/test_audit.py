"""The audit log of a running server: who did what, and what became of it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from api_calls import call, watched
from seamark_process import Start

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, nonResourceURLs: ["*"]}
- {level: RequestResponse, resources: [{group: "", resources: [configmaps]}], omitManagedFields: true}
- {level: Metadata, resources: [{group: "", resources: [secrets]}]}
"""
PATH = "/api/v1/namespaces/default"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_who_did_what(start: Start, tmp_path: Path) -> None:
    file, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text(POLICY)
    server = start("--audit-log-path", str(file), "--audit-policy-file", str(policy))
    assert call(server, "GET", "/version")[0] == 200
    assert call(server, "GET", f"{PATH}/pods")[0] == 200
    assert lines(file) == []

    settings = {"metadata": {"name": "settings"}, "data": {"a": "b"}}
    assert call(server, "POST", f"{PATH}/configmaps", settings)[0] == 201
    secret = {"metadata": {"name": "word"}, "stringData": {"word": "sesame"}}
    assert call(server, "POST", f"{PATH}/secrets?fieldManager=me", secret)[0] == 201
    assert call(server, "DELETE", f"{PATH}/configmaps/other")[0] == 404
    assert call(server, "GET", f"{PATH}/configmaps/settings", token=None)[0] == 403
    made, kept, missing, forbidden = lines(file)
    assert (made["verb"], made["user"]["username"]) == ("create", "kubernetes-admin")
    assert made["requestObject"]["data"] == made["responseObject"]["data"] == {"a": "b"}
    assert "managedFields" not in made["responseObject"]["metadata"]
    assert kept["requestURI"] == f"{PATH}/secrets?fieldManager=me"
    assert kept["objectRef"] == {"resource": "secrets", "namespace": "default", "name": "word", "apiVersion": "v1"}
    assert missing["responseStatus"]["reason"] == "NotFound"
    assert missing["objectRef"]["name"] == "other"
    assert forbidden["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert forbidden["user"]["username"] == "system:anonymous"
    assert "sesame" not in file.read_text()
    assert server.token not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    before = len(lines(file))
    watched(server, f"{PATH}/configmaps?timeoutSeconds=1", until=lambda events: len(events) > 0)
    while [line["stage"] for line in lines(file)[before:]] != ["ResponseStarted", "ResponseComplete"]:
        assert server.process.poll() is None
    assert [line["verb"] for line in lines(file)[before:]] == ["watch", "watch"]


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--audit-log-path", "/nowhere/audit.log"], "cannot write the audit log /nowhere/audit.log"),
        (["--audit-policy-file", "policy.yaml"], "audit_log does not say where"),
        (["--audit-log-path", "audit.log", "--audit-policy-file", "absent.yaml"], "cannot read the audit policy"),
    ],
)
def test_a_log_that_cannot_be_kept_is_told_at_once(tmp_path: Path, flags: list[str], told: str) -> None:
    command = [sys.executable, "-m", "seamark", "apiserver", "--data-dir", str(tmp_path / "data"), "--api-port", "0"]
    done = subprocess.run([*command, *flags], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
