"""`kubectl create` and `kubectl auth`, which write protobuf: what arrives is what was meant."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Kubectl
from seamark_process import Seamark


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seamark]:
    running = Seamark(tmp_path_factory.mktemp("create") / "data")
    yield running
    running.stop()


@pytest.fixture
def kubectl(server: Seamark, make_kubectl: Callable[[Seamark], Kubectl]) -> Kubectl:
    return make_kubectl(server)


def created(kubectl: Kubectl, *arguments: str) -> Any:
    """The object a ``kubectl create`` made, after making sure that it went as protobuf."""
    done = kubectl.run("create", *arguments, "-v", "8", "-o", "name")
    assert done.returncode == 0, done.stderr
    assert "Content-Type: application/vnd.kubernetes.protobuf" in done.stderr
    return json.loads(kubectl("get", done.stdout.strip(), "-o", "json"))


def test_a_deployment(kubectl: Kubectl) -> None:
    web = created(kubectl, "deployment", "web", "--image=example/app:1", "--replicas=2", "--port=8080")
    container = {
        "name": "app",
        "image": "example/app:1",
        "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    assert web["metadata"]["labels"] == {"app": "web"}
    assert web["spec"] == {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [container],
                "dnsPolicy": "ClusterFirst",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {},
                "terminationGracePeriodSeconds": 30,
            },
        },
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        "progressDeadlineSeconds": 600,
        "revisionHistoryLimit": 10,
    }


def test_configuration_and_secrets(kubectl: Kubectl, tmp_path: Path) -> None:
    raw = bytes(range(256)) * 3
    (tmp_path / "raw").write_bytes(raw)
    config = created(kubectl, "configmap", "config", "--from-literal=text=naïve €😀", f"--from-file={tmp_path / 'raw'}")
    assert config["data"] == {"text": "naïve €😀"}
    assert config["binaryData"] == {"raw": base64.b64encode(raw).decode()}
    secret = created(kubectl, "secret", "generic", "secret", "--from-literal=a=b", f"--from-file={tmp_path / 'raw'}")
    assert secret["type"] == "Opaque"
    assert secret["data"] == {"a": "Yg==", "raw": base64.b64encode(raw).decode()}


def test_services(kubectl: Kubectl) -> None:
    port = {"name": "80-8080", "port": 80, "protocol": "TCP", "targetPort": 8080}
    inside = created(kubectl, "service", "clusterip", "inside", "--tcp=80:8080")
    assert (inside["spec"]["type"], inside["spec"]["ports"]) == ("ClusterIP", [port])
    assert inside["spec"]["selector"] == {"app": "inside"}
    headless = created(kubectl, "service", "clusterip", "headless", "--clusterip=None")
    assert headless["spec"]["clusterIPs"] == ["None"]
    outside = created(kubectl, "service", "nodeport", "outside", "--tcp=80:http", "--node-port=30123")
    assert outside["spec"]["ports"] == [port | {"name": "80-http", "targetPort": "http", "nodePort": 30123}]
    elsewhere = created(kubectl, "service", "externalname", "elsewhere", "--external-name=example.com")
    assert elsewhere["spec"]["externalName"] == "example.com"


def test_namespaces_and_accounts(kubectl: Kubectl) -> None:
    assert created(kubectl, "namespace", "team")["status"] == {"phase": "Active"}
    assert created(kubectl, "serviceaccount", "robot")["metadata"]["name"] == "robot"


def test_reviews(kubectl: Kubectl) -> None:
    who = json.loads(kubectl("auth", "whoami", "-o", "json"))
    assert who["status"]["userInfo"]["username"] == "kubernetes-admin"
    assert kubectl("auth", "can-i", "delete", "services", "--subresource=status", "-n", "team").strip() == "yes"
    assert kubectl("auth", "can-i", "get", "/healthz").strip() == "yes"
    assert "*.*" in kubectl("auth", "can-i", "--list")


def test_what_is_wrong_is_told_as_for_json(kubectl: Kubectl) -> None:
    refused = kubectl.run("create", "service", "nodeport", "Web", "--tcp=80")
    assert refused.returncode != 0
    assert 'metadata.name: Invalid value: "Web"' in refused.stderr
    created(kubectl, "configmap", "once")
    assert "already exists" in kubectl.run("create", "configmap", "once").stderr


# --- what other Go clients send ---------------------------------------------------------------------

PROTOBUF = "application/vnd.kubernetes.protobuf"


def ask(server: Seamark, method: str, path: str, body: bytes | None = None, accept: str = "*/*") -> int:
    """The status of the answer."""
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": PROTOBUF, "Accept": accept}
    request = urllib.request.Request(server.url + path, body, headers, method=method)
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=server.ca)) as answer:
            wanted = PROTOBUF if PROTOBUF in accept else "application/json"
            assert answer.headers["Content-Type"] == wanted
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def member(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | 2, len(value)]) + value


def envelope(api_version: bytes, kind: bytes, message: bytes) -> bytes:
    return b"k8s\0" + member(1, member(1, api_version) + member(2, kind)) + member(2, message)


def test_deletions_and_evictions(kubectl: Kubectl, server: Seamark) -> None:
    at_once = b"\x08\x00"
    options = envelope(b"v1", b"DeleteOptions", at_once)
    eviction = envelope(b"policy/v1", b"Eviction", member(1, member(1, b"evicted")) + member(2, at_once))
    pods = "/api/v1/namespaces/default/pods"
    for name in ("deleted", "evicted"):
        kubectl("run", name, "--image=example/app:1")
    both = f"{PROTOBUF},application/json"
    assert ask(server, "DELETE", f"{pods}/deleted", options, accept=both) == 200
    assert ask(server, "POST", f"{pods}/evicted/eviction", eviction, accept=both) == 201
    assert kubectl("get", "pods", "-l", "run", "-o", "name") == ""


def test_answers_may_be_in_protobuf_and_patches_may_not(server: Seamark) -> None:
    service = "/api/v1/namespaces/default/services/kubernetes"
    assert ask(server, "PATCH", service, envelope(b"v1", b"Service", b"")) == 415
    assert ask(server, "GET", service, accept=PROTOBUF) == 200
    assert ask(server, "GET", service, accept=f"{PROTOBUF},application/json") == 200
    assert ask(server, "GET", service, accept="application/cbor") == 406
