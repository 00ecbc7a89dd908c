"""``seamark dns`` as its users run it, and the API as they write to it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seamark_process import Seamark


class DnsProcess:
    """One running ``seamark dns``; started when made, ended by ``stop``."""

    def __init__(self, kubeconfig: Path, *arguments: str, listen: str = "127.0.0.1:0") -> None:
        command = [sys.executable, "-m", "seamark", "dns", "--kubeconfig", str(kubeconfig), "--listen", listen]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SEAMARK_")}
        self.process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True, env=environment)
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if self.lines[-1] == "ready":
                return
        raise AssertionError(f"seamark dns ended with {self.stop()} before it was ready")

    @property
    def address(self) -> tuple[str, int]:
        return dns_address(self.lines)

    @property
    def status(self) -> tuple[str, int]:
        url = next(line.split()[1] for line in self.lines if line.startswith("status "))
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return parts.hostname, parts.port

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def dns_address(lines: list[str]) -> tuple[str, int]:
    """Where a started process says its DNS is."""
    text = next(line.split()[1] for line in lines if line.startswith("DNS "))
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


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
        """The node that Pods are on: endpoints on a node nobody knows are left out."""
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
