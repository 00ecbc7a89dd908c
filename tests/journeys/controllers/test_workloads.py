"""Workloads as people run them with the real kubectl; Pods are made ready by a helper of the test.

The last test has everything at once instead: simulated nodes, Services with their endpoints, and DNS.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dns.message
import dns.query
import pytest
import simulated_kubelet
from commands import Kubectl
from seamark_process import Seamark
from waiting import until

MakeKubectl = Callable[[Seamark], Kubectl]

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "example/app:1"}]
"""

STATEFUL_SET = """\
apiVersion: v1
kind: Service
metadata: {name: db}
spec: {clusterIP: None, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  serviceName: db
  replicas: 3
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers: [{name: c, image: "example/db:1"}]
"""

DAEMON_SET = """\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      containers: [{name: c, image: "example/agent:1"}]
"""


@contextmanager
def kubelet(server: Seamark) -> Iterator[None]:
    """Simulated kubelets in a process of their own."""
    running = subprocess.Popen([sys.executable, simulated_kubelet.__file__, str(server.kubeconfig)])
    try:
        yield
    finally:
        running.terminate()
        running.wait()


@pytest.fixture
def kubectl(start: Callable[..., Seamark], make_kubectl: MakeKubectl) -> Iterator[Kubectl]:
    server = start()
    with kubelet(server):
        yield make_kubectl(server)


def read(kubectl: Kubectl, *what: str) -> Any:
    return json.loads(kubectl("get", *what, "-o", "json"))


def images(kubectl: Kubectl, label: str) -> set[str]:
    return {pod["spec"]["containers"][0]["image"] for pod in read(kubectl, "pods", "-l", label)["items"]}


def rolled_out(kubectl: Kubectl, what: str) -> str:
    return kubectl("rollout", "status", what)


def test_a_deployment_from_first_to_last(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    assert "successfully rolled out" in rolled_out(kubectl, "deploy/web")
    kubectl.wait("--for=condition=Available", "deploy/web")
    shown = kubectl("get", "deploy,rs", "-o", "wide")
    assert "deployment.apps/web   3/3     3            3" in shown
    assert "app=web,pod-template-hash=" in shown

    kubectl("set", "image", "deploy/web", "c=example/app:2")
    kubectl("annotate", "deploy/web", "kubernetes.io/change-cause=second")
    rolled_out(kubectl, "deploy/web")
    assert images(kubectl, "app=web") == {"example/app:2"}
    history = kubectl("rollout", "history", "deploy/web")
    assert [line.split() for line in history.splitlines()[2:] if line] == [["1", "<none>"], ["2", "second"]]
    assert "example/app:1" in kubectl("rollout", "history", "deploy/web", "--revision=1")

    assert "rolled back" in kubectl("rollout", "undo", "deploy/web")
    rolled_out(kubectl, "deploy/web")
    assert images(kubectl, "app=web") == {"example/app:1"}
    history = kubectl("rollout", "history", "deploy/web")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    assert len(read(kubectl, "rs")["items"]) == 2

    before = {pod["metadata"]["name"] for pod in read(kubectl, "pods")["items"]}
    kubectl("rollout", "restart", "deploy/web")
    rolled_out(kubectl, "deploy/web")
    kubectl.wait("--for=delete", *(f"pod/{name}" for name in before))

    kubectl("scale", "deploy/web", "--replicas=5")
    rolled_out(kubectl, "deploy/web")
    assert len(read(kubectl, "pods")["items"]) == 5
    described = kubectl("describe", "deploy/web")
    assert "Available      True    MinimumReplicasAvailable" in described
    assert "ScalingReplicaSet" in described

    kubectl("delete", "deploy/web", "--cascade=foreground")
    assert read(kubectl, "rs,pods")["items"] == []


def test_a_paused_deployment_waits(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    rolled_out(kubectl, "deploy/web")
    kubectl("rollout", "pause", "deploy/web")
    kubectl.wait("deploy/web", "--for=condition=Progressing=Unknown")
    kubectl("set", "image", "deploy/web", "c=example/app:2")
    kubectl("set", "env", "deploy/web", "COLOUR=blue")
    kubectl.wait("deploy/web", "--for=jsonpath={.status.observedGeneration}=4")
    assert images(kubectl, "app=web") == {"example/app:1"}
    kubectl("rollout", "resume", "deploy/web")
    rolled_out(kubectl, "deploy/web")
    assert images(kubectl, "app=web") == {"example/app:2"}
    assert len(read(kubectl, "rs")["items"]) == 2, "one rollout for both changes"


def test_a_stateful_set_with_names_to_find_its_pods_by(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=STATEFUL_SET)
    rolled_out(kubectl, "sts/db")
    pods = read(kubectl, "pods", "-l", "app=db")["items"]
    assert [pod["metadata"]["name"] for pod in pods] == ["db-0", "db-1", "db-2"]
    assert [(pod["spec"]["hostname"], pod["spec"]["subdomain"]) for pod in pods] == [
        ("db-0", "db"),
        ("db-1", "db"),
        ("db-2", "db"),
    ]
    kubectl("set", "image", "sts/db", "c=example/db:2")
    rolled_out(kubectl, "sts/db")
    assert images(kubectl, "app=db") == {"example/db:2"}
    kubectl("rollout", "undo", "sts/db")
    rolled_out(kubectl, "sts/db")
    assert images(kubectl, "app=db") == {"example/db:1"}
    history = kubectl("rollout", "history", "sts/db")
    assert [line.split()[0] for line in history.splitlines()[2:] if line] == ["2", "3"]
    kubectl("scale", "sts/db", "--replicas=1")
    kubectl.wait("--for=delete", "pod/db-1", "pod/db-2")
    assert [pod["metadata"]["name"] for pod in read(kubectl, "pods")["items"]] == ["db-0"]


def test_a_daemon_set_on_every_node(kubectl: Kubectl) -> None:
    for name in ("node-a", "node-b"):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        kubectl("apply", "-f", "-", stdin=json.dumps(node))
    # No kubelet reports for these nodes, so none takes the taint of new ones away.
    kubectl("taint", "nodes", "--all", "node.kubernetes.io/not-ready-")
    kubectl("apply", "-f", "-", stdin=DAEMON_SET)
    kubectl.wait("ds/agent", "--for=jsonpath={.status.numberAvailable}=2")
    pods = read(kubectl, "pods")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["node-a", "node-b"]
    kubectl("set", "image", "ds/agent", "c=example/agent:2")
    rolled_out(kubectl, "ds/agent")
    assert images(kubectl, "app=agent") == {"example/agent:2"}
    kubectl("rollout", "undo", "ds/agent")
    rolled_out(kubectl, "ds/agent")
    assert images(kubectl, "app=agent") == {"example/agent:1"}
    kubectl("delete", "node", "node-b")
    kubectl.wait("ds/agent", "--for=jsonpath={.status.desiredNumberScheduled}=1")


def test_a_workload_outlives_its_control_plane(start: Callable[..., Seamark], make_kubectl: MakeKubectl) -> None:
    """Killed in the middle of a rollout; what takes over finds everything and finishes it, with nothing left over."""
    first = start()
    kubectl = make_kubectl(first)
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl.wait("deploy/web", "--for=jsonpath={.status.replicas}=3")
    kubectl("set", "image", "deploy/web", "c=example/app:2")
    first.kill()
    second = start()
    with kubelet(second):
        kubectl = make_kubectl(second)
        rolled_out(kubectl, "deploy/web")
        kubectl.wait("deploy/web", "--for=jsonpath={.status.terminatingReplicas}=0")
        assert images(kubectl, "app=web") == {"example/app:2"}
        assert len(read(kubectl, "pods")["items"]) == 3


# --- everything at once --------------------------------------------------------------------------


def pod_addresses(kubectl: Kubectl, label: str) -> set[str]:
    pods = read(kubectl, "pods", "-l", label)["items"]
    return {pod["status"]["podIP"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}


def endpoint_addresses(kubectl: Kubectl, service: str) -> set[str]:
    slices = read(kubectl, "endpointslices", "-l", f"kubernetes.io/service-name={service}")["items"]
    ready = (e for found in slices for e in found["endpoints"] or () if e["conditions"]["ready"])
    return {address for endpoint in ready for address in endpoint["addresses"]}


def dns_addresses(server: Seamark, name: str) -> set[str]:
    line = next(line for line in server.lines if line.startswith("DNS"))
    host, port = line.split()[1].rsplit(":", 1)
    answer = dns.query.udp(dns.message.make_query(name, "A"), host, port=int(port))
    return {record.address for found in answer.answer for record in found}


def test_endpoints_and_names_follow_workloads(start: Callable[..., Seamark], make_kubectl: MakeKubectl) -> None:
    server = start("--dns-port", "0", verb="up")
    kubectl = make_kubectl(server)
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("expose", "deploy/web", "--port=80")
    rolled_out(kubectl, "deploy/web")
    assert len(pod_addresses(kubectl, "app=web")) == 3
    until(lambda: endpoint_addresses(kubectl, "web") == pod_addresses(kubectl, "app=web"))
    for change in (
        ("rollout", "restart", "deploy/web"),
        ("rollout", "undo", "deploy/web"),
        ("scale", "deploy/web", "--replicas=5"),
    ):
        kubectl(*change)
        rolled_out(kubectl, "deploy/web")
        until(lambda: endpoint_addresses(kubectl, "web") == pod_addresses(kubectl, "app=web"))
    assert len(endpoint_addresses(kubectl, "web")) == 5

    kubectl("apply", "-f", "-", stdin=STATEFUL_SET)
    rolled_out(kubectl, "sts/db")
    for number in range(3):
        address, name = read(kubectl, "pod", f"db-{number}")["status"]["podIP"], f"db-{number}.db.default"
        until(lambda a=address, n=name: dns_addresses(server, f"{n}.svc.cluster.local") == {a})
    kubectl("delete", "pod", "db-1")
    rolled_out(kubectl, "sts/db")
    address = read(kubectl, "pod", "db-1")["status"]["podIP"]
    until(lambda: dns_addresses(server, "db-1.db.default.svc.cluster.local") == {address})

    kubectl("apply", "-f", "-", stdin=DAEMON_SET)
    kubectl.wait("ds/agent", "--for=jsonpath={.status.numberAvailable}=3")
