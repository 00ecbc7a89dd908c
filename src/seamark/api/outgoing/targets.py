"""Where a client configuration leads: a URL as it is written, or a ready endpoint of a Service.

Kubernetes connects to the cluster IP of the Service.  Here that address usually leads nowhere from the machine of the
API server, because cluster IPs are only routable where a proxy runs.  So a reference is followed to the endpoints in
the Service's EndpointSlices, as Kubernetes does with ``--enable-aggregator-routing``.  The name in the request and in
the certificate is ``name.namespace.svc`` either way.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from seamark.errors import Object
from seamark.kinds.values.addresses import canonical
from seamark.kinds.values.hosts import bracketed

if TYPE_CHECKING:
    from seamark.access.credentials import Certificate

Address = tuple[str, int]


class Unresolvable(Exception):
    """The Service of a reference leads to no endpoint."""


class Reference(msgspec.Struct, frozen=True):
    """A port of a Service."""

    namespace: str
    name: str
    port: int = 443

    @property
    def host(self) -> str:
        """The name that the certificate has to be for."""
        return f"{self.name}.{self.namespace}.svc"


class Client(msgspec.Struct, frozen=True):
    """Whom to call: a ``url``, or a ``service`` and a ``path`` there.

    ``authority`` is the PEM of the CA to trust, empty for the system's; ``certificate`` is shown to the server.
    """

    url: str = ""
    service: Reference | None = None
    path: str = ""
    authority: bytes = b""
    insecure: bool = False
    certificate: Certificate | None = None

    @property
    def address(self) -> str:
        """The URL as requests and error messages show it."""
        if self.service is None:
            return self.url
        return f"https://{self.service.host}:{self.service.port}/{self.path.removeprefix('/')}"

    @property
    def server_name(self) -> str:
        """The name that the certificate of the server has to be for."""
        return self.service.host if self.service is not None else urlsplit(self.url).hostname or ""


def client_of(config: Object) -> Client:
    """The client that the ``clientConfig`` of a webhook, or the ``spec`` of an APIService, describes."""
    authority = _decoded(config.get("caBundle") or "")
    service = config.get("service")
    if service is None:
        return Client(url=config.get("url") or "", authority=authority)
    return Client(
        service=Reference(service.get("namespace", ""), service.get("name", ""), service.get("port") or 443),
        path=service.get("path") or "",
        authority=authority,
        insecure=bool(config.get("insecureSkipTLSVerify")),
    )


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text)
    except binascii.Error:  # not from the API, which accepts base64 only
        return b""


def addresses(
    reference: Reference,
    service: Object | None,
    slices: Iterable[Object],
    *,
    simulated: Callable[[Object], bool] = lambda endpoint: False,
) -> list[Address]:
    """The addresses to connect to, any of which will do; ``slices`` are those of the Service.

    Nothing listens at an endpoint that is ``simulated``, so none is connected to: on this machine's network, its
    address may be another program's.  Raises :class:`Unresolvable` if there is no other.
    """
    if service is None:
        raise Unresolvable(f'service "{reference.name}" not found')
    spec = service["spec"]
    if spec.get("type") == "ExternalName":
        return [(spec.get("externalName", ""), reference.port)]
    ports = [port.get("name", "") for port in spec.get("ports") or () if port["port"] == reference.port]
    if not ports:
        raise Unresolvable(f'no service port {reference.port} found for service "{reference.name}"')
    ready = [
        (endpoint, port)
        for each in slices
        if (port := _port_of(each, ports[0])) is not None
        for endpoint in each.get("endpoints") or ()
        if endpoint["addresses"] and _is_ready(endpoint)
    ]
    if not ready:
        raise Unresolvable(f'no endpoints available for service "{reference.name}"')
    # As they are printed: the system's resolver reads 0177.0.0.1 as 127.0.0.1, and Kubernetes does not.
    found = [(canonical(endpoint["addresses"][0]), port) for endpoint, port in ready if not simulated(endpoint)]
    if not found:
        endpoint, port = ready[0]
        host, pod = bracketed(endpoint["addresses"][0]), endpoint["targetRef"].get("name", "")
        why = f'pod "{pod}" is simulated, so nothing listens there'
        raise Unresolvable(f"dial tcp {host}:{port}: connect: connection refused: {why}")
    return found


def _port_of(slice: Object, name: str) -> int | None:
    """The number of the port with this name; None if the slice has none."""
    if slice.get("addressType") == "FQDN":
        return None
    numbers: list[Any] = [port.get("port") for port in slice.get("ports") or () if (port.get("name") or "") == name]
    return numbers[0] if numbers else None


def _is_ready(endpoint: Object) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False
