"""Requests to the API of a running Seamark."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from seamark_process import Seamark


def call(
    server: Seamark,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = "",
    media: str = "application/json",
    raw: bytes | None = None,
) -> tuple[int, Any]:
    """One request on a connection of its own; ``token`` None sends none."""
    data = raw if raw is not None else None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(server.url + path, data, method=method, headers={"Content-Type": media})
    if token is not None:
        asked.add_header("Authorization", f"Bearer {token or server.token}")
    tls = ssl.create_default_context(cafile=str(server.ca)) if server.url.startswith("https") else None
    try:
        with urllib.request.urlopen(asked, context=tls) as answer:
            status, text = answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            status, text = error.code, error.read()
    return status, json.loads(text) if text.startswith(b"{") else text.decode()


def watched(server: Seamark, path: str, *, until: Callable[[list[Any]], bool]) -> list[Any]:
    """The events of a watch, as many as it takes."""
    asked = urllib.request.Request(f"{server.url}{path}&watch=true")
    asked.add_header("Authorization", f"Bearer {server.token}")
    with urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=str(server.ca))) as stream:
        events: list[Any] = []
        while not until(events):
            events.append(json.loads(stream.readline()))
        return events


class Api:
    """The API in a few lines; a refusal is the test's failure."""

    def __init__(self, server: Seamark) -> None:
        url = urlsplit(server.url)
        assert url.hostname is not None
        context = ssl.create_default_context(cafile=str(server.ca))
        self._connection = http.client.HTTPSConnection(url.hostname, url.port, context=context)
        self._headers = {"Authorization": f"Bearer {server.token}", "Accept": "application/json"}

    def __call__(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> dict[str, Any]:
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, {**self._headers, "Content-Type": kind})
        reply = self._connection.getresponse()
        text = reply.read()
        assert reply.status < 300, f"{method} {path}: {text.decode()}"
        answer: dict[str, Any] = json.loads(text)
        return answer

    def close(self) -> None:
        self._connection.close()

    def add_node(self) -> None:
        """The node that Pods are on: endpoints on a node that does not exist are left out."""
        self("POST", "/api/v1/nodes", {"metadata": {"name": "node"}})

    def run_pod(self, name: str, address: str, *, service: str, namespace: str = "default") -> None:
        """A Pod of a StatefulSet, and what a kubelet would report once it runs."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        spec = {"hostname": name, "subdomain": service, "nodeName": "node", "containers": [{"name": "c", "image": "x"}]}
        self("POST", path, {"metadata": {"name": name, "labels": {"app": service}}, "spec": spec})
        self.report(name, address, ready=True, namespace=namespace)

    def report(self, name: str, address: str, *, ready: bool, namespace: str = "default") -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": [condition]}
        self("PATCH", path, {"status": status}, "application/merge-patch+json")
