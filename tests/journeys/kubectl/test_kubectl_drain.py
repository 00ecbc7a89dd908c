"""kubectl drain, quotas and budgets, as people who look after a cluster use them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from commands import Kubectl
from seamark_process import Seamark, Start
from waiting import until


@pytest.fixture
def kubectl(start: Start, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(start("--dns-port", "0", "--nodes", "3", verb="up"))


def nodes_of_pods(kubectl: Kubectl) -> list[str]:
    """The nodes of the Pods that are ready and stay."""
    pods = json.loads(kubectl("get", "pods", "-l", "app=web", "-o", "json"))["items"]
    return [
        pod["spec"]["nodeName"]
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        and any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    ]


def messages(kubectl: Kubectl) -> str:
    """Of all Events, which are written a moment after what they tell."""
    return kubectl("get", "events", "-o", "jsonpath={.items[*].message}")


def test_a_drain_respects_the_budget(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image", "example/app:1", "--replicas", "3")
    kubectl("rollout", "status", "deployment/web")
    kubectl("create", "poddisruptionbudget", "web", "--selector", "app=web", "--min-available", "3")
    until(lambda: kubectl("get", "pdb", "web", "-o", "jsonpath={.status.currentHealthy}") == "3")
    node = nodes_of_pods(kubectl)[0]

    with kubectl.beside("drain", node, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as draining:
        assert draining.stderr is not None
        refusal = "Cannot evict pod as it would violate the pod's disruption budget"
        assert any(refusal in line for line in draining.stderr), "it tries again until it is ended"
    assert node in nodes_of_pods(kubectl)

    kubectl("patch", "pdb", "web", "--type", "merge", "-p", '{"spec":{"minAvailable":2}}')
    until(lambda: kubectl("get", "pdb", "web", "-o", "jsonpath={.status.disruptionsAllowed}") == "1")
    assert f"node/{node} drained" in kubectl("drain", node)
    until(lambda: len(nodes_of_pods(kubectl)) == 3)
    assert node not in nodes_of_pods(kubectl)
    assert "SchedulingDisabled" in kubectl("get", "node", node)
    assert f"node/{node} uncordoned" in kubectl("uncordon", node)
    until(lambda: kubectl("get", "pdb", "web").splitlines()[1].split()[:4] == ["web", "2", "N/A", "1"])


def test_a_quota_and_limits(kubectl: Kubectl) -> None:
    kubectl("create", "quota", "small", "--hard", "pods=2,requests.cpu=1,count/configmaps=2")
    until(lambda: "small" in kubectl("get", "quota") and "pods: 0/2" in kubectl("get", "quota", "small"))
    item = {"type": "Container", "defaultRequest": {"cpu": "400m"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [item]}}
    kubectl("apply", "-f", "-", stdin=json.dumps(limits))
    kubectl("create", "deployment", "web", "--image", "example/app:1", "--replicas", "3")
    until(lambda: kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}") == "2")
    described = kubectl("describe", "quota", "small")
    assert [line.split() for line in described.splitlines() if line.startswith(("pods", "requests"))] == [
        ["pods", "2", "2"],
        ["requests.cpu", "800m", "1"],
    ]
    refused = kubectl.run("run", "one-more", "--image", "example/app:1")
    assert 'pods "one-more" is forbidden: exceeded quota: small, requested: pods=1' in refused.stderr
    until(lambda: "is forbidden: exceeded quota: small" in messages(kubectl))
    assert "Container" in kubectl("describe", "limits", "l")
    # What goes makes room for what waits.
    kubectl("scale", "deployment", "web", "--replicas", "1")
    until(lambda: "pods: 1/2" in kubectl("get", "quota", "small"))
    kubectl("run", "one-more", "--image", "example/app:1")


def test_an_important_pod_takes_a_place(kubectl: Kubectl) -> None:
    kubectl("create", "priorityclass", "urgent", "--value", "1000")
    filler = {"requests": {"cpu": "63"}}
    overrides = {"spec": {"containers": [{"name": "c", "image": "i", "resources": filler}]}}
    for number in range(3):
        kubectl("run", f"filler-{number}", "--image", "i", "--overrides", json.dumps(overrides))
    kubectl.wait("pod", "--all", "--for", "condition=Ready")
    overrides["spec"]["priorityClassName"] = "urgent"
    kubectl("run", "urgent", "--image", "i", "--overrides", json.dumps(overrides))
    kubectl.wait("pod/urgent", "--for", "condition=Ready")
    pods = kubectl("get", "pods", "-o", "name").split()
    assert len(pods) == 3
    assert "pod/urgent" in pods
    until(lambda: "Preempted by pod" in messages(kubectl))
