"""kubectl's other verbs on what a cluster runs: describe, explain, wait, create job, autoscale, set, drain, rights."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from commands import Kubectl
from seamark_process import Seamark
from waiting import until

MANIFESTS = Path(__file__).parents[1] / "manifests"

# kubectl 1.32 describes these in versions that Kubernetes 1.38 no longer serves.
NOT_DESCRIBED = {
    "ipaddresses.networking.k8s.io",
    "servicecidrs.networking.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seamark]:
    directory = tmp_path_factory.mktemp("everyday") / "data"
    running = Seamark(directory, "--dns-port", "0", "--nodes", "3", verb="up")
    yield running
    running.stop()


@pytest.fixture
def kubectl(server: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(server)


def test_every_kind_is_described_and_explained(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", str(MANIFESTS))
    kubectl.wait("--for=condition=available", "deployment", "--all", "-A")
    kinds = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    assert len(kinds) > 50
    assert kubectl("describe", ",".join(set(kinds) - NOT_DESCRIBED), "-A")
    for kind in ("jobs.batch", "ingresses.networking.k8s.io", "persistentvolumes", "pods"):
        assert kubectl("describe", kind, "-A")
    for kind in kinds:
        plural, _, group = kind.partition(".")
        version = ["--api-version", f"{group}/v1"] if plural == "events" and group else []
        assert "DESCRIPTION" in kubectl("explain", plural if version else kind, *version)
    assert "schedule" in kubectl("explain", "cronjob.spec")
    assert "podSelector" in kubectl("explain", "networkpolicy.spec.ingress.from", "--recursive")
    described = kubectl("describe", "statefulset", "redis-node", "-n", "redis")
    assert "SuccessfulCreate" in described
    assert "Bound" in kubectl("get", "pvc", "-n", "redis")


def test_the_cluster_shows_its_own_parts(kubectl: Kubectl) -> None:
    told = kubectl("cluster-info")
    assert "Kubernetes control plane" in told
    assert "services/kube-dns:dns/proxy" in told
    assert "10.96.0.10" in kubectl("get", "service", "kube-dns", "-n", "kube-system")
    parts = {row.split()[0]: row.split()[1] for row in kubectl("get", "componentstatuses", "--no-headers").splitlines()}
    assert {"store", "controllers", "dns", "nodes"} <= parts.keys()
    assert set(parts.values()) == {"Healthy"}


def test_a_job_from_a_cronjob(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "nightly", "--image", "busybox", "--schedule", "0 3 * * *", "--", "true")
    kubectl("create", "job", "now", "--from=cronjob/nightly")
    kubectl.wait("--for=condition=complete", "job/now")
    owner = kubectl("get", "job", "now", "-o", "jsonpath={.metadata.ownerReferences[0].name}")
    assert owner == "nightly"
    assert "1/1" in kubectl("get", "job", "now")


def test_a_deployment_is_changed_step_by_step(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image", "example/app:1", "--replicas", "2")
    kubectl("rollout", "status", "deployment/web", "--timeout=0")
    assert "autoscaled" in kubectl("autoscale", "deployment", "web", "--min=2", "--max=4", "--cpu-percent=50")
    assert kubectl("get", "hpa", "web", "-o", "jsonpath={.spec.maxReplicas}") == "4"
    kubectl("set", "resources", "deployment", "web", "--limits=cpu=200m,memory=512Mi", "--requests=cpu=100m")
    kubectl("set", "image", "deployment/web", "app=example/app:2")
    kubectl("set", "env", "deployment/web", "A=b")
    kubectl("set", "serviceaccount", "deployment", "web", "default")
    kubectl("rollout", "status", "deployment/web", "--timeout=0")
    (container,) = json.loads(kubectl("get", "deploy", "web", "-o", "jsonpath={.spec.template.spec.containers}"))
    assert (container["image"], container["env"]) == ("example/app:2", [{"name": "A", "value": "b"}])
    assert container["resources"] == {"limits": {"cpu": "200m", "memory": "512Mi"}, "requests": {"cpu": "100m"}}
    kubectl("rollout", "undo", "deployment/web", "--to-revision=1")
    kubectl("rollout", "status", "deployment/web", "--timeout=0")
    assert kubectl("get", "deploy", "web", "-o", "jsonpath={..containers[0].image}") == "example/app:1"
    kubectl("expose", "deployment", "web", "--port", "80")
    kubectl("create", "ingress", "web", "--rule=web.example.com/*=web:80")
    assert "web.example.com" in kubectl("describe", "ingress", "web")


def test_a_node_is_drained(kubectl: Kubectl) -> None:
    manifest = (MANIFESTS / "guestbook.yaml").read_text()
    kubectl("apply", "-f", "-", stdin=manifest)
    kubectl("rollout", "status", "deployment/frontend", "-n", "guestbook", "--timeout=0")
    kubectl("drain", "node-1", "--ignore-daemonsets", "--delete-emptydir-data", "--force")
    here = "spec.nodeName=node-1,status.phase=Running"
    rest = json.loads(kubectl("get", "pods", "-A", "--field-selector", here, "-o", "json"))["items"]
    owners = {each["kind"] for pod in rest for each in pod["metadata"].get("ownerReferences", ())}
    assert owners <= {"DaemonSet"}
    assert [pod["metadata"]["name"] for pod in rest if "ownerReferences" not in pod["metadata"]] == ["seamark-node-1"]
    kubectl("uncordon", "node-1")


def test_rights_are_told(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "rights")
    kubectl("create", "role", "reader", "--verb=get,list", "--resource=pods,jobs.batch", "-n", "rights")
    kubectl("create", "rolebinding", "ann", "--role=reader", "--user=ann", "-n", "rights")
    until(lambda: kubectl.run("auth", "can-i", "get", "pods", "-n", "rights", "--as=ann").returncode == 0)
    told = kubectl("auth", "can-i", "--list", "-n", "rights", "--as=ann")
    rows = [line.split() for line in told.splitlines()]
    assert ["jobs.batch", "[]", "[]", "[get", "list]"] in rows
    assert ["pods", "[]", "[]", "[get", "list]"] in rows
    assert not any(row[0] == "*.*" for row in rows)
    refused = kubectl.run("delete", "pod", "x", "-n", "rights", "--as=ann")
    assert 'User "ann" cannot delete resource "pods" in API group "" in the namespace "rights"' in refused.stderr
    assert kubectl("auth", "can-i", "--list").split("\n")[1].split()[0] == "*.*"


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ("{apiVersion: batch/v1beta1, kind: CronJob, metadata: {name: x}}", 'in version "batch/v1beta1"'),
        ("{apiVersion: extensions/v1beta1, kind: Ingress, metadata: {name: x}}", 'in version "extensions/v1beta1"'),
        ("{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {replica: 1}}", "unknown field"),
    ],
)
def test_what_is_not_served_is_refused_by_name(kubectl: Kubectl, manifest: str, told: str) -> None:
    """And the other objects of the file are applied."""
    good = "{apiVersion: v1, kind: ConfigMap, metadata: {name: beside}}"
    refused = kubectl.run("apply", "-f", "-", stdin=f"---\n{manifest}\n---\n{good}\n")
    assert refused.returncode == 1
    assert told in refused.stderr
    assert "configmap/beside" in refused.stdout
