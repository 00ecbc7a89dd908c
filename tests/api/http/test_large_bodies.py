"""Large bodies are worked on in a thread, those that can never be stored not for long, and others do not wait."""

from __future__ import annotations

import asyncio
import gc
import itertools
import threading
from collections.abc import Callable
from typing import Any

import pytest
import re2  # type: ignore[import-untyped]  # it has no types
from custom_resources import BASE, DEFINITIONS, definition, established, version, widget
from served import Served
from tests.api.policies.admission_policies import GROUP, RULES, SECRETS, bind, policy, secret

from protobuf_wire import envelope, member
from seamark import haste
from seamark.api import edits, intake
from seamark.api.fields import apply, managed
from seamark.api.http import body
from seamark.api.http.render import Renderer
from seamark.api.policies.policy import ValidatingPolicy
from seamark.haste import FEW_ENTRIES, LARGE, LARGE_STORED, LARGE_WITH_FEW_ENTRIES, is_large
from seamark.kinds.core.configmap import ConfigMapKind

MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
LONG = "x" * LARGE_WITH_FEW_ENTRIES
STEPS: list[tuple[Any, str]] = [
    *((body, name) for name in ("read", "read_patch", "read_applied", "read_deletion")),
    (intake, "conformed"),
    (edits, "conform_patched"),
    (apply, "apply"),
    (managed, "track"),
    (ConfigMapKind, "validate"),
    (Renderer, "one"),
]


class Steps:
    """The steps that were done in a thread, and those that were done on the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.in_thread: set[str] = set()
        self.on_loop: set[str] = set()
        loop = threading.current_thread()
        for place, name in STEPS:
            monkeypatch.setattr(place, name, self._noting(getattr(place, name), name, loop))

    def _noting(self, step: Callable[..., Any], name: str, loop: threading.Thread) -> Callable[..., Any]:
        def noting(*args: Any, **more: Any) -> Any:
            (self.on_loop if threading.current_thread() is loop else self.in_thread).add(name)
            return step(*args, **more)

        return noting


@pytest.fixture
async def steps(api: Served, monkeypatch: pytest.MonkeyPatch) -> Steps:
    await api.post(MAPS, {"metadata": {"name": "there"}, "data": {"a": "b"}})
    return Steps(monkeypatch)


def config_map(name: str, text: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": text}}


def as_yaml(name: str, text: str) -> bytes:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: {text}}}\n".encode()


def as_protobuf(name: str, text: str) -> bytes:
    entry = member(1, b"a") + member(2, text.encode())
    return envelope("v1", "ConfigMap", member(1, member(1, name.encode())) + member(2, entry))


NEW = {"read", "conformed", "track", "validate"}
PATCHED = {"read_patch", "conform_patched", "track", "validate"}
APPLIED = {"read_applied", "apply", "validate"}
PROTOBUF = "application/vnd.kubernetes.protobuf"
REQUESTS: dict[str, tuple[str, str, Callable[[str], Any], str, set[str]]] = {
    "create": ("POST", MAPS, lambda text: config_map("new", text), "json", NEW),
    "create from YAML": ("POST", MAPS, lambda text: as_yaml("new", text), "yaml", NEW),
    "create from protobuf": ("POST", MAPS, lambda text: as_protobuf("new", text), PROTOBUF[12:], NEW),
    "update": ("PUT", f"{MAPS}/there", lambda text: config_map("there", text), "json", NEW),
    "merge": ("PATCH", f"{MAPS}/there", lambda text: {"data": {"a": text}}, "merge-patch+json", PATCHED),
    "strategic": ("PATCH", f"{MAPS}/there", lambda text: {"data": {"a": text}}, "strategic-merge-patch+json", PATCHED),
    "JSON patch": (
        "PATCH",
        f"{MAPS}/there",
        lambda text: [{"op": "add", "path": "/data/a", "value": text}],
        "json-patch+json",
        PATCHED,
    ),
    "apply": ("PATCH", f"{MAPS}/new", lambda text: as_yaml("new", text), "apply-patch+yaml", APPLIED),
    "delete": ("DELETE", f"{MAPS}/there", lambda text: {"dryRun": ["All"], "x": text}, "json", {"read_deletion"}),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_large_body_is_worked_on_in_a_thread(api: Served, steps: Steps, name: str) -> None:
    method, path, sent, type, expected = REQUESTS[name]
    answer = await api.ask(method, f"{path}?fieldManager=m", sent(LONG), type=f"application/{type}")
    assert answer.status in (200, 201), answer
    assert steps.in_thread == expected
    assert steps.on_loop <= {"one"}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_small_body_is_not(api: Served, steps: Steps, name: str) -> None:
    method, path, sent, type, expected = REQUESTS[name]
    answer = await api.ask(method, f"{path}?fieldManager=m", sent("x"), type=f"application/{type}")
    assert answer.status in (200, 201), answer
    assert steps.on_loop - {"one"} == expected
    assert not steps.in_thread


def test_a_body_with_few_entries_may_be_longer_than_one_with_many() -> None:
    texts, entries = b'{"a":"%b"}' % (b"x" * LARGE), b'{"a":[%b]}' % (b"{}," * (LARGE // 3))
    assert min(len(texts), len(entries)) > LARGE
    assert (is_large(texts), is_large(entries)) == (False, True)
    assert is_large(b'{"a":"%b"}' % LONG.encode())
    assert not is_large(b"{}," * (FEW_ENTRIES // 2))
    assert is_large(b"k8s\x00" + b"\x12\x00" * LARGE), "entries of protobuf and YAML are not counted"


async def test_a_small_change_of_a_large_object_is_made_in_a_thread(api: Served, steps: Steps) -> None:
    await api.post(MAPS, config_map("large", "x" * LARGE_STORED))
    steps.in_thread.clear()
    steps.on_loop.clear()
    await api.merge(f"{MAPS}/large", {"data": {"b": "c"}})
    assert steps.in_thread == PATCHED - {"read_patch"}
    assert steps.on_loop == {"read_patch", "one"}


async def test_a_large_object_is_written_as_yaml_in_a_thread(api: Served, steps: Steps) -> None:
    await api.post(MAPS, config_map("large", "x" * LARGE_STORED))
    for name, thread in (("there", False), ("large", True)):
        steps.in_thread.clear()
        answer = await api.ask("GET", f"{MAPS}/{name}", headers={"accept": "application/yaml"})
        assert answer.status == 200
        assert bool(steps.in_thread) is thread


async def test_reviews_are_read_in_a_thread(api: Served, steps: Steps) -> None:
    sent = {"spec": {"resourceAttributes": {"verb": "get", "resource": "[" * LARGE}}}
    assert (await api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", sent)).status == 201
    assert steps.in_thread == {"read", "conformed"}


# --- what is refused ---------------------------------------------------------------------------------


def refused_to_validate(self: Any, *given: Any) -> Any:
    raise AssertionError("it was validated")


async def test_what_can_never_be_stored_is_not_validated(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    there = config_map("there", "b")
    await api.post(MAPS, there)
    monkeypatch.setattr(ConfigMapKind, "validate", refused_to_validate)
    much = {str(i): "" for i in range(200_000)}
    too_large = [
        await api.ask("POST", MAPS, {**config_map("new", ""), "data": much}),
        await api.ask("PUT", f"{MAPS}/there", {**there, "data": much}),
        await api.ask("PATCH", f"{MAPS}/there", {"data": much}, type="application/merge-patch+json"),
        await api.ask("PATCH", f"{MAPS}/new?fieldManager=m", {**config_map("new", ""), "data": much}, type=body.APPLY),
    ]
    for answer in too_large:
        assert (answer.status, answer.json["message"]) == (500, "etcdserver: request is too large")


async def test_what_a_write_cannot_set_does_not_count(api: Served) -> None:
    entries = [{"manager": LONG, "fieldsV1": {"f:a": {}}}] * 20
    await api.post(MAPS, {"metadata": {"name": "tracked", "managedFields": entries}})
    conditions = [{"type": "A", "status": "True", "message": LONG}] * 20
    spec = {"containers": [{"name": "a", "image": "a"}]}
    created = await api.post(PODS, {"metadata": {"name": "p"}, "spec": spec, "status": {"conditions": conditions}})
    assert "conditions" not in created["status"]


async def test_of_very_many_mistakes_the_first_are_told(api: Served) -> None:
    few, many = [await api.ask("POST", MAPS, mistaken(count)) for count in (5_000, 50_000)]
    assert (few.status, many.status) == (422, 422)
    assert len(few.json["details"]["causes"]) == 5_000
    causes = many.json["details"]["causes"]
    assert len(causes) == 101
    assert causes[:100] == few.json["details"]["causes"][:100]
    assert causes[100]["message"].endswith("there are many more mistakes, which are not listed; correct these first")


def mistaken(count: int) -> dict[str, Any]:
    """A ConfigMap whose keys are no keys."""
    return {"metadata": {"name": "mistaken"}, "data": {f"%{i:06}": "" for i in range(count)}}


# --- those who wait ----------------------------------------------------------------------------------


class Gate:
    """Stops what is decoded in a thread until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self._opened = asyncio.Event(), threading.Event()
        loop, read = asyncio.get_running_loop(), body.read

        def stopped(*given: Any) -> Any:
            if len(given[0]) >= LARGE:
                loop.call_soon_threadsafe(self.reached.set)
                self._opened.wait()
            return read(*given)

        monkeypatch.setattr(body, "read", stopped)

    def open(self) -> None:
        self._opened.set()


async def test_large_bodies_wait_for_each_other_and_no_small_one_for_them(
    api: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(monkeypatch)
    large = []
    try:
        for i in range(18):
            large.append(asyncio.ensure_future(api.begin("POST", MAPS, config_map(f"large-{i}", LONG))))
            await asyncio.sleep(0)
        await gate.reached.wait()
        assert not gc.isenabled(), "Python does not look for garbage among millions of objects"
        await api.post(MAPS, config_map("small", "x"))
        assert [item["metadata"]["name"] for item in (await api.get(MAPS))["items"]] == ["small"]
        refused = await api.ask("POST", MAPS, config_map("too-many", LONG))
        assert (refused.status, refused.header("Retry-After")) == (429, "1")
    finally:
        gate.open()
    assert {answer.status for answer in await asyncio.gather(*large)} == {201}
    await asyncio.sleep(0)
    assert gc.isenabled()


# --- policies ----------------------------------------------------------------------------------------


async def test_large_policies_are_compiled_in_a_thread(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    make = ValidatingPolicy.__init__

    def noting(self: ValidatingPolicy, obj: Any) -> None:
        make(self, obj)
        threads.append(threading.current_thread())

    monkeypatch.setattr(ValidatingPolicy, "__init__", noting)
    for name, count in (("small", 1), ("large", 500)):
        rules = [{"expression": f"object.metadata.name != '{name}-{i}'"} for i in range(count)]
        await policy(api, name, validations=rules)
        await bind(api, name, of=name)
        refused, created = await asyncio.gather(
            api.ask("POST", SECRETS, secret(f"{name}-0")), api.ask("POST", SECRETS, secret(f"{name}-good"))
        )
        assert (refused.status, created.status) == (422, 201)
        assert f"policy '{name}'" in refused.json["message"].lower()
    assert threads[0] is threading.current_thread()
    assert threading.current_thread() not in threads[1:]


PATTERN = "object.metadata.name.matches('\\\\pL{1,9}costly%d')"


@pytest.mark.parametrize("kind", ["policy", "webhook"])
async def test_patterns_are_compiled_in_a_thread_and_very_many_not_at_all(
    api: Served, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    threads, compile = [], re2.compile

    def noting(*given: Any, **more: Any) -> Any:
        threads.append(threading.current_thread())
        return compile(*given, **more)

    def made(name: str, count: int) -> tuple[str, Any]:
        texts = [PATTERN % next(numbers) for _ in range(count)]
        if kind == "policy":
            rules = {"matchConstraints": {"resourceRules": RULES}, "validations": [{"expression": e} for e in texts]}
            return f"{GROUP}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": rules}
        hook = {
            "name": "a.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "clientConfig": {"url": "https://127.0.0.1:1/"},
            "rules": RULES,
            "matchConditions": [{"name": f"c{i}", "expression": text} for i, text in enumerate(texts)],
        }
        return f"{GROUP}/validatingwebhookconfigurations", {"metadata": {"name": name}, "webhooks": [hook]}

    numbers = itertools.count() if kind == "policy" else itertools.count(1000)
    monkeypatch.setattr(re2, "compile", noting)
    await api.post(*made("few", 3))
    assert len(threads) == 3
    assert threading.current_thread() not in threads
    monkeypatch.setattr(haste, "STEPS_AT_LENGTH", 2 * haste.STEPS_AT_ONCE)
    many = await api.ask("POST", *made("many", 30))
    assert many.status == 422
    assert many.json["message"].endswith("its rules and patterns take too long to check")
    assert len(threads) <= 6


# --- defaults ----------------------------------------------------------------------------------------


async def test_defaults_of_a_later_schema_are_filled_into_a_stored_object_up_to_a_limit(api: Served) -> None:
    def spec(**entry: Any) -> dict[str, Any]:
        item = {"type": "object", "properties": {"a": {"type": "string", **entry}}}
        return {"type": "object", "properties": {"items": {"type": "array", "items": item}}}

    made = await api.post(DEFINITIONS, definition(version(spec=spec())))
    await established(api)
    for name, count in (("few", 3), ("many", 100)):
        await api.post(BASE, widget(name, items=[{} for _ in range(count)]))
    made = await api.get(f"{DEFINITIONS}/{made['metadata']['name']}")
    made["spec"]["versions"] = definition(version(spec=spec(default="d" * 100_000)))["spec"]["versions"]
    await api.put(f"{DEFINITIONS}/{made['metadata']['name']}", made)
    while not all("a" in item for item in (await api.get(f"{BASE}/few"))["spec"]["items"]):
        await asyncio.sleep(0)
    items = (await api.get(f"{BASE}/many"))["spec"]["items"]
    assert len(items) == 100
    assert sum("a" in item for item in items) == 41
