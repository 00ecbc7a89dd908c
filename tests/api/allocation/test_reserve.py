"""Addresses and node ports in the Service's own transaction."""

import asyncio

from seamark.store.protocol import Write

SERVICES = "/api/v1/namespaces/default/services"
FULL = 'Internal error occurred: failed to allocate a serviceIP for Service "{}": range is full'


def service(name, **spec):
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


async def test_many_at_once_get_different_ones(api):
    made = await asyncio.gather(*(api.post(SERVICES, service(f"s{n}", type="NodePort")) for n in range(60)))
    assert len({m["spec"]["clusterIP"] for m in made}) == 60
    assert len({m["spec"]["ports"][0]["nodePort"] for m in made}) == 60
    await api.cache_equals_store()


async def test_only_one_gets_the_address_all_want(api):
    asked = [service(f"s{n}", clusterIP="10.96.0.77") for n in range(10)]
    statuses = [a.status for a in await asyncio.gather(*(api.ask("POST", SERVICES, body) for body in asked))]
    assert sorted(statuses) == [201] + [422] * 9
    await api.cache_equals_store()


async def test_a_race_lost_in_the_store_is_run_again(api):
    """Another server takes the address between our look and our commit."""
    commit = api.api._store.commit
    stolen = []

    async def slow(writes):
        if not stolen and len(writes) > 1:
            stolen.append(writes[1].key)
            await commit([Write(writes[1].key, writes[1].value, 0)])
        return await commit(writes)

    api.api._store.commit = slow
    made = await api.post(SERVICES, service("s"))
    assert stolen
    assert not stolen[0].endswith(f"/{made['spec']['clusterIP']}")


async def test_dry_runs_hold_nothing(api):
    before = await api.store.revision()
    await api.post(f"{SERVICES}?dryRun=All", service("s", type="NodePort"))
    assert (await api.store.revision(), api.api.cache.ports) == (before, {})


async def test_changing_the_type_takes_and_gives_back(api):
    await api.post(SERVICES, service("s"))
    changed = await api.merge(f"{SERVICES}/s", {"spec": {"type": "NodePort"}})
    port = changed["spec"]["ports"][0]["nodePort"]
    assert set(api.api.cache.ports) == {port}
    await api.merge(f"{SERVICES}/s", {"spec": {"type": "ClusterIP"}})
    assert api.api.cache.ports == {}
    await api.merge(
        f"{SERVICES}/s",
        {"spec": {"type": "ExternalName", "externalName": "x.example", "clusterIP": None, "clusterIPs": None}},
    )
    assert (await api.get("/apis/networking.k8s.io/v1/ipaddresses"))["items"] == []


async def test_a_range_that_is_being_deleted_gives_no_more_addresses(api):
    """The default one too: so a cluster moves to another range."""
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    await api.post(SERVICES, service("before", clusterIP="10.96.0.77"))
    await api.merge(f"{ranges}/kubernetes", {"metadata": {"finalizers": ["example.org/kept"]}})
    await api.delete(f"{ranges}/kubernetes")
    full = await api.ask("POST", SERVICES, service("none"))
    assert (full.status, full.json["message"]) == (500, FULL.format("none"))
    await api.post(ranges, {"metadata": {"name": "next"}, "spec": {"cidrs": ["10.100.0.0/24"]}})
    made = await api.post(SERVICES, service("after"))
    assert made["spec"]["clusterIP"].startswith("10.100.0.")
    refused = await api.ask("POST", SERVICES, service("wanted", clusterIP="10.96.0.78"))
    assert refused.status == 422
    assert "the provided network does not match the current range" in refused.json["message"]
    assert (await api.post(f"{SERVICES}?dryRun=All", service("dry")))["spec"]["clusterIP"]
    await api.delete(f"{SERVICES}/before")
    assert (await api.ask("GET", "/apis/networking.k8s.io/v1/ipaddresses/10.96.0.77")).status == 404


async def test_the_status_of_a_range_is_written_apart(api):
    """Only so can nobody who makes a range close it, or have it used before it is protected."""
    ranges = "/apis/networking.k8s.io/v1/servicecidrs"
    said = {
        "type": "Ready",
        "status": "False",
        "reason": "r",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    wanted = {"metadata": {"name": "r"}, "spec": {"cidrs": ["10.100.0.0/24"]}, "status": {"conditions": [said]}}
    assert "conditions" not in (await api.post(ranges, wanted)).get("status", {})
    assert "conditions" not in (await api.merge(f"{ranges}/r", {"status": {"conditions": [said]}})).get("status", {})
    changed = {"metadata": {"labels": {"a": "b"}}, "spec": {"cidrs": ["10.200.0.0/24"]}, "status": wanted["status"]}
    found = await api.merge(f"{ranges}/r/status", changed)
    assert (found["spec"], found["status"]) == (wanted["spec"], wanted["status"])
    assert "labels" not in found["metadata"]
    [mine] = [each for each in found["metadata"]["managedFields"] if each.get("subresource") == "status"]
    assert list(mine["fieldsV1"]) == ["f:status"]


async def test_endpoints_go_with_their_service(api):
    await api.post(SERVICES, service("s"))
    endpoints = SERVICES.replace("services", "endpoints")
    await api.post(endpoints, {"metadata": {"name": "s"}})
    await api.delete(f"{SERVICES}/s")
    assert (await api.ask("GET", f"{endpoints}/s")).status == 404
