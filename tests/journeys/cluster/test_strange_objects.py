"""Strange objects that the API accepts do not stop `seamark up`: not while it runs, and not when it starts."""

from __future__ import annotations

from typing import Any

from api_calls import call
from seamark_process import Seamark, Start
from waiting import until

HUGE = 2**31 - 1
CORE, APPS = "/api/v1/namespaces/default", "/apis/apps/v1/namespaces/default"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"


def make(server: Seamark, path: str, name: str, **content: Any) -> None:
    labels = {"app": name}
    code, answer = call(server, "POST", path, {"metadata": {"name": name, "labels": labels}, **content})
    assert code == 201, answer


def workload(name: str, **spec: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    return {"spec": {"replicas": HUGE, "selector": {"matchLabels": {"app": name}}, "template": template, **spec}}


def pods(server: Seamark, app: str) -> int:
    _, found = call(server, "GET", f"{CORE}/pods?labelSelector=app%3D{app}&limit=1")
    return len(found["items"])


def endpoints(server: Seamark, service: str) -> list[Any]:
    _, found = call(server, "GET", f"{SLICES}?labelSelector=kubernetes.io/service-name%3D{service}")
    return [each for item in found["items"] for each in item["endpoints"] or ()]


def serves(server: Seamark, service: str) -> None:
    """The API answers, and a new Service gets its endpoint."""
    assert call(server, "GET", f"{CORE}/services/kubernetes")[0] == 200
    make(server, f"{CORE}/services", service, spec={"selector": {"app": "small"}, "ports": [{"port": 80}]})
    until(lambda: endpoints(server, service))


def test_huge_workloads_and_a_revision_of_text(start: Start) -> None:
    server = start("--nodes", "1", "--dns-port", "0", verb="up")
    make(server, f"{CORE}/pods", "small", spec={"containers": [{"name": "c", "image": "i"}]})
    until(lambda: call(server, "GET", f"{CORE}/pods/small")[1]["status"]["phase"] == "Running")
    make(server, f"{APPS}/controllerrevisions", "text", data="not a template", revision=1)
    parallel = workload("members", serviceName="members", podManagementPolicy="Parallel")
    make(server, f"{APPS}/statefulsets", "members", **parallel)
    make(server, f"{APPS}/deployments", "replicas", **workload("replicas"))
    until(lambda: pods(server, "members") and pods(server, "replicas"))
    serves(server, "before")
    server.kill()
    server = start("--nodes", "1", "--dns-port", "0", verb="up")
    serves(server, "after")
    assert "Traceback" not in server.log
