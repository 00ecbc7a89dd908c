"""HTTPS servers that the API server calls: they show a certificate of an authority made for the test."""

from __future__ import annotations

import base64
from pathlib import Path

from http_server import HttpServer

from seamark.api.certificates import Authority

NAMES = ("127.0.0.1", "hook.default.svc")


class Trusted:
    """An authority in a directory, and servers with its certificate."""

    def __init__(self, directory: Path, names: tuple[str, ...] = NAMES) -> None:
        self._authority = Authority(directory)
        self._authority.prepare(names)

    @property
    def pem(self) -> bytes:
        return self._authority.ca_pem

    @property
    def bundle(self) -> str:
        """As ``caBundle`` has it."""
        return base64.b64encode(self.pem).decode()

    def server(self, handler: object, host: str = "127.0.0.1") -> HttpServer:
        """To be entered; ``handler(exchange)`` answers."""
        return HttpServer(handler, ssl=self._authority.tls(), host=host)  # type: ignore[no-untyped-call]


def service(name: str = "hook", port: int = 443, **spec: object) -> dict[str, object]:
    """A Service without a selector; its slice is made by hand."""
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"ports": ports, **spec},
    }


def endpoint_slice(port: int, *ready: bool, name: str = "hook", address: str = "127.0.0.1") -> dict[str, object]:
    """The endpoints of that Service, one for each word whether it is ready."""
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": f"{name}-1", "namespace": "default", "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        "endpoints": [{"addresses": [address], "conditions": {"ready": each}} for each in ready or (True,)],
    }
