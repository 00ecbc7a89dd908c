"""Realistic manifests of applications, and our own under ``deploy``, through their life by kubectl.

``tests/journeys/manifests`` holds what people apply: an ingress controller, redis, a guestbook, monitoring,
certificates, backups, the namespace of a team, and objects of the whole cluster; CustomResourceDefinitions are left
out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from api_calls import call
from commands import Kubectl
from seamark_process import Seamark, Start
from waiting import until

MANIFESTS = sorted((Path(__file__).parents[1] / "manifests").glob("*.yaml"))
KUSTOMIZATIONS = sorted(file.parent for file in (Path(__file__).parents[3] / "deploy").glob("*/kustomization.yaml"))

# These write something otherwise than the API keeps it: texts for a Secret, ``0.5Gi``, zeros, and lists that are
# replaced as a whole without the defaults of their items; and the selector of a budget is always sent.  So kubectl
# sends a patch each time, to any cluster, which changes nothing.
NEVER_UNCHANGED = {
    "secret/object-store",
    "secret/edge-admission",
    "secret/registry",
    "job.batch/pieces",
    "clusterrole.rbac.authorization.k8s.io/cert-all",
    "mutatingwebhookconfiguration.admissionregistration.k8s.io/cert-webhook",
    "validatingwebhookconfiguration.admissionregistration.k8s.io/cert-webhook",
    "validatingwebhookconfiguration.admissionregistration.k8s.io/edge-admission",
    "validatingadmissionpolicy.admissionregistration.k8s.io/replica-limit",
    "deployment.apps/frontend",
    "deployment.apps/edge-controller",
    "priorityclass.scheduling.k8s.io/monitoring",
    "statefulset.apps/prometheus",
    "statefulset.apps/redis-node",
    "endpointslice.discovery.k8s.io/legacy-database-1",
    "service/redis",
    "poddisruptionbudget.policy/edge-controller",
    "poddisruptionbudget.policy/redis",
    "poddisruptionbudget.policy/shop",
    "networkpolicy.networking.k8s.io/redis",
    "persistentvolume/shop-catalogue",
}


# How the statuses of workloads call the Pods of the current version, and those that are available.
ROLLED_OUT = (("updatedReplicas", "updatedNumberScheduled"), ("availableReplicas", "numberAvailable"))


@pytest.fixture
def server(start: Start) -> Seamark:
    return start("--dns-port", "0", "--nodes", "3", verb="up")


@pytest.fixture
def kubectl(server: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(server)


def files(*more: str) -> list[str]:
    return [word for file in MANIFESTS for word in ("-f", str(file))] + list(more)


def lines(said: str) -> dict[str, str]:
    """What kubectl says it did with each object."""
    return dict(line.rsplit(" ", 1) for line in said.splitlines())


def items(server: Seamark, resource: str) -> list[Any]:
    """Objects of the whole cluster; ``resource`` begins with ``api/`` or ``apis/``.  Starting a kubectl costs more."""
    found: list[Any] = call(server, "GET", f"/{resource}")[1]["items"]
    return found


def versions(kubectl: Kubectl) -> dict[str, str]:
    """The version of every object that has no status, so that only writes of manifests change it."""
    kinds = "configmaps,secrets,roles,clusterroles,ingressclasses,networkpolicies,priorityclasses,storageclasses"
    found = json.loads(kubectl("get", kinds, "-A", "-o", "json"))["items"]
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}


def rolled_out(workload: Any) -> bool:
    """As ``kubectl rollout status`` judges Deployments, StatefulSets and DaemonSets."""
    status = workload["status"]
    wanted = workload["spec"].get("replicas", status.get("desiredNumberScheduled"))
    counts = [status.get(name, status.get(other, 0)) for name, other in ROLLED_OUT]
    return status.get("observedGeneration") == workload["metadata"]["generation"] and counts == [wanted, wanted]


def wait_for_everything(server: Seamark) -> None:
    """Until all that simulated nodes can make ready is ready."""

    def all_are(resource: str, so: Callable[[Any], bool]) -> None:
        until(lambda: all(map(so, items(server, resource))))

    for workloads in ("deployments", "statefulsets", "daemonsets"):
        all_are(f"apis/apps/v1/{workloads}", rolled_out)
    all_are("apis/batch/v1/jobs", lambda job: job["status"].get("succeeded") == job["spec"]["completions"])
    all_are("api/v1/persistentvolumeclaims", lambda claim: claim["status"]["phase"] == "Bound")
    all_are("api/v1/pods", lambda pod: pod["status"]["phase"] in ("Running", "Succeeded"))
    all_are("api/v1/services", lambda svc: svc["spec"]["type"] != "LoadBalancer" or svc["status"]["loadBalancer"])
    all_are("apis/policy/v1/poddisruptionbudgets", lambda budget: budget["status"]["conditions"])


def test_the_life_of_applications(kubectl: Kubectl, server: Seamark) -> None:
    assert set(lines(kubectl("apply", "--validate=strict", *files())).values()) == {"created"}
    wait_for_everything(server)

    before = versions(kubectl)
    said = kubectl("apply", *files())
    again = lines(said)
    assert set(again.values()) == {"unchanged", "configured"}
    assert {name for name, done in again.items() if done == "configured"} == NEVER_UNCHANGED
    assert versions(kubectl) == before
    assert kubectl("diff", *files()) == ""

    kinds = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    shown = {each.partition("/")[0] for each in kubectl("get", ",".join(kinds), "-A", "-o", "name").split()}
    assert {"deployment.apps", "persistentvolume", "cronjob.batch", "node"} <= shown
    assert kubectl("get", ",".join(kinds), "-A", "-o", "wide")
    for namespace in ("redis", "backup", "shop"):
        shown = kubectl("get", "all", "-n", namespace, "-o", "name").split()
        assert {"pod", "statefulset.apps", "job.batch", "cronjob.batch", "replicationcontroller"} & {
            name.partition("/")[0] for name in shown
        }

    deleted = kubectl("delete", *files("--timeout=0"))
    assert len(deleted.splitlines()) == len(said.splitlines())
    assert {pod["metadata"]["namespace"] for pod in items(server, "api/v1/pods")} == {"kube-system"}
    assert kubectl("get", "pv", "-o", "name") == ""


def test_applications_applied_by_the_server(kubectl: Kubectl, server: Seamark) -> None:
    for _ in range(2):
        assert set(lines(kubectl("apply", "--server-side", *files())).values()) == {"serverside-applied"}
        wait_for_everything(server)
    assert kubectl("diff", "--server-side", *files()) == ""


def test_our_own_manifests(kubectl: Kubectl, server: Seamark) -> None:
    """All of them together, the cluster's own DNS being there already."""
    for directory in KUSTOMIZATIONS:
        kubectl("apply", "--validate=strict", "-k", str(directory))
    wait_for_everything(server)
    for directory in KUSTOMIZATIONS:
        assert set(lines(kubectl("apply", "-k", str(directory))).values()) == {"unchanged"}
        assert kubectl("diff", "-k", str(directory)) == ""
    for directory in KUSTOMIZATIONS:
        kubectl("apply", "--server-side", "-k", str(directory))
    accounts = {"seamark-system": "seamark-controllers", "kube-system": "seamark-dns", "seamark-proxy": "seamark-proxy"}
    for namespace, name in accounts.items():
        account = f"--as=system:serviceaccount:{namespace}:{name}"
        assert kubectl("auth", "can-i", "watch", "services", "-A", account).strip() == "yes"
        assert kubectl.run("auth", "can-i", "delete", "services", "-A", account).stdout.strip() == "no"
