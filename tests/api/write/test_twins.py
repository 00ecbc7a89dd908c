"""Pods that differ only in their names: what is worked out once, and all that must be looked at each time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from served import OTHER, Served, served, served_with_admission

from seamark.api.authorization import User
from seamark.api.call import Caller, Target
from seamark.api.intake import Document
from seamark.api.write.twins import LONGEST_DOCUMENT, MOST, Likeness, Twins, likeness
from seamark.kinds.core.configmap import ConfigMapKind
from seamark.kinds.pod.pod import PodKind

PODS = "/api/v1/namespaces/default/pods"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u-1", "controller": True}


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    async with served_with_admission() as server:
        yield server


@pytest.fixture
def judged(noted: Callable[[str], list[str]]) -> list[str]:
    """The names of the Pods whose specs were looked at."""
    return noted("validate")


def pod(name: str, *, labels: Any = None, **spec: Any) -> Any:
    meta = {"generateName": "web-", "name": name, "labels": labels or {"app": "web"}, "ownerReferences": [OWNER]}
    return {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


def without_own(obj: Any) -> Any:
    """The object without what each has for itself."""
    meta = {
        k: v for k, v in obj["metadata"].items() if k not in ("name", "uid", "creationTimestamp", "resourceVersion")
    }
    meta["managedFields"] = [{k: v for k, v in each.items() if k != "time"} for each in meta["managedFields"]]
    return {**obj, "metadata": meta}


async def test_what_was_worked_out_for_one_serves_for_the_next(api: Served, judged: list[str]) -> None:
    first, second, *others = [await api.post(PODS, pod(f"web-{n}")) for n in range(5)]
    assert judged == ["web-0", "web-1"], "the first that comes again is kept"
    for n, other in enumerate(others, 2):
        assert without_own(other) == without_own(second)
        assert other["metadata"]["name"] == f"web-{n}"
        assert other == await api.get(f"{PODS}/web-{n}")
    assert len({each["metadata"]["uid"] for each in (first, second, *others)}) == 5
    await api.cache_equals_store()


async def test_a_twin_is_what_it_would_be_alone(api: Served) -> None:
    """In a server that has never seen the like."""
    twins = [await api.post(PODS, pod(f"web-{n}", hostNetwork=True, labels={"a": "b"})) for n in range(3)]
    async with served_with_admission() as other:
        alone = await other.post(PODS, pod("web-2", hostNetwork=True, labels={"a": "b"}))
    for each in (twins[2], alone):
        volume = each["spec"]["volumes"][0]["name"]
        each["spec"] = msgspec.json.decode(msgspec.json.encode(each["spec"]).replace(volume.encode(), b"VOLUME"))
    assert without_own(twins[2]) == without_own(alone)


async def test_its_times_are_its_own(judged: list[str]) -> None:
    now = 1_000_000_000.0

    class Clock:
        def time(self) -> float:
            return now

        def monotonic(self) -> float:
            return now

    async with served(clock=Clock()) as api:
        for n in range(3):
            now += 60
            made = await api.post(PODS, pod(f"web-{n}"))
    assert judged == ["web-0", "web-1"]
    assert made["metadata"]["creationTimestamp"] == made["metadata"]["managedFields"][0]["time"]
    assert made["metadata"]["creationTimestamp"] == "2001-09-09T01:49:40Z"


async def test_what_admission_looks_at_is_looked_at_again_once_it_has_changed(api: Served, judged: list[str]) -> None:
    for n in range(3):
        await api.post(PODS, pod(f"web-{n}"))
    limits = [{"type": "Container", "defaultRequest": {"cpu": "10m"}}]
    made = {"metadata": {"name": "l"}, "spec": {"limits": limits}}
    await api.post("/api/v1/namespaces/default/limitranges", made)
    after = await api.post(PODS, pod("web-3"))
    assert after["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "10m"}}
    again = await api.post(PODS, pod("web-4"))
    assert judged == ["web-0", "web-1", "web-3"], "and what comes of it is kept again"
    assert without_own(again) == without_own(after)
    await api.delete("/api/v1/namespaces/default/serviceaccounts/default")
    account = {"metadata": {"name": "default"}, "automountServiceAccountToken": False}
    await api.post("/api/v1/namespaces/default/serviceaccounts", account)
    assert "volumes" not in (await api.post(PODS, pod("web-5")))["spec"]


async def test_a_policy_that_edits_sees_every_one_of_them(api: Served, judged: list[str]) -> None:
    for n in range(3):
        await api.post(PODS, pod(f"web-{n}"))
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    expression = "Object{metadata: Object.metadata{labels: {'made': object.metadata.name}}}"
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}],
    }
    await api.post(f"{group}/mutatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
    await api.post(f"{group}/mutatingadmissionpolicybindings", binding)
    for n in range(3, 6):
        made = await api.post(PODS, pod(f"web-{n}"))
        assert made["metadata"]["labels"] == {"app": "web", "made": f"web-{n}"}
    assert judged == ["web-0", "web-1", "web-3", "web-4", "web-5"]


async def test_a_policy_that_judges_sees_every_one_of_them(api: Served) -> None:
    for n in range(3):
        await api.post(PODS, pod(f"web-{n}"))
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    validations = [{"expression": "object.metadata.name != 'web-4'", "message": "not that one"}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": validations}
    await api.post(f"{group}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    await api.post(f"{group}/validatingadmissionpolicybindings", binding)
    assert (await api.ask("POST", PODS, pod("web-3"))).status == 201
    assert (await api.ask("POST", PODS, pod("web-4"))).status == 422
    assert (await api.ask("POST", PODS, pod("web-5"))).status == 201


async def test_quotas_count_every_one_of_them(api: Served) -> None:
    for n in range(3):
        await api.post(PODS, pod(f"web-{n}"))
    quota = await api.post(
        "/api/v1/namespaces/default/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "5"}}}
    )
    status = {"hard": {"pods": "5"}, "used": {"pods": "3"}}
    await api.put("/api/v1/namespaces/default/resourcequotas/q/status", quota | {"status": status})
    answers = await asyncio.gather(*(api.ask("POST", PODS, pod(f"web-{n}")) for n in range(3, 8)))
    assert sorted(each.status for each in answers) == [201, 201, 403, 403, 403]


async def test_a_namespace_that_goes_away_takes_no_more(api: Served) -> None:
    await api.post("/api/v1/namespaces", {"metadata": {"name": "n", "finalizers": ["example.com/a"]}})
    await api.post("/api/v1/namespaces/n/serviceaccounts", {"metadata": {"name": "default"}})
    for n in range(3):
        await api.post("/api/v1/namespaces/n/pods", pod(f"web-{n}"))
    await api.delete("/api/v1/namespaces/n")
    refused = await api.ask("POST", "/api/v1/namespaces/n/pods", pod("web-3"))
    assert refused.status == 403
    assert refused.json["details"]["causes"][0]["reason"] == "NamespaceTerminating"


async def test_a_name_that_is_taken_is_refused_in_the_same_words(api: Served) -> None:
    await api.post(PODS, pod("web-0"))
    before = await api.ask("POST", PODS, pod("web-0"))
    for n in range(1, 4):
        await api.post(PODS, pod(f"web-{n}"))
    after = await api.ask("POST", PODS, pod("web-0"))
    assert before.status == after.status == 409
    assert before.json == after.json
    assert before.header("Retry-After") == after.header("Retry-After")


async def test_warnings_are_told_each_time(api: Served) -> None:
    odd = [
        await api.ask("POST", PODS, pod(f"web-{n}", nodeSelector={"beta.kubernetes.io/os": "linux"})) for n in range(4)
    ]
    assert len({tuple(each.warnings) for each in odd}) == 1
    assert odd[0].warnings
    twice = b'{"metadata":{"name":"dup-%d"},"spec":{"containers":[{"name":"c","image":"i","image":"i"}]}}'
    repeated = [await api.ask("POST", PODS, twice % n) for n in range(4)]
    assert len({tuple(each.warnings) for each in repeated}) == 1
    assert repeated[0].warnings


async def test_yaml_may_use_the_name_in_other_places(api: Served) -> None:
    text = '{metadata: {name: &n "web-%d"}, spec: {hostname: *n, containers: [{name: c, image: i}]}}'
    made = [await api.post(PODS, (text % n).encode(), type="application/yaml") for n in range(4)]
    assert [each["spec"]["hostname"] for each in made] == [f"web-{n}" for n in range(4)]


async def test_what_has_the_time_inside_is_made_anew(judged: list[str]) -> None:
    """The condition of a Pod that is held back says since when."""
    async with served() as api:
        for n in range(4):
            await api.post(PODS, pod(f"web-{n}", schedulingGates=[{"name": "example.com/wait"}]))
    assert judged == [f"web-{n}" for n in range(4)]


async def test_users_have_twins_of_their_own(judged: list[str]) -> None:
    async with served() as api:
        for n in range(3):
            await api.post(PODS, pod(f"web-{n}"))
        assert (await api.ask("POST", PODS, pod("web-3"), token=OTHER)).status == 403
        await api.post(PODS, pod("web-4"), query="fieldManager=me")
    assert judged == ["web-0", "web-1", "web-4"]


# --- documents that are alike ------------------------------------------------------------------------


def alike(obj: Any, *, kind: Any = None, **more: Any) -> tuple[Likeness, str] | None:
    caller = Caller(User("u"), "2026-01-01T00:00:00Z", **more)
    return likeness(Target(kind or PodKind(), "default"), Document(obj, msgspec.json.encode(obj)), caller)


@given(st.from_regex(r"[a-z0-9-]{1,5}", fullmatch=True), st.from_regex(r"[a-z0-9-]{1,5}", fullmatch=True), st.data())
def test_documents_are_alike_only_if_nothing_else_differs(one: str, two: str, data: st.DataObject) -> None:
    def document(name: str) -> Any:
        texts = st.sampled_from([one, two, "", "name"])
        meta = {"name": name, data.draw(texts): data.draw(texts)}
        return {"metadata": {**meta, "name": name}, "spec": {"hostname": data.draw(texts)}}

    first, second = document(one), document(two)
    found, other = alike(first), alike(second)
    if found is not None and other is not None and found[0] == other[0]:
        second["metadata"]["name"] = one
        assert first == second


def test_some_documents_have_no_twins() -> None:
    assert alike(pod("web-0")) is not None
    assert alike(pod("web-0"), dry_run=True) is None
    assert alike(pod("web-0"), kind=ConfigMapKind()) is None
    assert alike(pod("web.0")) is None, "a warning would be told"
    assert alike(pod("web-0", hostname="web-0")) is None
    assert alike(pod("web-0", hostname="x" * LONGEST_DOCUMENT)) is None
    assert alike({"spec": {}}) is None
    assert alike([]) is None


def test_a_name_that_is_written_in_another_way_is_not_taken_for_another_text() -> None:
    def of(text: str) -> tuple[Likeness, str] | None:
        document = Document(msgspec.json.decode(text), text.encode())
        return likeness(Target(PodKind(), "default"), document, Caller(User("u"), "2026-01-01T00:00:00Z"))

    assert of('{"metadata": {"labels": {"a": ""}, "name" : "web" }}') is not None
    # Without that, these two would be alike, and the second would get the labels of the first.
    assert of(r'{"metadata":{"name":"we\u0062","labels":{"a":"web","b":""}}}') is None
    assert of(r'{"metadata":{"name":"we\u0062","labels":{"a":"","b":"web"}}}') is None
    assert of('{"metadata":{},"metadata":{"name":"web"}}') is None
    assert of('{"metadata":1,"metadata":{"name":"web"}}') is None


def test_few_are_kept() -> None:
    twins = Twins()
    likes = [Likeness("default", User("u"), "m", "", str(n).encode()) for n in range(MOST + 1)]
    for each in likes:
        twins.came(each, pod("web-0"), None)
    assert not twins.expects(likes[0])
    assert twins.expects(likes[1])


async def test_one_that_is_used_is_kept(api: Served, judged: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seamark.api.write.twins.MOST", 2)
    for n in range(6):
        await api.post(PODS, pod(f"web-{n}"))
        await api.post(PODS, pod(f"other-{n}", labels={"n": str(n)}))
    assert [name for name in judged if name.startswith("web")] == ["web-0", "web-1"]
