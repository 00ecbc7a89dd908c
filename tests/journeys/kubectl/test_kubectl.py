"""The real kubectl, doing what people do with it."""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Kubectl
from seamark_process import Seamark, Start

WEB = """\
apiVersion: v1
kind: Service
metadata:
  name: web
  labels: {app: web}
spec:
  selector: {app: web}
  ports:
  - {name: http, port: 80, targetPort: 8080}
"""

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: c, image: "example/app:1"}]
"""


@pytest.fixture
def kubectl(start: Start, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(start())


@pytest.fixture
def kubectl_on_either_store(server: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    """For what a store has a part in: conflicts, order, watches.  The rest is the same whatever is below."""
    return make_kubectl(server)


def editor(path: Path, command: str) -> str:
    script = path / "editor.sh"
    script.write_text(f"#!/bin/sh\n{command}\n")
    script.chmod(0o755)
    return str(script)


def test_apply_get_and_every_output(kubectl_on_either_store: Kubectl) -> None:
    kubectl = kubectl_on_either_store
    assert "service/web created" in kubectl("apply", "-f", "-", stdin=WEB)
    assert "service/web unchanged" in kubectl("apply", "-f", "-", stdin=WEB)
    assert "service/web configured" in kubectl("apply", "-f", "-", stdin=WEB.replace("port: 80", "port: 81"))
    header, row = kubectl("get", "svc", "web").splitlines()
    assert header.split() == ["NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE"]
    assert row.split()[:2] == ["web", "ClusterIP"]
    assert row.split()[3:5] == ["<none>", "81/TCP"]
    assert "app=web" in kubectl("get", "svc", "web", "-o", "wide")
    assert json.loads(kubectl("get", "svc", "web", "-o", "json"))["spec"]["type"] == "ClusterIP"
    assert "kind: Service" in kubectl("get", "svc", "web", "-o", "yaml")
    assert kubectl("get", "svc", "-o", "name").split() == ["service/kubernetes", "service/web"]
    assert kubectl("get", "svc", "-l", "app=web", "-o", "name").split() == ["service/web"]
    assert kubectl("get", "svc", "--field-selector", "metadata.name=web", "-o", "name").split() == ["service/web"]
    by_name = kubectl("get", "svc", "--sort-by", ".metadata.name", "-o", "name").split()
    assert by_name == sorted(by_name)
    assert "default" in kubectl("get", "svc", "-A")
    assert json.loads(kubectl("get", "--raw", "/api/v1/namespaces/default/services/web"))["metadata"]["name"] == "web"


def test_describe_explain_and_discovery(kubectl: Kubectl) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    described = kubectl("describe", "svc", "web")
    assert "Selector:" in described
    assert "app=web" in described
    assert "nodePort" in kubectl("explain", "service.spec.ports")
    assert "terminationGracePeriodSeconds" in kubectl("explain", "pod", "--recursive")
    listed = kubectl("api-resources")
    assert all(word in listed for word in ("endpointslices", "deployments", "ipaddresses", "leases"))
    assert "discovery.k8s.io/v1" in kubectl("api-versions")
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "create", "pods").strip() == "yes"
    assert "Server Version: v1.38" in kubectl("version")
    assert kubectl("cluster-info")


def test_patch_label_annotate_and_edit(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("apply", "-f", "-", stdin=WEB)
    kubectl("patch", "svc", "web", "-p", '{"spec":{"ports":[{"port":80,"appProtocol":"http"}]}}')
    kubectl("patch", "svc", "web", "--type", "merge", "-p", '{"metadata":{"annotations":{"a":"b"}}}')
    kubectl("patch", "svc", "web", "--type", "json", "-p", '[{"op":"add","path":"/metadata/labels/x","value":"y"}]')
    kubectl("label", "svc", "web", "z=1")
    kubectl("annotate", "svc", "web", "c=d")
    kubectl("label", "svc", "web", "z-")
    kubectl("edit", "svc", "web", EDITOR=editor(tmp_path, "sed -i 's/targetPort: 8080/targetPort: 9090/' \"$1\""))
    web = json.loads(kubectl("get", "svc", "web", "-o", "json"))
    assert web["metadata"]["labels"] == {"app": "web", "x": "y"}
    assert web["metadata"]["annotations"].keys() >= {"a", "c"}
    assert web["spec"]["ports"] == [
        {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 9090, "appProtocol": "http"}
    ]


def test_server_side_apply_and_diff(kubectl: Kubectl) -> None:
    assert "serverside-applied" in kubectl("apply", "--server-side", "-f", "-", stdin=WEB)
    other = WEB.replace("targetPort: 8080", "targetPort: 9090")
    refused = kubectl.run("apply", "--server-side", "--field-manager", "other", "-f", "-", stdin=other)
    assert refused.returncode != 0
    assert "conflict" in refused.stderr
    kubectl("apply", "--server-side", "--field-manager", "other", "--force-conflicts", "-f", "-", stdin=other)
    differs = kubectl.run("diff", "--server-side", "--field-manager", "other", "-f", "-", stdin=WEB)
    assert differs.returncode == 1, differs.stderr
    assert "9090" in differs.stdout


def test_strict_validation_refuses_a_typo(kubectl: Kubectl) -> None:
    refused = kubectl.run("apply", "--validate=strict", "-f", "-", stdin=WEB.replace("selector:", "selektor:"))
    assert refused.returncode != 0
    assert 'unknown field "spec.selektor"' in refused.stderr


def test_scale_wait_and_delete(kubectl_on_either_store: Kubectl) -> None:
    kubectl = kubectl_on_either_store
    kubectl("apply", "-f", "-", stdin=DEPLOYMENT)
    kubectl("scale", "deployment", "web", "--replicas", "2")
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}") == "2"
    kubectl("scale", "deployment", "web", "--replicas", "0")
    kubectl.wait("deployment/web", "--for", "jsonpath={.spec.replicas}=0")
    for cascade in ("foreground", "background", "orphan"):
        kubectl("create", "configmap", cascade)
        kubectl("delete", "configmap", cascade, f"--cascade={cascade}")
    kubectl("run", "p", "--image", "example/app:1")
    kubectl("delete", "pod", "p", "--force", "--grace-period", "0")
    kubectl("delete", "deployment", "web")
    assert "NotFound" in kubectl.run("get", "deployment", "web").stderr


def test_watching_from_the_command_line(kubectl_on_either_store: Kubectl) -> None:
    kubectl = kubectl_on_either_store
    seen = threading.Event()

    def keep_changing() -> None:
        """The watch begins when it begins: change something until it has seen that."""
        for number in itertools.count():
            if seen.is_set():
                return
            kubectl("create", "configmap", f"seen-{number}")

    words = ("get", "configmaps", "--watch-only", "-o", "name")
    with kubectl.beside(*words, stdout=subprocess.PIPE) as watching:
        assert watching.stdout is not None
        changing = threading.Thread(target=keep_changing)
        changing.start()
        line = watching.stdout.readline()
        seen.set()
        changing.join()
    assert line.startswith("configmap/seen-")
