"""Get and list: pages, the past, and versions that are not yet or no longer."""

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from served import served

from seamark.api.state.cache import RECENT_SECONDS
from seamark.api.state.versions import Continue
from virtual_time import VirtualClock

BASE = "/api/v1/namespaces/default/configmaps"


def configmap(name, label="x"):
    return {"metadata": {"name": name, "labels": {"l": label}}}


def names(listing):
    return [item["metadata"]["name"] for item in listing["items"]]


async def pages(api, path, limit, between=None):
    """All pages of a list, following its tokens."""
    found, token = [], ""
    while True:
        page = await api.get(f"{path}{'&' if '?' in path else '?'}limit={limit}&continue={token}")
        found.append(page)
        token = page["metadata"].get("continue", "")
        if not token:
            return found
        if between is not None:
            await between()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy")), max_size=12, unique_by=lambda pair: pair),
    st.integers(1, 5),
    st.sampled_from(
        ["", "labelSelector=l%3Dx", "fieldSelector=metadata.name%3Da-x", "fieldSelector=metadata.name!%3Da-x"]
    ),
    st.booleans(),
)
def test_pages_are_the_list_of_their_first_moment(objects, limit, selector, disturbed):
    async def main():
        async with served() as api:
            for namespace in ("default", "kube-system"):
                for letter, label in objects:
                    await api.post(f"/api/v1/namespaces/{namespace}/configmaps", configmap(f"{letter}-{label}", label))
            for path in (BASE, "/api/v1/configmaps"):
                whole = await api.get(f"{path}?{selector}")

                async def disturb(path=path):
                    for item in (await api.get("/api/v1/configmaps"))["items"][:1]:
                        await api.delete(
                            f"/api/v1/namespaces/{item['metadata']['namespace']}/configmaps/{item['metadata']['name']}"
                        )

                found = await pages(api, f"{path}?{selector}", limit, disturb if disturbed else None)
                assert [item for page in found for item in page["items"]] == whole["items"]
                assert all(len(page["items"]) <= limit for page in found)
                assert {page["metadata"]["resourceVersion"] for page in found} == {
                    found[0]["metadata"]["resourceVersion"]
                }
                if not selector and not disturbed:
                    left = [page["metadata"].get("remainingItemCount", 0) for page in found]
                    assert left == [max(0, len(whole["items"]) - limit * (n + 1)) for n in range(len(found))]

    asyncio.run(main())


async def test_a_page_of_any_state_is_all_of_it(api):
    for name in ("a", "b", "c"):
        await api.post(BASE, configmap(name))
    whole = await api.get(f"{BASE}?resourceVersion=0&limit=1")
    assert names(whole) == ["a", "b", "c"]
    assert "continue" not in whole["metadata"]
    page = await api.get(f"{BASE}?resourceVersion=1&resourceVersionMatch=NotOlderThan&limit=1")
    assert names(page) == ["a"]
    assert page["metadata"]["remainingItemCount"] == 2


async def test_the_past(api):
    first = (await api.post(BASE, configmap("a")))["metadata"]["resourceVersion"]
    await api.post(BASE, configmap("b"))
    await api.delete(f"{BASE}/a")
    for query in (f"resourceVersion={first}&resourceVersionMatch=Exact", f"resourceVersion={first}&limit=5"):
        assert names(await api.get(f"{BASE}?{query}")) == ["a"]
    assert names(await api.get(f"{BASE}?resourceVersion={first}")) == ["b"]
    selected = await api.get(
        f"{BASE}?resourceVersion={first}&resourceVersionMatch=Exact&fieldSelector=metadata.name%3Db"
    )
    assert names(selected) == []
    await api.store.compact(await api.store.revision())
    answer = await api.ask("GET", f"{BASE}?resourceVersion={first}&resourceVersionMatch=Exact")
    assert (answer.status, answer.json["reason"]) == (410, "Expired")


async def test_a_token_too_old_brings_another(api):
    for name in ("a", "b", "c"):
        await api.post(BASE, configmap(name))
    token = (await api.get(f"{BASE}?limit=1"))["metadata"]["continue"]
    await api.delete(f"{BASE}/b")
    await api.store.compact(await api.store.revision())
    answer = await api.ask("GET", f"{BASE}?limit=1&continue={token}")
    assert (answer.status, answer.json["reason"]) == (410, "Expired")
    rest = await api.get(f"{BASE}?continue={answer.json['metadata']['continue']}")
    assert names(rest) == ["c"]


async def test_a_token_ends_with_the_history_although_nothing_of_its_list_has_changed():
    clock = VirtualClock()
    async with served(clock=clock) as api:
        for name in ("a", "b", "c"):
            await api.post(BASE, configmap(name))
        listed = (await api.get(f"{BASE}?limit=1"))["metadata"]
        for i in range(12):
            await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": f"other-{i}"}})
            clock.now += RECENT_SECONDS / 10
        assert names(await api.get(f"{BASE}?continue={listed['continue']}")) == ["b", "c"]
        await api.store.compact(await api.store.revision())
        answer = await api.ask("GET", f"{BASE}?continue={listed['continue']}")
        assert (answer.status, answer.json["reason"]) == (410, "Expired")
        rest = await api.get(f"{BASE}?continue={answer.json['metadata']['continue']}")
        assert names(rest) == ["b", "c"]
        assert int(rest["metadata"]["resourceVersion"]) > int(listed["resourceVersion"])


@pytest.mark.parametrize(
    "token",
    [
        "x", "====", "ä", "\0", "bnVsbA", "eyJ2IjoxfQ", "A" * 10_000,
        Continue("meta.k8s.io/v0", 5, "a").encode(),
        Continue("meta.k8s.io/v1", 0, "a").encode(),
        Continue("meta.k8s.io/v1", 5, "").encode(),
    ],
)  # fmt: skip
async def test_tokens_that_are_none(api, token):
    answer = await api.ask("GET", BASE, query=f"limit=1&continue={token}")
    assert (answer.status, answer.json["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("garbage", "invalid character '\\u0081' looking for beginning of value"),
        ("gar=age", "illegal base64 data at input byte 3"),
        ("garba", "illegal base64 data at input byte 4"),
        ("eyJ2IjoxfQ", "json: cannot unmarshal number into Go struct field continueToken.v of type string"),
        ("W10", "json: cannot unmarshal array into Go value of type storage.continueToken"),
        ("e30", "server does not recognize this encoded version "),
        (
            Continue("meta.k8s.io/v1", 0, "a").encode(),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (Continue("meta.k8s.io/v1", 5, "").encode(), "encoded start key empty (version meta.k8s.io/v1)"),
        (Continue("meta.k8s.io/v1", 5, "../x").encode(), "../x"),
        (Continue("meta.k8s.io/v1", 5, "//x").encode(), "//x"),
    ],
)
async def test_what_is_wrong_with_a_token(api, token, why):
    answer = await api.ask("GET", BASE, query=f"limit=1&continue={token}")
    assert answer.json["message"] == f"invalid continue token: continue key is not valid: {why}"


@pytest.mark.parametrize("start", ["\0", "zzz\0", "default/a\0", "ä\0"])
async def test_tokens_lead_nowhere_else(api, start):
    await api.post("/api/v1/namespaces/default/secrets", {"metadata": {"name": "x"}})
    await api.post(BASE, configmap("m"))
    for revision in (-1, api.api.cache.revision):
        token = Continue("meta.k8s.io/v1", revision, start).encode()
        answer = await api.ask("GET", f"{BASE}?limit=5&continue={token}")
        assert answer.status == 200
        assert set(names(answer.json)) <= {"m"}


async def test_versions_to_come(api, monkeypatch):
    monkeypatch.setattr("seamark.api.state.read.PATIENCE_SECONDS", 1e6)
    current = api.api.cache.revision
    waiting = asyncio.ensure_future(api.ask("GET", f"{BASE}?resourceVersion={current + 1}"))
    await asyncio.sleep(0)
    await api.post(BASE, configmap("a"))
    assert names((await waiting).json) == ["a"]
    monkeypatch.setattr("seamark.api.state.read.PATIENCE_SECONDS", 0.02)
    for query in (
        "resourceVersion=99999999",
        f"resourceVersion={2**64 - 1}",
        f"resourceVersion={2**64 - 1}&resourceVersionMatch=Exact",
        "resourceVersion=99999999&limit=1",
    ):
        answer = await api.ask("GET", f"{BASE}?{query}")
        assert (answer.status, answer.json["details"]["causes"][0]["reason"]) == (504, "ResourceVersionTooLarge"), query
        assert answer.header("Retry-After") == "1"
    assert (await api.ask("GET", f"{BASE}/a?resourceVersion=99999999")).status == 504
    assert (await api.ask("GET", f"{BASE}/a?resourceVersion={2**64}")).status == 400


async def test_selectors_and_places(api):
    await api.post(BASE, configmap("a"))
    await api.post("/api/v1/namespaces/kube-system/configmaps", configmap("a"))
    for query, found in (
        ("metadata.namespace%3Dkube-system", []),
        ("metadata.namespace%3Ddefault", ["a"]),
        ("metadata.name%3Da,metadata.name%3Db", []),
        ("metadata.name%3D%3Da", ["a"]),
    ):
        assert names(await api.get(f"{BASE}?fieldSelector={query}")) == found
    assert len(names(await api.get("/api/v1/configmaps?fieldSelector=metadata.name%3Da"))) == 2
    everywhere = await pages(api, "/api/v1/configmaps?fieldSelector=metadata.name%3Da", 1)
    assert [names(page) for page in everywhere] == [["a"], ["a"]]
    answer = await api.ask("GET", f"{BASE}?fieldSelector=data.x%3Dy")
    assert answer.status == 400


async def test_components_are_asked_with_each_read():
    problems = {"dns": None, "controllers": "they failed"}
    async with served(readiness=lambda: problems) as api:
        path = "/api/v1/componentstatuses"
        found = {item["metadata"]["name"]: item["conditions"] for item in (await api.get(path))["items"]}
        well = {"type": "Healthy", "status": "True", "message": "ok"}
        ill = {"type": "Healthy", "status": "False", "message": "they failed"}
        assert found == {"controllers": [ill], "dns": [well], "store": [well]}
        problems["controllers"] = None
        one = await api.get(f"{path}/controllers")
        assert one == {
            "kind": "ComponentStatus",
            "apiVersion": "v1",
            "metadata": {"name": "controllers"},
            "conditions": [well],
        }
        assert names(await api.get(f"{path}?fieldSelector=metadata.name%3Ddns")) == ["dns"]
        assert (await api.ask("GET", f"{path}/scheduler")).status == 404
        assert (await api.ask("DELETE", f"{path}/dns")).status == 405
        table = await api.ask("GET", path, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        assert [row["cells"] for row in table.json["rows"]][1] == ["dns", "Healthy", "ok", ""]
        protobuf = await api.ask("GET", path, headers={"accept": "application/vnd.kubernetes.protobuf"})
        assert (protobuf.status, b"controllers" in protobuf.body) == (200, True)
