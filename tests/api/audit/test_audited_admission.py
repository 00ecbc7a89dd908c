"""What admission policies and webhooks say in the audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from called_servers import Trusted
from hooked import Hooks, configuration, labelled
from tests.api.policies.admission_policies import SECRETS, bind, policy, secret
from tests.api.served import Served, served

from seamark.api.audit.log import AuditLog
from seamark.api.audit.policy import API_VERSION, Policy, Rule
from seamark.clock import SYSTEM_CLOCK
from seamark.metrics import Registry


def log(file: Path) -> AuditLog:
    rules = (Rule("Metadata", verbs=("create",), omit_stages=("RequestReceived",)),)
    return AuditLog(file, policy=Policy(API_VERSION, "Policy", rules), clock=SYSTEM_CLOCK, metrics=Registry())


async def annotations(api: Served, file: Path, name: str) -> dict[str, str]:
    """What the log says about the creation of a Secret."""
    answer = await api.ask("POST", SECRETS, secret(name))
    assert answer.status == 201, answer
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    last: dict[str, Any] = [each for each in lines if each["objectRef"]["resource"] == "secrets"][-1]
    return {key: value for key, value in last["annotations"].items() if not key.startswith("authorization.")}


async def test_failures_and_annotations_of_policies_are_logged(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    async with served(audit=log(file)) as api:
        for name in ("one", "two"):
            meta = {"name": name, "labels": {"param": "yes"}}
            await api.post("/api/v1/namespaces/default/configmaps", {"metadata": meta, "data": {"team": name}})
        wrong = [{"expression": "true"}, {"expression": "false", "message": "no"}, {"expression": "false"}]
        notes = [
            {"key": "team", "valueExpression": "string(params.data.team)"},
            {"key": "same", "valueExpression": "'x'"},
            {"key": "none", "valueExpression": "null"},
        ]
        kind = {"apiVersion": "v1", "kind": "ConfigMap"}
        await policy(api, "p.example.com", paramKind=kind, validations=wrong, auditAnnotations=notes)
        chosen = {"selector": {"matchLabels": {"param": "yes"}}, "parameterNotFoundAction": "Deny"}
        await bind(api, "b", "p.example.com", paramRef=chosen, validationActions=["Warn", "Audit"])
        found = await annotations(api, file, "a")
    # Of several failures the first is logged, as Kubernetes does.
    failure = found.pop("validation.policy.admission.k8s.io/validation_failure")
    assert json.loads(failure) == [
        {
            "message": "no",
            "policy": "p.example.com",
            "binding": "b",
            "expressionIndex": 1,
            "validationActions": ["Warn", "Audit"],
        }
    ]
    assert found == {"p.example.com/team": "one, two", "p.example.com/same": "x"}


async def test_what_webhooks_did_and_said_is_logged(tmp_path: Path) -> None:
    file = tmp_path / "audit.log"
    async with served(audit=log(file)) as api, Hooks(Trusted(tmp_path)) as hooks:
        hooks.answers["edit"] = labelled(by="hook")
        hooks.answers["judge"] = {"auditAnnotations": {"seen": "yes"}}
        gone = hooks.hook("gone", failurePolicy="Ignore")
        gone["clientConfig"] = {"url": "https://127.0.0.1:1/gone"}
        await api.post(*configuration(hooks.hook("edit"), kind="Mutating"))
        await api.post(*configuration(hooks.hook("judge"), gone))
        found = await annotations(api, file, "a")
    changed = json.loads(found.pop("mutation.webhook.admission.k8s.io/round_0_index_0"))
    assert changed == {"configuration": "own", "webhook": "edit.example.com", "mutated": True}
    assert found == {
        "failed-open.validating.webhook.admission.k8s.io/round_0_index_1": "gone.example.com",
        "judge.example.com/seen": "yes",
    }
