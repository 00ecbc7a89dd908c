"""Two servers over one store, of which one does not know yet what the other acknowledged: it waits, then refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from served import OTHER, Answer, Served, served

from seamark.api.http.wire.messages import Response
from seamark.api.identity.keys import KeyRing
from seamark.store.opening import open_store
from seamark.store.protocol import Batch, Store
from seamark.store.wrapping import Wrapper

MAPS = "/api/v1/namespaces/default/configmaps"
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


class Late(Wrapper):
    """A server's way to a store that others share: it hears of changes while ``hears`` is set."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.shared = True
        self.hears = asyncio.Event()
        self.hears.set()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def watch(self, prefix: str, since: int) -> AsyncIterator[Batch]:
        async for batch in self.store.watch(prefix, since):
            await self.hears.wait()
            yield batch


class Pair:
    """``late`` is behind ``early`` until it is to hear again."""

    def __init__(self, early: Served, late: Served, way: Late) -> None:
        self.early, self.late, self._way = early, late, way
        way.hears.clear()

    async def ask_the_late(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """Its answer, which has to wait until the server has heard of everything."""
        answer = self.late.begin(method, path, body, **more)
        assert not isinstance(answer, Response), "the server did not wait"
        asking = asyncio.ensure_future(answer)
        for _ in range(20):
            await asyncio.sleep(0)
        assert not asking.done()
        self._way.hears.set()
        return Answer(await asking)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    store = open_store("memory:")
    await store.open()
    keys, way = KeyRing(), Late(store)
    async with (
        served(store=Late(store), rbac=True, keys=keys) as early,
        served(store=way, rbac=True, keys=keys) as late,
    ):
        yield Pair(early, late, way)
        way.hears.set()
    await store.close()


async def give_rights(server: Served) -> None:
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}
    await server.post(f"{RBAC}/roles", {"metadata": {"name": "lists"}, "rules": [rule]})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "lists"}
    subjects = [{"kind": "User", "name": "other", "apiGroup": "rbac.authorization.k8s.io"}]
    await server.post(f"{RBAC}/rolebindings", {"metadata": {"name": "lists"}, "subjects": subjects, "roleRef": role})


async def test_a_right_that_was_just_given(pair: Pair) -> None:
    assert pair.late.begin("GET", MAPS, token=OTHER).status == 403  # nothing is new: no reason to wait
    await give_rights(pair.early)
    assert (await pair.ask_the_late("GET", MAPS, token=OTHER)).status == 200


async def test_a_review_of_a_right_that_was_just_given(pair: Pair) -> None:
    await give_rights(pair.early)
    asked = {"user": "other", "resourceAttributes": {"verb": "list", "resource": "configmaps", "namespace": "default"}}
    answer = await pair.ask_the_late("POST", REVIEWS, {"spec": asked})
    assert answer.json["status"]["allowed"] is True


async def test_a_token_that_was_just_made(pair: Pair) -> None:
    await pair.early.post(ACCOUNTS, {"metadata": {"name": "new"}})
    token = (await pair.early.post(f"{ACCOUNTS}/new/token", {"spec": {}}))["status"]["token"]
    answer = await pair.ask_the_late("GET", "/api/v1/namespaces", token=token)
    assert answer.status == 403
    assert "system:serviceaccount:default:new" in answer.json["message"]


async def test_who_stays_without_rights_is_refused_after_the_wait(pair: Pair) -> None:
    await pair.early.post(MAPS, {"metadata": {"name": "any"}})
    assert (await pair.ask_the_late("GET", MAPS, token=OTHER)).status == 403
    assert (await pair.late.ask("GET", MAPS, token="unknown")).status == 401


async def test_a_kind_that_was_just_defined(pair: Pair) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    spec = {"group": "new.example.com", "names": names, "scope": "Cluster", "versions": [version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    await pair.early.post(definitions, {"metadata": {"name": "things.new.example.com"}, "spec": spec})
    while (await pair.early.ask("GET", "/apis/new.example.com/v1/things")).status != 200:
        await asyncio.sleep(0)
    assert (await pair.ask_the_late("GET", "/apis/new.example.com/v1/things")).status == 200


async def test_a_list_goes_on_at_its_version_while_the_server_catches_up(pair: Pair) -> None:
    """The late server believes that nothing has changed since the first page; when it has caught up, something has."""
    for name in "ab":
        await pair.early.post(MAPS, {"metadata": {"name": name}})
    first = await pair.early.get(f"{MAPS}?limit=1")
    await pair.early.merge(f"{MAPS}/b", {"data": {"changed": "since"}})
    answer = await pair.ask_the_late("GET", f"{MAPS}?limit=1&continue={first['metadata']['continue']}")
    assert answer.status == 200
    assert answer.json["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert [item.get("data") for item in answer.json["items"]] == [None]
