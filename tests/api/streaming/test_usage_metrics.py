"""What Pods use, as ``metrics.k8s.io`` tells it."""

from __future__ import annotations

from fake_pods import FakePods, pod, put

from seamark.kinds.autoscaling.usage import Measurement, Used

METRICS = "/apis/metrics.k8s.io/v1beta1"


async def test_metrics_are_served_where_pods_are_measured(api):
    assert (await api.ask("GET", f"{METRICS}/nodes")).status == 404
    await api.api.measure()
    groups = (await api.get("/apis"))["groups"]
    assert "metrics.k8s.io" in [group["name"] for group in groups]
    resources = (await api.get(METRICS))["resources"]
    assert [(each["name"], each["kind"], each["verbs"]) for each in resources] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
    assert (await api.get(f"{METRICS}/nodes"))["items"] == []
    await put(api, pod("web", "main", "side"))
    await put(api, pod("unknown", "main"))
    await api.post("/api/v1/nodes", {"metadata": {"name": "node-1"}})
    uid = (await api.get("/api/v1/namespaces/default/pods/web"))["metadata"]["uid"]
    used = {"main": Used(0.25, 3 << 20), "side": Used(0.5, 1 << 20)}
    api.api.connecting.pods = fake = FakePods()
    fake.measurement = Measurement(1800000000.0, 10.0, {uid: used})

    (found,) = (await api.get(f"{METRICS}/namespaces/default/pods"))["items"]
    assert found == await api.get(f"{METRICS}/namespaces/default/pods/web") | {"kind": found["kind"]}
    assert (found["timestamp"], found["window"]) == ("2027-01-15T08:00:00Z", "10.000s")
    assert found["containers"] == [
        {"name": "main", "usage": {"cpu": "250000000n", "memory": "3072Ki"}},
        {"name": "side", "usage": {"cpu": "500000000n", "memory": "1024Ki"}},
    ]
    assert (await api.get(f"{METRICS}/namespaces/other/pods"))["items"] == []
    assert len((await api.get(f"{METRICS}/pods"))["items"]) == 1
    assert (await api.ask("GET", f"{METRICS}/namespaces/other/pods/web")).status == 404
    assert (await api.ask("DELETE", f"{METRICS}/namespaces/default/pods/web")).status == 405
    (node,) = (await api.get(f"{METRICS}/nodes"))["items"]
    assert node["usage"] == {"cpu": "750000000n", "memory": "4096Ki"}
