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


def items(kubectl: Kubectl, kinds: str) -> list[Any]:
    found: list[Any] = json.loads(kubectl("get", kinds, "-A", "-o", "json"))["items"]
    return found


def versions(kubectl: Kubectl) -> dict[str, str]:
    """The version of every object that has no status, so that only writes of manifests change it."""
    kinds = "configmaps,secrets,roles,clusterroles,ingressclasses,networkpolicies,priorityclasses,storageclasses"
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in items(kubectl, kinds)}


def wait_for_everything(kubectl: Kubectl) -> None:
    """Until all that simulated nodes can make ready is ready."""
    for kind in ("deployment", "statefulset", "daemonset"):
        for each in items(kubectl, kind):
            meta = each["metadata"]
            kubectl("rollout", "status", f"{kind}/{meta['name']}", "-n", meta["namespace"], "--timeout=0")
    for kind, state in (("jobs", "condition=complete"), ("pvc", "jsonpath={.status.phase}=Bound")):
        if items(kubectl, kind):
            kubectl.wait(f"--for={state}", kind, "--all", "-A")
    until(lambda: {pod["status"]["phase"] for pod in items(kubectl, "pods")} <= {"Running", "Succeeded"})
    until(
        lambda: all(each["status"].get("loadBalancer") for each in items(kubectl, "svc") if "LoadBalancer" in str(each))
    )
    until(lambda: all(each["status"]["conditions"] for each in items(kubectl, "pdb")))


def test_the_life_of_applications(kubectl: Kubectl) -> None:
    assert set(lines(kubectl("apply", "--validate=strict", *files())).values()) == {"created"}
    wait_for_everything(kubectl)

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
    assert {pod["metadata"]["namespace"] for pod in items(kubectl, "pods")} == {"kube-system"}
    assert kubectl("get", "pv", "-o", "name") == ""


def test_applications_applied_by_the_server(kubectl: Kubectl) -> None:
    for _ in range(2):
        assert set(lines(kubectl("apply", "--server-side", *files())).values()) == {"serverside-applied"}
        wait_for_everything(kubectl)
    assert kubectl("diff", "--server-side", *files()) == ""


def test_our_own_manifests(kubectl: Kubectl) -> None:
    """All of them together, the cluster's own DNS being there already."""
    for directory in KUSTOMIZATIONS:
        kubectl("apply", "--validate=strict", "-k", str(directory))
    wait_for_everything(kubectl)
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
