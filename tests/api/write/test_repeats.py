"""Statuses that differ only in addresses and container IDs: what is worked out once, what each time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given, settings
from hypothesis import strategies as st
from served import Served, served, served_with_admission

from seamark.api.write import change, repeats
from seamark.api.write.repeats import MOST, PATIENCE, SELDOM, Repeats
from seamark.kinds.pod.status import own_texts

PODS = "/api/v1/namespaces/default/pods"
TIME = "2001-09-09T01:46:40Z"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Clock:
    """Stands still, so that all Pods are of one second."""

    def time(self) -> float:
        return 1_000_000_000.0

    def monotonic(self) -> float:
        return 1_000_000_000.0


@pytest_asyncio.fixture
async def api() -> AsyncIterator[Served]:
    async with served_with_admission(clock=Clock()) as server:
        yield server


@pytest.fixture
def judged(noted: Callable[[str], list[str]]) -> list[str]:
    """The names of the Pods whose statuses were looked at."""
    return noted("validate_status")


async def bound(api: Served, name: str, node: str = "node-1", **spec: Any) -> Any:
    # A token's volume has a random name, which Pods that came before their twins do not share.
    usual = {"containers": [{"name": "c", "image": "i"}], "automountServiceAccountToken": False}
    made = {"metadata": {"name": name}, "spec": {**usual, **spec}}
    await api.post(PODS, made)
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    await api.post(f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
    return await api.get(f"{PODS}/{name}")


def status(number: int, *, ip: str = "", host: str = "192.0.2.1", **more: Any) -> Any:
    ip = ip or f"10.0.0.{number}"
    container = {"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
    return {
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": ip,
        "podIPs": [{"ip": ip}],
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": TIME}],
        "containerStatuses": [{**container, "containerID": f"x://{number}", "state": {"running": {"startedAt": TIME}}}],
        **more,
    }


def without_own(obj: Any) -> Any:
    meta = {key: value for key, value in obj["metadata"].items() if key not in ("uid", "resourceVersion")}
    return {**obj, "metadata": meta}


async def report(api: Served, name: str, said: Any, **more: Any) -> Any:
    return await api.merge(f"{PODS}/{name}/status", {"status": said}, **more)


async def three_reported(api: Served) -> None:
    """So that what was worked out for them serves for the next."""
    for n in range(3):
        await bound(api, f"web-{n}")
        await report(api, f"web-{n}", status(n))


async def test_what_was_worked_out_for_one_serves_for_the_next(api: Served, judged: list[str]) -> None:
    pods = [await bound(api, f"web-{n}", node=f"node-{n}") for n in range(5)]
    for n in range(5):
        after = await report(api, f"web-{n}", status(n, host=f"192.0.2.{n}"))
        assert after == await api.get(f"{PODS}/web-{n}")
        assert after["spec"] == pods[n]["spec"]
        assert after["status"]["podIP"] == f"10.0.0.{n}"
        assert after["status"]["podIPs"] == [{"ip": f"10.0.0.{n}"}]
        assert after["status"]["hostIP"] == f"192.0.2.{n}"
        assert after["status"]["containerStatuses"][0]["containerID"] == f"x://{n}"
        assert f'k:{{"ip":"10.0.0.{n}"}}' in after["metadata"]["managedFields"][-1]["fieldsV1"]["f:status"]["f:podIPs"]
    assert judged == ["web-0", "web-1"], "the first that comes again is kept"
    await api.cache_equals_store()


@pytest.mark.parametrize("content_type", [MERGE, STRATEGIC])
async def test_a_repeat_is_what_it_would_be_alone(api: Served, content_type: str) -> None:
    """In a server that has never seen the like."""
    two = [{"ip": "10.0.0.9"}, {"ip": "fd00::9"}]
    for n in range(4):
        await bound(api, f"web-{n}")
        last = status(9, podIPs=two) if n == 3 else status(n, podIPs=[{"ip": f"10.0.0.{n}"}, {"ip": f"fd00::{n + 1}"}])
        repeat = await api.done("PATCH", f"{PODS}/web-{n}/status", {"status": last}, type=content_type)
    async with served_with_admission(clock=Clock()) as other:
        await bound(other, "web-3")
        alone = await other.done("PATCH", f"{PODS}/web-3/status", {"status": last}, type=content_type)
    assert without_own(repeat) == without_own(alone)


async def test_versions_and_uids_are_checked_each_time(api: Served, judged: list[str]) -> None:
    await three_reported(api)
    pod = await bound(api, "web-3")
    path = f"{PODS}/web-3/status"
    old = {"metadata": {"resourceVersion": "1"}, "status": status(3)}
    assert (await api.ask("PATCH", path, old, type=MERGE)).status == 409
    other = {"metadata": {"uid": "00000000-0000-4000-8000-000000000000"}, "status": status(3)}
    assert (await api.ask("PATCH", path, other, type=MERGE)).status == 422
    judged.clear()
    own = {key: pod["metadata"][key] for key in ("uid", "resourceVersion")}
    after = await api.merge(path, {"metadata": own, "status": status(3)})
    assert after["status"]["podIP"] == "10.0.0.3"
    assert not judged


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(status(3, ip="010.0.0.3"), id="an address that is not written as usual"),
        pytest.param(status(3, ip="fd00::3"), id="an address of another family"),
        pytest.param(status(3, ip="192.0.2.1"), id="an address that is the node's, too"),
        pytest.param(status(3, podIP="10.0.0.4"), id="two addresses where the others have one"),
        pytest.param(status(3, message="10.0.0.3"), id="an address in a message"),
        pytest.param(status(3, phase="Failed"), id="another phase"),
        pytest.param(status(3, containerStatuses=None), id="no containers"),
    ],
)
async def test_what_is_not_alike_is_worked_out(api: Served, judged: list[str], said: Any) -> None:
    await three_reported(api)
    await bound(api, "web-3")
    judged.clear()
    await api.ask("PATCH", f"{PODS}/web-3/status", {"status": said}, type=MERGE)
    assert judged == ["web-3"]


async def test_an_object_that_is_not_alike_is_worked_out(api: Served, judged: list[str]) -> None:
    await three_reported(api)
    await bound(api, "other", restartPolicy="Never")
    await bound(api, "labelled")
    await api.merge(f"{PODS}/labelled", {"metadata": {"labels": {"a": "b"}}})
    await bound(api, "going", terminationGracePeriodSeconds=30)
    await api.delete(f"{PODS}/going")
    await bound(api, "known")
    await report(api, "known", {"message": "10.0.0.7"})
    judged.clear()
    names = ["other", "labelled", "going", "known"]
    for name in names:
        await report(api, name, status(7))
    assert judged == names


async def test_a_patch_of_more_than_the_status_is_worked_out(api: Served, judged: list[str]) -> None:
    for n in range(4):
        await bound(api, f"web-{n}")
        patch = {"metadata": {"labels": {"n": f"{n}"}}, "status": status(n)}
        after = await api.merge(f"{PODS}/web-{n}/status", patch)
        assert after["metadata"]["labels"] == {"n": f"{n}"}
    assert len(judged) == 4


async def test_unknown_fields_are_told_of_each_time(api: Served) -> None:
    for n in range(4):
        await bound(api, f"web-{n}")
        answer = await api.ask(
            "PATCH",
            f"{PODS}/web-{n}/status",
            {"status": status(n, strange=1)},
            type=MERGE,
        )
        assert answer.warnings == ['299 - "unknown field \\"status.strange\\""']


def container(ident: str, **more: Any) -> list[Any]:
    return [{"name": "c", "image": "i", "imageID": "", "ready": True, "restartCount": 0, "containerID": ident, **more}]


def condition(kind: str) -> list[Any]:
    return [{"type": kind, "status": "True"}]


@pytest.mark.parametrize(
    "statuses",
    [
        pytest.param(
            [{name: "x", "containerStatuses": container(name)} for name in ("reason", "reason", "strange")],
            id="the name of a field",
        ),
        pytest.param(
            [{name: "x", "containerStatuses": container(name)} for name in ("a://1", "a://2", "a://3")],
            id="the name of no field",
        ),
        pytest.param(
            [
                {"podIP": f"10.0.0.{n}", "containerStatuses": container(ident)}
                for n, ident in enumerate(("ip", "ip", "a://1"))
            ],
            id="the name of a field that the server adds",
        ),
        pytest.param(
            [{"conditions": condition(name), "containerStatuses": container(name)} for name in ("Zqa", "Zqb", "a://1")],
            id="the type of a condition",
        ),
        pytest.param(
            [
                {"containerStatuses": container("a://1", allocatedResources={"containerID": n})}
                for n in ("5", "7", "odd")
            ],
            id="an amount",
        ),
        pytest.param(
            [
                {"containerStatuses": container("a://1", allocatedResources={"containerID": n})}
                for n in ("3000m", "5000m", "7000m")
            ],
            id="an amount that is written anew",
        ),
        pytest.param(
            [{"podIP": ip, "allocatedResources": {ip: "5"}} for ip in ("10.0.0.1", "10.0.0.2", "10.0.0.3")],
            id="the name of a resource",
        ),
        pytest.param(
            [{"podIP": ip, "message": f'the "{ip}'} for ip in ("10.0.0.1", "10.0.0.2", "10.0.0.3")],
            id="the end of a message",
        ),
    ],
)
async def test_a_container_may_have_any_id(api: Served, statuses: Any) -> None:
    """And an address may be written in any place: what it is there for is judged each time."""
    answers = []
    for n, said in enumerate(statuses):
        await bound(api, f"web-{n}")
        answer = await api.ask("PATCH", f"{PODS}/web-{n}/status", {"status": said}, type=MERGE)
        answers.append((answer.status, answer.warnings, answer.json))
    async with served_with_admission(clock=Clock()) as other:
        await bound(other, "web-2")
        alone = await other.ask("PATCH", f"{PODS}/web-2/status", {"status": statuses[2]}, type=MERGE)
    code, warnings, written = answers[2]
    assert (code, warnings) == (alone.status, alone.warnings)
    assert written.get("status") == alone.json.get("status")
    assert written["metadata"].get("managedFields") == alone.json["metadata"].get("managedFields")


async def test_a_dry_run_writes_nothing(api: Served) -> None:
    await three_reported(api)
    before = await bound(api, "web-3")
    after = await report(api, "web-3", status(3), query="dryRun=All")
    assert after["status"]["phase"] == "Running"
    assert await api.get(f"{PODS}/web-3") == before


async def test_policies_see_every_one_of_them(api: Served, judged: list[str]) -> None:
    await three_reported(api)
    group = "/apis/admissionregistration.k8s.io/v1"
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["pods/status"]}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.status.podIP != '10.0.0.4'"}],
    }
    await api.post(f"{group}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    await api.post(f"{group}/validatingadmissionpolicybindings", binding)
    await bound(api, "web-3")
    await bound(api, "web-4")
    judged.clear()
    await report(api, "web-3", status(3))
    patch = {"status": status(4)}
    answer = await api.ask("PATCH", f"{PODS}/web-4/status", patch, type=MERGE)
    assert answer.status == 422
    assert judged == ["web-3", "web-4"]


async def test_so_many_are_kept(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[dict[Any, Any]] = []
    came = Repeats.came

    def noting(self: Repeats, *about: Any) -> None:
        came(self, *about)
        kept[:] = [self._kept]

    monkeypatch.setattr(Repeats, "came", noting)
    for n in range(MOST + 10):
        await bound(api, f"web-{n}")
        await report(api, f"web-{n}", status(1, message=f"{n}"))
    assert len(kept[0]) == MOST


async def test_where_none_are_alike_few_are_looked_at(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bytes] = []

    def noting(said: repeats.Report, entry: Any) -> Any:
        looked.append(said.words)
        return repeats.occasion(said, entry)

    monkeypatch.setattr(change, "occasion", noting)
    await bound(api, "web-0")
    for n in range(PATIENCE + 2 * SELDOM):
        await report(api, "web-0", {"message": f"{n}"})
    assert len(looked) == PATIENCE + 2
    for n in range(1, 3 * SELDOM):
        await bound(api, f"web-{n}")
        await report(api, f"web-{n}", status(n))
    looked.clear()
    await bound(api, "last")
    await report(api, "last", status(200))
    assert looked, "one was like another meanwhile"


def test_own_texts() -> None:
    said = b'{"hostIP":"192.0.2.1","podIP":"fd00::1","podIPs":[{"ip":"fd00::1"}],"x":[{"containerID":"a://1"}]}'
    assert own_texts(said) == {b"192.0.2.1": "IPv4", b"fd00::1": "IPv6", b"a://1": "ID"}
    assert own_texts(b'{"podIP":"010.0.0.1"}') is None
    assert own_texts(b'{"podIP":""}') == {}
    assert own_texts(b'{"x":[{"containerID":"ip"}]}') is None
    assert own_texts(b'{"podIP":"10.0.0.1","message":"10.0.0.1"}') is None


# What a status can say of an address, another one and an ID: each of these is put into any of the places.
PARTS = [
    lambda a, b, i: {"podIP": a, "podIPs": [{"ip": a}]},
    lambda a, b, i: {"podIP": a},
    lambda a, b, i: {"podIPs": [{"ip": a}, {"ip": b}], "$setElementOrder/podIPs": [{"ip": b}, {"ip": a}]},
    lambda a, b, i: {"podIPs": [{"ip": a}, {"ip": b, "$patch": "delete"}]},
    lambda a, b, i: {"podIPs": [{"ip": a, "$patch": "replace"}, {"ip": a, b: "x"}]},
    lambda a, b, i: {"hostIP": b, "hostIPs": [{"ip": b}]},
    lambda a, b, i: {"hostIP": b, "$deleteFromPrimitiveList/hostIPs": [b]},
    lambda a, b, i: {"hostIP": None, "podIP": "", "message": f'the "{a}'},
    lambda a, b, i: {"message": a, "reason": f"\u00e9 {i}\u2028"},
    lambda a, b, i: {"conditions": [{"type": a, "status": "True"}, {"type": "Ready", "status": i}]},
    lambda a, b, i: {"conditions": [{"type": i, "status": "True", "observedGeneration": 1}]},
    lambda a, b, i: {"allocatedResources": {a: "5", "ip": "2"}, "observedGeneration": 1},
    lambda a, b, i: {"resources": {"limits": {"containerID": i}}, "resize": "Proposed"},
    lambda a, b, i: {"resourceClaimStatuses": [{"name": "claim", "resourceClaimName": a}]},
    lambda a, b, i: {"nominatedNodeName": a, i: b},
    lambda a, b, i: {"containerStatuses": container(i)},
    lambda a, b, i: {"containerStatuses": container(i, state={"terminated": {"exitCode": 0, "containerID": i}})},
    lambda a, b, i: {"initContainerStatuses": container(i, imageID=a), "ephemeralContainerStatuses": container(a)},
]
ADDRESSES = st.sampled_from(["10.0.0.1", "10.0.0.2", "10.0.0.12", "220.0.0.1", "fd00::1", "2001:db8::2", "010.0.0.1"])
IDS = st.sampled_from(
    ["x://1", "x://2", "x://\u00e9", "10.0.0.1", "ip", "type", "Running", "1000m", "kubelet", "5", "odd"]
)


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    st.tuples(ADDRESSES, ADDRESSES, IDS, IDS).map(
        # The first two are alike, so that what became of them is kept.
        lambda last: [
            *((f"10.0.0.{n}", f"fd00::{n}", last[2]) for n in (3, 4)),
            ("10.0.0.5", "fd00::5", last[3]),
            last[:3],
        ]
    ),
    st.sampled_from([MERGE, STRATEGIC]),
    st.sampled_from(["", "fieldValidation=Strict", "fieldValidation=Ignore"]),
)
def test_nothing_becomes_other_than_if_each_were_worked_out(parts: Any, texts: Any, type: str, query: str) -> None:
    async def played() -> list[Any]:
        async with served(clock=Clock()) as api:
            answers = []
            for n, own in enumerate(texts):
                await bound(api, f"web-{n}", resourceClaims=[{"name": "claim", "resourceClaimName": "any"}])
                for said in ({key: value for part in parts for key, value in part(*own).items()}, {"phase": "Running"}):
                    path = f"{PODS}/web-{n}/status"
                    answer = await api.ask("PATCH", path, {"status": said}, type=type, query=query)
                    # A refusal may show the whole object, with its random uid.
                    shown = without_own(answer.json) if answer.status == 200 else {}
                    answers.append((answer.status, answer.warnings, json.dumps(shown)))
            await api.cache_equals_store()
            return answers

    with pytest.MonkeyPatch.context() as each:
        each.setattr(repeats.Repeats, "find", lambda self, occasion: None)
        alone = asyncio.run(played())
    assert asyncio.run(played()) == alone
