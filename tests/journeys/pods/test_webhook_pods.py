"""A Pod that runs is called by the API server: it serves webhooks, converts, and is an aggregated server."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from commands import Kubectl
from machines import PYTHON, require_machine

from seamark.api.certificates import Authority

PROGRAM = """
import base64, http.server, json, ssl
def admit(request):
    if "forbidden" in request["object"].get("data", {}):
        return {"allowed": False, "status": {"message": "the Pod says no", "code": 403}}
    patch = [{"op": "add", "path": "/metadata/labels", "value": {"seen": "by-a-pod"}}]
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
def convert(request):
    def other(each):
        return {**each, "apiVersion": request["desiredAPIVersion"]}
    return {"result": {"status": "Success"}, "convertedObjects": [other(each) for each in request["objects"]]}
FLUNDERS = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "wardle.example.com/v1", "resources": [
    {"name": "flunders", "singularName": "", "namespaced": True, "kind": "Flunder", "verbs": ["get", "list"]}]}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path.rstrip("/") == "/apis/wardle.example.com/v1":
            return self.reply(FLUNDERS)
        if "/flunders/" in self.path:
            return self.reply({"apiVersion": "wardle.example.com/v1", "kind": "Flunder", "metadata": {"name": "nemo"}})
        self.reply({}, 404)
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = convert if "desiredAPIVersion" in review["request"] else admit
        review["response"] = {"uid": review["request"]["uid"], **answer(review["request"])}
        self.reply(review)
    def reply(self, body, status=200):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments): pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server = http.server.ThreadingHTTPServer(("", 8443), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""


@pytest.fixture(scope="module", autouse=True)
def machine() -> None:
    require_machine()


def named(api: str, kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **more}


def server_objects(authority: Authority) -> list[dict[str, Any]]:
    """The program, its certificate, a Pod that runs it, and the Service that leads there."""
    certificate = {
        "tls.crt": authority.server_path.read_text(),
        "tls.key": authority.server_key_path.read_text(),
    }
    container = {
        "name": "main",
        "image": "python:3",
        "command": [PYTHON, "/program/server.py"],
        "readinessProbe": {"tcpSocket": {"port": 8443}, "periodSeconds": 1, "timeoutSeconds": 60},
        "volumeMounts": [
            {"name": "program", "mountPath": "/program"},
            {"name": "tls", "mountPath": "/tls"},
        ],
    }
    volumes = [
        {"name": "program", "configMap": {"name": "program"}},
        {"name": "tls", "secret": {"secretName": "tls"}},
    ]
    pod = named("v1", "Pod", "hook", spec={"containers": [container], "volumes": volumes})
    pod["metadata"]["labels"] = {"app": "hook"}
    return [
        named("v1", "ConfigMap", "program", data={"server.py": PROGRAM}),
        named("v1", "Secret", "tls", stringData=certificate),
        pod,
        named(
            "v1", "Service", "hook", spec={"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]}
        ),
    ]


def registrations(bundle: str) -> list[dict[str, Any]]:
    """What makes the API server call that Service."""
    service = {"namespace": "default", "name": "hook"}
    config = {"service": {**service, "path": "/"}, "caBundle": bundle}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "hook.example.com",
        "rules": [rule],
        "clientConfig": config,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": anything} for name in ("v1", "v2")]
    conversion = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]},
    }
    definition = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "shops", "kind": "Shop"},
        "versions": versions,
        "conversion": conversion,
    }
    backend = {
        "group": "wardle.example.com",
        "version": "v1",
        "service": service,
        "caBundle": bundle,
        "groupPriorityMinimum": 1000,
        "versionPriority": 10,
    }
    return [
        named("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "hook", webhooks=[webhook]),
        named("apiextensions.k8s.io/v1", "CustomResourceDefinition", "shops.example.com", spec=definition),
        named("apiregistration.k8s.io/v1", "APIService", "v1.wardle.example.com", spec=backend),
    ]


def test_a_pod_serves_webhooks_conversion_and_an_api(start, tmp_path: Path) -> None:
    up = start("--ephemeral", "--dns-port", "0", "--pods", "processes", "--image", "python*=host", verb="up")
    kubectl = Kubectl(up.kubeconfig, tmp_path)
    authority = Authority(tmp_path / "authority")
    authority.prepare(["hook.default.svc"])

    def make(*objects: dict[str, Any]) -> None:
        kubectl("create", "-f", "-", stdin=json.dumps(named("v1", "List", "") | {"items": list(objects)}))

    make(*server_objects(authority))
    kubectl.wait("--for=condition=Ready", "pod/hook")
    make(*registrations(base64.b64encode(authority.ca_pem).decode()))

    make(named("v1", "ConfigMap", "one"))
    assert kubectl("get", "configmap", "one", "-o", "jsonpath={.metadata.labels.seen}") == "by-a-pod"
    refused = kubectl.run("create", "configmap", "two", "--from-literal=forbidden=x")
    assert 'admission webhook "hook.example.com" denied the request: the Pod says no' in refused.stderr

    kubectl.wait("--for=condition=Established", "crd/shops.example.com")
    make(named("example.com/v2", "Shop", "corner"))
    assert kubectl("get", "shops.v1.example.com", "corner", "-o", "jsonpath={.apiVersion}") == "example.com/v1"

    kubectl.wait("--for=condition=Available", "apiservice/v1.wardle.example.com")
    flunder = json.loads(kubectl("get", "--raw", "/apis/wardle.example.com/v1/namespaces/default/flunders/nemo"))
    assert flunder["metadata"]["name"] == "nemo"
