"""Deletion: grace, finalizers and propagation, once and again."""

import msgspec
import pytest
from served import served

from seamark.store.opening import open_store
from seamark.store.protocol import Write
from seamark.store.wrapping import Wrapper

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
RCS = "/api/v1/namespaces/default/replicationcontrollers"
CONTAINERS = [{"name": "c", "image": "i"}]


def pod(name="p", *, node="n", **spec):
    return {"metadata": {"name": name}, "spec": {"nodeName": node, "containers": CONTAINERS, **spec}}


def configmap(name="cm", **meta):
    return {"metadata": {"name": name, **meta}}


async def test_gone_at_once(api):
    made = await api.post(CONFIGMAPS, configmap())
    answer = await api.delete(f"{CONFIGMAPS}/cm")
    assert answer["status"] == "Success"
    assert answer["details"] == {"name": "cm", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (await api.ask("DELETE", f"{CONFIGMAPS}/cm")).status == 404


@pytest.mark.parametrize(
    ("policies", "finalizers"),
    [
        (["Background"], ["x/y"]),
        (["Foreground"], ["x/y", "foregroundDeletion"]),
        (["Orphan"], ["x/y", "orphan"]),
        ([""], ["x/y"]),
        (["Background", "Foreground"], ["x/y", "foregroundDeletion"]),
        (["Foreground", "Background"], ["x/y"]),
        (["Orphan", "Foreground"], ["x/y", "foregroundDeletion"]),
        (["Foreground", "Orphan"], ["x/y", "orphan"]),
        (["Foreground", ""], ["x/y", "foregroundDeletion"]),
    ],
)
async def test_the_last_policy_counts_while_finalizers_hold(api, policies, finalizers):
    await api.post(CONFIGMAPS, configmap(finalizers=["x/y"]))
    began = None
    for policy in policies:
        found = await api.delete(f"{CONFIGMAPS}/cm", {"propagationPolicy": policy} if policy else {})
        began = began or found["metadata"]["deletionTimestamp"]
    assert found["metadata"]["finalizers"] == finalizers
    assert found["metadata"]["deletionTimestamp"] == began
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0


async def test_repeating_a_deletion_writes_nothing(api):
    await api.post(CONFIGMAPS, configmap(finalizers=["x/y"]))
    first = await api.delete(f"{CONFIGMAPS}/cm")
    assert await api.delete(f"{CONFIGMAPS}/cm") == first


async def test_the_older_way_to_say_orphan(api):
    await api.post(CONFIGMAPS, configmap(finalizers=["x/y"]))
    found = await api.delete(f"{CONFIGMAPS}/cm?orphanDependents=true")
    assert found["metadata"]["finalizers"] == ["x/y", "orphan"]
    found = await api.delete(f"{CONFIGMAPS}/cm", {"orphanDependents": False})
    assert found["metadata"]["finalizers"] == ["x/y"]


async def test_the_last_finalizer_lets_go(api):
    await api.post(CONFIGMAPS, configmap(finalizers=["x/y"]))
    await api.delete(f"{CONFIGMAPS}/cm")
    await api.merge(f"{CONFIGMAPS}/cm", {"metadata": {"finalizers": None}})
    assert (await api.ask("GET", f"{CONFIGMAPS}/cm")).status == 404
    await api.cache_equals_store()


async def test_replicationcontrollers_leave_their_pods_unless_told(api):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": CONTAINERS}}
    body = {"metadata": {"name": "rc"}, "spec": {"selector": {"a": "b"}, "template": template}}
    await api.post(RCS, body)
    found = await api.delete(f"{RCS}/rc")
    assert found["metadata"]["finalizers"] == ["orphan"]
    assert found["metadata"]["generation"] == 2
    await api.post(RCS, {**body, "metadata": {"name": "other"}})
    assert (await api.delete(f"{RCS}/other", {"propagationPolicy": "Background"}))["status"] == "Success"


@pytest.mark.parametrize(
    ("options", "finalizers"),
    [
        ({}, None),
        ({"propagationPolicy": "Background"}, None),
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"]),
        ({"propagationPolicy": "Orphan"}, ["orphan"]),
        ({"orphanDependents": True}, ["orphan"]),
        ({"orphanDependents": False}, ["foregroundDeletion"]),
    ],
)
async def test_a_namespace_terminates_by_its_policy(api, options, finalizers):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "ns"}})
    found = await api.delete("/api/v1/namespaces/ns", options)
    assert found["metadata"].get("finalizers") == finalizers
    assert found["status"]["phase"] == "Terminating"
    assert "deletionGracePeriodSeconds" not in found["metadata"]
    for again in ({}, {"propagationPolicy": "Orphan"}):
        assert await api.delete("/api/v1/namespaces/ns", again) == found


async def test_a_namespace_that_nothing_holds_is_answered_with(api):
    await api.post("/api/v1/namespaces", {"metadata": {"name": "ns"}})
    await api.put("/api/v1/namespaces/ns/finalize", {"metadata": {"name": "ns"}, "spec": {}})
    assert (await api.delete("/api/v1/namespaces/ns"))["kind"] == "Namespace"


async def test_deletions_of_another_object_name_its_kind(api):
    event = {"metadata": {"name": "e"}, "involvedObject": {}}
    await api.post("/api/v1/namespaces/default/events", event)
    lease = {"metadata": {"name": "e"}}
    await api.post("/apis/coordination.k8s.io/v1/namespaces/default/leases", lease)
    for path, details in (
        ("/api/v1/namespaces/default/events/e", {"name": "e", "kind": "Event"}),
        ("/apis/events.k8s.io/v1/namespaces/default/events/e", {"name": "e", "kind": "Event"}),
        (
            "/apis/coordination.k8s.io/v1/namespaces/default/leases/e",
            {"name": "e", "kind": "Lease", "group": "coordination.k8s.io"},
        ),
    ):
        answer = await api.ask("DELETE", path, {"preconditions": {"uid": "x"}})
        assert (answer.status, answer.json["details"]) == (409, details)


async def test_deletions_of_another_namespace(api):
    made = await api.post("/api/v1/namespaces", {"metadata": {"name": "ns"}})
    for field, noun in (("uid", "UID"), ("resourceVersion", "ResourceVersion")):
        answer = await api.ask("DELETE", "/api/v1/namespaces/ns", {"preconditions": {field: "x"}})
        assert answer.status == 409
        assert answer.json["details"] == {"name": "ns", "kind": "namespaces"}
        assert answer.json["message"] == (
            f'Operation cannot be fulfilled on namespaces "ns": Precondition failed: {noun} in precondition: x, {noun} '
            f"in object meta: {made['metadata'][field]}"
        )


async def test_a_pod_has_its_time_and_it_can_only_be_shortened(api):
    await api.post(PODS, pod())
    first = await api.delete(f"{PODS}/p")
    assert first["metadata"]["deletionGracePeriodSeconds"] == 30
    assert await api.delete(f"{PODS}/p") == first
    assert await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 60, "propagationPolicy": "Foreground"}) == first
    shorter = await api.delete(f"{PODS}/p?gracePeriodSeconds=10")
    assert shorter["metadata"]["deletionGracePeriodSeconds"] == 10
    assert shorter["metadata"]["deletionTimestamp"] < first["metadata"]["deletionTimestamp"]
    assert await api.delete(f"{PODS}/p") == shorter  # not its own 30 seconds again
    last = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0})
    assert last["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.ask("GET", f"{PODS}/p")).status == 404


async def test_a_pod_that_ended_meanwhile_keeps_its_time(api):
    await api.post(PODS, pod())
    first = await api.delete(f"{PODS}/p")
    await api.merge(f"{PODS}/p/status", {"status": {"phase": "Succeeded"}})
    again = await api.delete(f"{PODS}/p")
    assert again["metadata"]["deletionTimestamp"] == first["metadata"]["deletionTimestamp"]


@pytest.mark.parametrize(("grace", "shown"), [(-5, 1), (7, 7), (None, 3)])
async def test_how_long_a_pod_has(api, grace, shown):
    await api.post(PODS, pod(terminationGracePeriodSeconds=3))
    found = await api.delete(f"{PODS}/p", {} if grace is None else {"gracePeriodSeconds": grace})
    assert found["metadata"]["deletionGracePeriodSeconds"] == shown


async def test_a_pod_without_a_node_goes_at_once(api):
    await api.post(PODS, pod(node=""))
    found = await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 30})
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    assert (await api.ask("GET", f"{PODS}/p")).status == 404


async def test_a_pod_with_a_finalizer_is_marked_and_stays(api):
    await api.post(PODS, {**pod(node=""), "metadata": {"name": "p", "finalizers": ["x/y"]}})
    found = await api.delete(f"{PODS}/p")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 0
    assert await api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0}) == found
    assert (await api.ask("GET", f"{PODS}/p")).status == 200


@pytest.mark.parametrize("dry", [[], ["All"]])
async def test_preconditions(api, dry):
    made = await api.post(CONFIGMAPS, configmap())
    for condition in ({"uid": "another"}, {"resourceVersion": "1"}):
        answer = await api.ask("DELETE", f"{CONFIGMAPS}/cm", {"preconditions": condition, "dryRun": dry})
        assert answer.status == 409
        assert answer.json["details"] == {"name": "cm", "kind": "ConfigMap"}
    good = {key: made["metadata"][key] for key in ("uid", "resourceVersion")}
    assert (await api.ask("DELETE", f"{CONFIGMAPS}/cm", {"preconditions": good, "dryRun": dry})).status == 200
    assert (await api.ask("GET", f"{CONFIGMAPS}/cm")).status == (200 if dry else 404)


async def test_dry_runs_change_nothing(api):
    await api.post(PODS, pod())
    await api.post(CONFIGMAPS, configmap(finalizers=["x/y"]))
    before = api.api.cache.revision
    shown = await api.delete(f"{PODS}/p?dryRun=All")
    assert shown["metadata"]["deletionGracePeriodSeconds"] == 30
    shown = await api.delete(f"{CONFIGMAPS}/cm", {"dryRun": ["All"], "propagationPolicy": "Foreground"})
    assert shown["metadata"]["finalizers"] == ["x/y", "foregroundDeletion"]
    assert await api.store.revision() == before


async def test_collections(api):
    for number in range(6):
        await api.post(CONFIGMAPS, configmap(f"c{number}", labels={"even": str(number % 2 == 0)}))
    gone = await api.delete(f"{CONFIGMAPS}?labelSelector=even%3DTrue&fieldSelector=metadata.name!%3Dc0")
    assert [item["metadata"]["name"] for item in gone["items"]] == ["c2", "c4"]
    gone = await api.delete(f"{CONFIGMAPS}?limit=2", {"propagationPolicy": "Background"})
    assert [item["metadata"]["name"] for item in gone["items"]] == ["c0", "c1"]
    assert len((await api.get(CONFIGMAPS))["items"]) == 2
    await api.delete(f"{CONFIGMAPS}?dryRun=All")
    assert len((await api.get(CONFIGMAPS))["items"]) == 2


async def test_evictions(api):
    await api.post(PODS, pod())
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    for query, body in (("", {**eviction, "deleteOptions": {"dryRun": ["All"]}}), ("?dryRun=All", eviction)):
        assert (await api.post(f"{PODS}/p/eviction{query}", body))["status"] == "Success"
        seen = await api.get(f"{PODS}/p")
        assert "deletionTimestamp" not in seen["metadata"]
        assert "conditions" not in seen["status"]
    await api.post(f"{PODS}/p/eviction", {**eviction, "deleteOptions": {"gracePeriodSeconds": 4}})
    seen = await api.get(f"{PODS}/p")
    assert seen["metadata"]["deletionGracePeriodSeconds"] == 4
    (condition,) = seen["status"]["conditions"]
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
    }


@pytest.mark.parametrize(("version", "status"), [("policy/v1", 201), ("policy/v1beta1", 201), ("policy/v2", 400)])
async def test_an_eviction_may_be_of_the_older_version(api, version, status):
    await api.post(PODS, pod())
    eviction = {"apiVersion": version, "kind": "Eviction", "metadata": {"name": "p"}}
    answer = await api.ask("POST", f"{PODS}/p/eviction", eviction)
    assert (answer.status, answer.json["status"]) == (status, "Success" if status == 201 else "Failure")


async def test_evictions_of_another_pod_or_version(api):
    made = await api.post(PODS, pod())
    eviction = {"metadata": {"name": "p"}}
    for field, value in (("uid", "another"), ("resourceVersion", "1")):
        body = {**eviction, "deleteOptions": {"preconditions": {field: value}}}
        answer = await api.ask("POST", f"{PODS}/p/eviction", body)
        assert (answer.status, answer.json["details"]) == (409, {"name": "p", "kind": "Pod"})
        assert await api.get(f"{PODS}/p") == made
    meant = {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}
    await api.post(f"{PODS}/p/eviction", {**eviction, "deleteOptions": {"preconditions": meant}})
    assert "deletionTimestamp" in (await api.get(f"{PODS}/p"))["metadata"]


async def test_a_service_gives_back_what_it_holds(api):
    services = "/api/v1/namespaces/default/services"
    made = await api.post(services, {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}})
    address, port = made["spec"]["clusterIP"], made["spec"]["ports"][0]["nodePort"]
    await api.get(f"/apis/networking.k8s.io/v1/ipaddresses/{address}")
    assert port in api.api.cache.ports
    await api.delete(f"{services}/s")
    assert (await api.ask("GET", f"/apis/networking.k8s.io/v1/ipaddresses/{address}")).status == 404
    assert port not in api.api.cache.ports
    await api.cache_equals_store()


class HastyNode(Wrapper):
    """A store in which a Pod goes, or has a successor, at the moment at which it is marked, as if by its node."""

    def __init__(self, *, successor):
        super().__init__(open_store("memory:"))
        self._successor = successor

    async def commit(self, writes):
        revision = await self.store.commit(writes)
        mark = writes[0]
        if mark.value and mark.key.endswith("/pods/default/p") and b"deletionTimestamp" in mark.value:
            await self.store.commit([Write(mark.key, None, revision)])
            if self._successor:
                next_one = msgspec.json.decode(mark.value)
                next_one["metadata"] = {"name": "p", "namespace": "default", "uid": "the-next"}
                await self.store.commit([Write(mark.key, msgspec.json.encode(next_one), 0)])
        return revision


@pytest.mark.parametrize("successor", [False, True], ids=["and nothing follows", "and another follows"])
async def test_a_pod_that_its_node_deletes_meanwhile_is_deleted(successor):
    async with served(store=HastyNode(successor=successor)) as api:
        made = await api.post(PODS, pod())
        answer = await api.ask("DELETE", f"{PODS}/p", {"gracePeriodSeconds": 0})
        assert (answer.status, answer.json["metadata"]["uid"]) == (200, made["metadata"]["uid"])
        left = await api.ask("GET", f"{PODS}/p")
        assert (left.status, left.json["metadata"].get("uid")) == ((200, "the-next") if successor else (404, None))
