"""`seamark up` with simulated nodes: the mission's example, followed to the end of the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import dns.message
import dns.query
import dns.rdatatype
import pytest
from api_calls import call, watched
from seamark_process import Seamark, Start
from waiting import until


def resolved(server: Seamark, name: str) -> list[str]:
    host, port = next(line for line in server.lines if line.startswith("DNS")).split()[1].rsplit(":", 1)
    question = dns.message.make_query(name, dns.rdatatype.A)
    answer = dns.query.tcp(question, host, port=int(port))
    return sorted(str(record) for rrset in answer.answer for record in rrset)


def deployment(name: str, replicas: int, image: str = "example/web:1") -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def service(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"selector": {"app": name}, "ports": [{"port": 80}], **spec}}


def ready_addresses(server: Seamark, name: str) -> set[str]:
    path = (
        f"/apis/discovery.k8s.io/v1/namespaces/default/endpointslices?labelSelector=kubernetes.io/service-name={name}"
    )
    return {
        address
        for item in call(server, "GET", path)[1]["items"]
        for endpoint in item["endpoints"] or ()
        if endpoint["conditions"]["ready"]
        for address in endpoint["addresses"]
    }


def endpoint_addresses(server: Seamark, name: str) -> set[str]:
    """The same as the Endpoints, which another controller writes, have them."""
    endpoints = call(server, "GET", f"/api/v1/namespaces/default/endpoints/{name}")[1]
    return {a["ip"] for subset in endpoints.get("subsets", ()) for a in subset.get("addresses", ())}


def pod_addresses(server: Seamark, name: str) -> set[str]:
    found = call(server, "GET", f"/api/v1/namespaces/default/pods?labelSelector=app={name}")[1]["items"]
    return {pod["status"]["podIP"] for pod in found if "deletionTimestamp" not in pod["metadata"]}


@pytest.fixture
def up(start: Start) -> Seamark:
    return start("--dns-port", "0", "--nodes", "3", verb="up")


def test_three_replicas_behind_a_service(up: Seamark) -> None:
    assert call(up, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment("web", 3))[0] == 201
    assert call(up, "POST", "/api/v1/namespaces/default/services", service("web", clusterIP="None"))[0] == 201
    until(lambda: len(ready_addresses(up, "web")) == 3)
    assert ready_addresses(up, "web") == pod_addresses(up, "web")
    until(lambda: resolved(up, "web.default.svc.cluster.local") == sorted(ready_addresses(up, "web")))
    until(lambda: endpoint_addresses(up, "web") == ready_addresses(up, "web"))
    call(
        up,
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/web/scale",
        {"spec": {"replicas": 1}},
        media="application/merge-patch+json",
    )
    until(lambda: len(ready_addresses(up, "web")) == 1 == len(resolved(up, "web.default.svc.cluster.local")))


def test_a_name_follows_its_pod_through_a_restart(up: Seamark) -> None:
    labels = {"app": "db"}
    stateful = {
        "metadata": {"name": "db"},
        "spec": {
            "serviceName": "db",
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    }
    call(up, "POST", "/api/v1/namespaces/default/services", service("db", clusterIP="None"))
    assert call(up, "POST", "/apis/apps/v1/namespaces/default/statefulsets", stateful)[0] == 201
    name = "db-0.db.default.svc.cluster.local"
    before = until(lambda: resolved(up, name))
    uid = call(up, "GET", "/api/v1/namespaces/default/pods/db-0")[1]["metadata"]["uid"]
    assert call(up, "DELETE", "/api/v1/namespaces/default/pods/db-0")[0] == 200

    def replaced() -> Any:
        status, pod = call(up, "GET", "/api/v1/namespaces/default/pods/db-0")
        return status == 200 and pod["metadata"]["uid"] != uid and pod["status"].get("podIP")

    address = until(replaced)
    until(lambda: resolved(up, name) == [address])
    until(lambda: len(resolved(up, "db.default.svc.cluster.local")) == 2)
    assert before


def turned_ready(events: list[dict[str, Any]]) -> dict[str, int]:
    """Each address of a Pod, and the version at which the Pod was ready with it for the first time."""
    found: dict[str, int] = {}
    for event in events:
        meta, status = event["object"]["metadata"], event["object"]["status"]
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions") or ())
        if ready and event["type"] != "DELETED" and "deletionTimestamp" not in meta:
            found.setdefault(status["podIP"], int(meta["resourceVersion"]))
    return found


def test_five_hundred_pods_roll_over_while_everything_follows(up: Seamark) -> None:
    """A ready Pod is missing from the slices no longer than it takes to write them, however many Pods change at once.

    That is told by versions, which do not depend on how busy the machine is: of the slice a Pod comes into, at most one
    version is written without it, the one that was under way when it became ready.
    """
    call(up, "POST", "/api/v1/namespaces/default/services", service("web", clusterIP="None"))
    call(up, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment("web", 500))
    until(lambda: len(ready_addresses(up, "web")) == 500)
    version = call(up, "GET", "/apis/discovery.k8s.io/v1/endpointslices")[1]["metadata"]["resourceVersion"]
    old = pod_addresses(up, "web")
    call(
        up,
        "PATCH",
        "/apis/apps/v1/namespaces/default/deployments/web",
        {"spec": {"template": {"metadata": {"annotations": {"again": "yes"}}}}},
        media="application/merge-patch+json",
    )

    def rolled() -> bool:
        status = call(up, "GET", "/apis/apps/v1/namespaces/default/deployments/web")[1]["status"]
        return bool(
            status.get("observedGeneration") == 2
            and status.get("updatedReplicas") == status["replicas"] == 500
            and status.get("readyReplicas") == 500
        )

    until(rolled)
    until(lambda: ready_addresses(up, "web") == pod_addresses(up, "web"))
    there = ready_addresses(up, "web")
    assert len(there) == 500
    until(lambda: set(resolved(up, "web.default.svc.cluster.local")) == there)
    until(lambda: endpoint_addresses(up, "web") == there)

    # The history is read up to objects that are made now, however long that takes.
    last = {"metadata": {"name": "last"}}
    container = {"name": "c", "image": "example/last:1"}
    call(up, "POST", "/api/v1/namespaces/default/pods", {**last, "spec": {"containers": [container]}})
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    call(up, "POST", slices, {**last, "addressType": "IPv4", "endpoints": []})

    def history(path: str) -> list[Any]:
        since = f"resourceVersion={version}"
        return watched(up, f"{path}?{since}", until=lambda e: bool(e) and e[-1]["object"]["metadata"]["name"] == "last")

    became = turned_ready(history("/api/v1/namespaces/default/pods"))
    new = {address: at for address, at in became.items() if address not in old}
    assert set(new) >= there - old
    written: dict[str, list[int]] = {}  # the versions of each slice
    listed: dict[str, tuple[str, int]] = {}  # where and when an address was first in a slice
    held: dict[str, set[str]] = {}
    fewest = 500
    for event in history(slices)[:-1]:
        item = event["object"]
        name, at = item["metadata"]["name"], int(item["metadata"]["resourceVersion"])
        ready = {a for e in item["endpoints"] or () if e["conditions"].get("ready") for a in e["addresses"]}
        assert len(item["endpoints"] or ()) <= 100
        held[name] = set() if event["type"] == "DELETED" else ready
        written.setdefault(name, []).append(at)
        for address in ready - old:
            listed.setdefault(address, (name, at))
        if len(held) >= 5:
            fewest = min(fewest, len(set().union(*held.values())))
    for address in there - old:
        name, at = listed[address]
        without = [other for other in written[name] if new[address] < other < at]
        assert len(without) <= 1, f"{address} was ready at {new[address]} and in {name} only at {at}: {without}"
    # The rollout itself keeps three quarters of the Pods ready; the slices never show much less than that.
    assert fewest >= 250


async def test_killed_under_load_and_started_again(start: Start) -> None:
    first = start("--dns-port", "0", "--nodes", "3", verb="up")
    call(first, "POST", "/api/v1/namespaces/default/services", service("web"))
    call(first, "POST", "/apis/apps/v1/namespaces/default/deployments", deployment("web", 60))
    await asyncio.to_thread(until, lambda: len(ready_addresses(first, "web")) >= 20)
    before = {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"].get("podIP"))
        for pod in call(first, "GET", "/api/v1/namespaces/default/pods")[1]["items"]
    }
    address = call(first, "GET", "/api/v1/namespaces/default/services/web")[1]["spec"]["clusterIP"]
    first.kill()
    again = start("--dns-port", "0", "--nodes", "3", verb="up")
    assert call(again, "GET", "/api/v1/namespaces/default/services/web")[1]["spec"]["clusterIP"] == address
    await asyncio.to_thread(until, lambda: len(ready_addresses(again, "web")) == 60)
    after = {
        pod["metadata"]["name"]: (pod["metadata"]["uid"], pod["status"].get("podIP"))
        for pod in call(again, "GET", "/api/v1/namespaces/default/pods")[1]["items"]
    }
    assert len(after) == 60
    kept = {name: was for name, was in before.items() if name in after}
    assert len(kept) >= 20
    for name, (uid, ip) in kept.items():
        assert after[name][0] == uid
        assert ip in (None, after[name][1])
    addresses = [ip for _, ip in after.values()]
    assert len(set(addresses)) == 60
    assert ready_addresses(again, "web") == set(addresses)
