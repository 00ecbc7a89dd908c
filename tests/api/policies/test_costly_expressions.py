"""Expressions of admission that take long: they leave the event loop, and find the same there."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from admission_policies import GROUP, RULES, SECRETS, bind, policy, secret
from served import Served, served

from seamark.api.authorization import Attributes, Decision, GroupAuthorizer, User
from seamark.cel.compiling import Code
from seamark.cel.environment import STEPS_PER_COST
from seamark.haste import STEPS_AT_ONCE

# Each letter is compared with each other: 200 of them cost more than the event loop has time for.
LETTERS = "object.metadata.annotations.letters.split('')"
PAIRS = f"{LETTERS}.all(a, {LETTERS}.all(b, a.size() + b.size() > %d))"
ASKED = "authorizer.group('').resource('pods').check('%s').allowed()"


def lettered(name: str, count: int = 200) -> dict[str, Any]:
    return secret(name) | {"metadata": {"name": name, "annotations": {"letters": "x" * count}}}


class Counted:
    """What evaluations cost, on the event loop and elsewhere."""

    def __init__(self) -> None:
        self.here = threading.get_ident()
        self.on_loop = self.elsewhere = 0
        self.evaluate = Code.evaluate

    def __call__(self, code: Code, given: dict[str, Any], meter: Any) -> Any:
        before = meter.left
        try:
            return self.evaluate(code, given, meter)
        finally:
            used = before - meter.left
            if threading.get_ident() == self.here:
                self.on_loop += used
            else:
                self.elsewhere += used


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted = Counted()
    monkeypatch.setattr(Code, "evaluate", lambda *given: counted(*given))
    return counted


class Answering(GroupAuthorizer):
    """Everyone may do everything but delete Pods; says in which threads it was asked about these."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def trusts(self, user: User) -> bool:
        return False

    def authorize(self, user: User, attributes: Attributes) -> Decision:
        if attributes.resource == "pods":
            self.threads.append(threading.get_ident())
        return Decision(attributes.resource != "pods" or attributes.verb != "delete")


AUTHORIZER = Answering()


@pytest.fixture
async def api() -> AsyncIterator[Served]:
    AUTHORIZER.threads.clear()
    async with served(authorizer=AUTHORIZER) as server:
        yield server


# What may be spent at once, and what the one expression cost on top by which that was noticed.
MOST = 2 * STEPS_AT_ONCE // STEPS_PER_COST


async def test_many_policies_share_the_time_on_the_event_loop(api: Served, costs: Counted) -> None:
    await policy(api, "p", validations=[{"expression": PAIRS % n} for n in range(2)])
    for n in range(20):
        await bind(api, f"b{n}", "p")
    small = await api.ask("POST", SECRETS, lettered("small", 1))
    assert (small.status, costs.elsewhere) == (201, 0)
    costs.on_loop = 0
    made = await api.ask("POST", SECRETS, lettered("large"))
    assert made.status == 201
    assert costs.on_loop <= MOST
    assert costs.elsewhere > 20 * MOST


async def test_many_parameters_do_too(api: Served, costs: Counted) -> None:
    for n in range(300):
        meta = {"name": f"p{n}", "labels": {"of": "p"}}
        await api.post("/api/v1/namespaces/default/configmaps", {"metadata": meta, "data": {"words": "a " * 200}})
    rule = "params.data.words.split(' ').all(a, a.size() < 2)"
    await policy(api, "p", paramKind={"apiVersion": "v1", "kind": "ConfigMap"}, validations=[{"expression": rule}])
    selector = {"selector": {"matchLabels": {"of": "p"}}, "parameterNotFoundAction": "Deny"}
    await bind(api, "b", "p", paramRef=selector)
    costs.on_loop = costs.elsewhere = 0
    await api.post(SECRETS, secret("s"))
    assert costs.on_loop <= MOST
    assert costs.elsewhere > costs.on_loop


@pytest.mark.parametrize(("verb", "status"), [("get", 201), ("delete", 422)])
async def test_rights_are_asked_about_on_the_event_loop_only(
    api: Served, costs: Counted, verb: str, status: int
) -> None:
    asked = f"{ASKED % 'list'} && {ASKED % verb}"
    await policy(api, "p", validations=[{"expression": f"{PAIRS % 1} && {asked}"}])
    await bind(api, "b", "p")
    answer = await api.ask("POST", SECRETS, lettered("s", 60))  # more would leave no room for two questions
    assert answer.status == status
    assert costs.elsewhere > 0
    assert AUTHORIZER.threads == [threading.get_ident()] * 2


async def test_questions_about_rights_are_no_reason_to_leave_the_event_loop(api: Served, costs: Counted) -> None:
    await policy(api, "p", validations=[{"expression": ASKED % "get"}] * 5)
    await bind(api, "b", "p")
    await api.post(SECRETS, secret("s"))
    assert costs.elsewhere == 0


async def test_what_is_begun_again_edits_once_and_has_the_whole_budget(api: Served, costs: Counted) -> None:
    edit = "[JSONPatch{op: 'add', path: '/metadata/finalizers/-', value: 'example.com/' + string(%s)}]"
    spec = {
        "reinvocationPolicy": "Never",
        "variables": [{"name": "pairs", "expression": PAIRS % 1}],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": edit % each}}
            for each in ("1", "variables.pairs", "2")
        ],
    }
    await policy(api, "p", kind="mutating", **spec)
    await bind(api, "b", "p", kind="mutating")
    made = lettered("s")
    made["metadata"]["finalizers"] = ["example.com/0"]
    stored = await api.post(SECRETS, made)
    assert stored["metadata"]["finalizers"] == [f"example.com/{each}" for each in ("0", "1", "true", "2")]
    assert costs.elsewhere > 0


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
async def test_conditions_of_webhooks_share_the_time_too(api: Served, costs: Counted, kind: str) -> None:
    conditions = [{"name": f"c{n}", "expression": PAIRS % n} for n in range(2)] + [{"name": "z", "expression": "false"}]
    hooks = [
        {
            "name": f"h{n}.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://127.0.0.1:9/never-asked"},
            "rules": RULES,
            "matchConditions": conditions,
        }
        for n in range(10)
    ]
    path = f"{GROUP}/{kind.lower()}webhookconfigurations"
    await api.post(path, {"metadata": {"name": "c"}, "webhooks": hooks})
    await api.post(SECRETS, lettered("s"))
    assert costs.on_loop <= MOST
    assert costs.elsewhere > 10 * MOST


async def test_others_are_answered_meanwhile(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    reached, opened = asyncio.Event(), threading.Event()
    loop, here, evaluate = asyncio.get_running_loop(), threading.get_ident(), Code.evaluate

    def gated(code: Code, given: dict[str, Any], meter: Any) -> Any:
        if threading.get_ident() != here:
            loop.call_soon_threadsafe(reached.set)
            opened.wait()
        return evaluate(code, given, meter)

    monkeypatch.setattr(Code, "evaluate", gated)
    await policy(api, "p", validations=[{"expression": PAIRS % 1}])
    await bind(api, "b", "p")
    costly = asyncio.ensure_future(api.ask("POST", SECRETS, lettered("large")))
    await reached.wait()
    try:
        await api.post(SECRETS, lettered("small", 3))
        assert not costly.done()
    finally:
        opened.set()
    assert (await costly).status == 201
