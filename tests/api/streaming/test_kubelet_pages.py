"""What a kubelet says about its node and its Pods."""

from __future__ import annotations

import msgspec
from fake_pods import pod

from seamark.api.streaming import kubelet_pages
from seamark.kinds.autoscaling.usage import Measurement, Used

NODE = {"metadata": {"name": "node-1"}, "status": {"capacity": {"pods": "110"}}}
MEASURED = Measurement(1.0, 10.0, {"1": {"a": Used(0.5, 2048), "b": Used(0.25, 1024)}})


def pods():
    made = pod("web", "a", "b")
    made["metadata"] |= {"namespace": "default", "uid": "1"}
    waiting = pod("new", "a")
    waiting["metadata"] |= {"namespace": "default", "uid": "2"}
    waiting["status"]["containerStatuses"][0]["state"] = {"waiting": {}}
    return [made, waiting]


def asked(path):
    answer = kubelet_pages.page(path, NODE, pods(), MEASURED)
    assert answer.status == 200
    return msgspec.json.decode(answer.body) if answer.content_type == "application/json" else answer.body.decode()


def test_pods():
    assert [each["metadata"]["name"] for each in asked("/pods/")["items"]] == ["web", "new"]
    (running,) = asked("/runningpods/")["items"]
    assert running["metadata"] == {"name": "web", "namespace": "default", "uid": "1"}
    assert running["spec"]["containers"] == [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]
    assert asked("/configz")["kubeletconfig"]["maxPods"] == 110


def test_what_they_use():
    found = asked("/stats/summary")
    assert (found["node"]["nodeName"], found["node"]["cpu"]["usageNanoCores"]) == ("node-1", 750_000_000)
    (only,) = found["pods"]
    assert only["podRef"]["name"] == "web"
    assert [each["memory"]["workingSetBytes"] for each in only["containers"]] == [2048, 1024]
    lines = asked("/metrics/resource").splitlines()
    assert 'container_memory_working_set_bytes{container="a",namespace="default",pod="web"} 2048' in lines
    assert 'pod_memory_working_set_bytes{namespace="default",pod="web"} 3072' in lines
    assert "node_memory_working_set_bytes 3072" in lines
    values = [line for line in asked("/metrics").splitlines() if not line.startswith("#")]
    assert values == [
        'kubelet_node_name{node="node-1"} 1',
        "kubelet_running_pods 1",
        'kubelet_running_containers{container_state="running"} 2',
    ]


def test_health():
    assert asked("/healthz") == "ok"
    assert kubelet_pages.page("/exec", NODE, [], MEASURED).status == 404
