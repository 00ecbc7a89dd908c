"""Quotas on the write path: charged in the transaction of the object, whichever server makes it."""

import asyncio
import uuid

import pytest
from served import served

from seamark.kinds.policy.charging import MOST_QUOTAS
from seamark.store.sqlite.engine import SqliteStore

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
HARD = {"configmaps": "10"}


async def make_quota(api, name="q", hard=HARD):
    await api.post(QUOTAS, {"metadata": {"name": name}, "spec": {"hard": hard}})
    status = {"hard": hard, "used": dict.fromkeys(hard, "0")}
    await api.merge(f"{QUOTAS}/{name}/status", {"status": status})


async def used(api, name="q"):
    return (await api.get(f"{QUOTAS}/{name}"))["status"]["used"]


async def flood(api, prefix, count):
    """How many of so many creations at once were let in."""
    answers = await asyncio.gather(
        *(api.ask("POST", CONFIGMAPS, {"metadata": {"name": f"{prefix}-{i}"}}) for i in range(count))
    )
    assert {answer.status for answer in answers} <= {201, 403}
    return sum(answer.status == 201 for answer in answers)


async def test_many_at_once_on_one_server(api):
    await make_quota(api)
    await make_quota(api, "wide", {"configmaps": "100", "secrets": "1"})
    assert await flood(api, "a", 40) == 10
    assert await used(api) == {"configmaps": "10"}
    assert await used(api, "wide") == {"configmaps": "10", "secrets": "0"}


async def test_many_at_once_are_written_at_the_first_try(monkeypatch):
    tries = []
    commit = SqliteStore.commit

    async def counted(self, writes):
        tries.append(writes)
        return await commit(self, writes)

    async with served() as api:
        await make_quota(api, hard={"configmaps": "100"})
        monkeypatch.setattr(SqliteStore, "commit", counted)
        assert await flood(api, "a", 40) == 40
    assert len(tries) == 40


async def test_many_at_once_on_two_servers(etcd):
    url = f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"
    async with served(url=url) as one, served(url=url) as two:
        await make_quota(one)
        assert await used(two) == {"configmaps": "0"}  # as every server sees it once the news has come
        made = await asyncio.gather(flood(one, "a", 20), flood(two, "b", 20))
        assert sum(made) == 10
        assert await used(one) == await used(two) == {"configmaps": "10"}
        assert len((await one.get(CONFIGMAPS))["items"]) == 10


async def test_a_namespace_has_so_many_quotas_that_one_transaction_holds_them(etcd):
    """etcd takes 128 keys and 1.5 MiB in one."""
    async with served(url=f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}") as api:
        for number in range(MOST_QUOTAS):
            await make_quota(api, f"q-{number}")
        refused = await api.ask("POST", QUOTAS, {"metadata": {"name": "more"}, "spec": {"hard": HARD}})
        assert (refused.status, "at most 100 resource quotas" in refused.json["message"]) == (403, True)
        await api.merge(f"{QUOTAS}/q-0", {"spec": {"hard": {"configmaps": "20"}}})
        await api.post(CONFIGMAPS, {"metadata": {"name": "a"}})
        assert await used(api, "q-99") == {"configmaps": "1"}


async def test_the_quotas_of_a_namespace_have_a_size_together(etcd):
    async with served(url=f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}") as api:
        hard = HARD | {f"count/kind-{number}.example.com": "1" for number in range(1000)}
        body = {"spec": {"hard": hard}}
        made = 0
        while (answer := await api.ask("POST", QUOTAS, body | {"metadata": {"name": f"q-{made}"}})).status == 201:
            await api.merge(f"{QUOTAS}/q-{made}/status", {"status": {"hard": hard, "used": dict.fromkeys(hard, "0")}})
            made += 1
        assert (answer.status, "bytes together" in answer.json["message"]) == (403, True)
        await api.post(CONFIGMAPS, {"metadata": {"name": "a"}})
        assert (await used(api, f"q-{made - 1}"))["configmaps"] == "1"
        hard |= {f"count/other-{number}.example.com": "1" for number in range(2000)}
        grown = await api.ask("PUT", f"{QUOTAS}/q-0", {"metadata": {"name": "q-0"}, "spec": {"hard": hard}})
        assert (grown.status, "bytes together" in grown.json["message"]) == (403, True)
        await api.put(f"{QUOTAS}/q-0", {"metadata": {"name": "q-0"}, "spec": {"hard": HARD}})


async def test_a_write_that_fails_charges_nothing(api):
    await make_quota(api)
    await api.post(CONFIGMAPS, {"metadata": {"name": "a"}})
    assert (await api.ask("POST", CONFIGMAPS, {"metadata": {"name": "a"}})).status == 409
    assert (await api.ask("POST", CONFIGMAPS, {"metadata": {"name": "Not A Name"}})).status == 422
    assert (await api.ask("POST", CONFIGMAPS, {"metadata": {"name": "b"}}, query="dryRun=All")).status == 201
    assert await used(api) == {"configmaps": "1"}


async def test_a_dry_run_is_refused_like_the_real_thing(api):
    await make_quota(api, hard={"configmaps": "0"})
    answer = await api.ask("POST", CONFIGMAPS, {"metadata": {"name": "a"}}, query="dryRun=All")
    assert answer.status == 403
    assert answer.json["message"] == (
        'configmaps "a" is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=0, limited: '
        "configmaps=0"
    )


@pytest.mark.parametrize("verb", ["PUT", "PATCH"])
async def test_updates_of_services_are_charged_too(api, verb):
    await make_quota(api, hard={"services.nodeports": "0"})
    path = "/api/v1/namespaces/default/services"
    await api.post(path, {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
    service = await api.get(f"{path}/s")
    service["spec"]["type"] = "NodePort"
    type = "application/json" if verb == "PUT" else "application/merge-patch+json"
    answer = await api.ask(verb, f"{path}/s", service, type=type)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    assert (await api.get(f"{path}/s"))["spec"]["type"] == "ClusterIP"
    assert not api.api.cache.ports, "the node port it would have taken stays free"
