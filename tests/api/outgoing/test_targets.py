"""Where client configurations lead."""

from __future__ import annotations

from typing import Any

import pytest
from called_servers import endpoint_slice, service

from seamark.api.outgoing.targets import Client, Reference, Unresolvable, addresses, client_of

HOOK = Reference("default", "hook")


def test_a_configuration_names_a_url_or_a_service() -> None:
    assert client_of({"url": "https://h:8443/x", "caBundle": "eA=="}) == Client(url="https://h:8443/x", authority=b"x")
    named = client_of({"service": {"namespace": "default", "name": "hook", "port": 8443, "path": "/x"}})
    assert named == Client(service=Reference("default", "hook", 8443), path="/x")


@pytest.mark.parametrize(
    ("client", "address", "name"),
    [
        (Client(url="https://h:8443/x"), "https://h:8443/x", "h"),
        (Client(url="https://[::1]:8443/x"), "https://[::1]:8443/x", "::1"),
        (Client(service=HOOK), "https://hook.default.svc:443/", "hook.default.svc"),
        (Client(service=HOOK, path="/x"), "https://hook.default.svc:443/x", "hook.default.svc"),
        (Client(service=HOOK, path="x"), "https://hook.default.svc:443/x", "hook.default.svc"),
    ],
)
def test_a_client_has_an_address_and_a_name(client: Client, address: str, name: str) -> None:
    assert (client.address, client.server_name) == (address, name)


def sliced(*, ready: tuple[bool, ...] = (True,), **fields: Any) -> dict[str, Any]:
    return {**endpoint_slice(8443, *ready), **fields}


@pytest.mark.parametrize(
    ("slices", "found"),
    [
        ([sliced()], [("127.0.0.1", 8443)]),
        ([sliced(ready=(False, True))], [("127.0.0.1", 8443)]),
        ([sliced(endpoints=[{"addresses": ["10.0.0.1", "10.0.0.2"]}])], [("10.0.0.1", 8443)]),
        ([sliced(ports=[{"name": "other", "port": 1}]), sliced()], [("127.0.0.1", 8443)]),
        ([sliced(), sliced(endpoints=[{"addresses": ["::1"]}])], [("127.0.0.1", 8443), ("::1", 8443)]),
    ],
)
def test_a_reference_leads_to_ready_endpoints(slices: list[Any], found: list[Any]) -> None:
    assert addresses(HOOK, service(), slices) == found


@pytest.mark.parametrize(
    ("reference", "found", "slices", "sentence"),
    [
        (HOOK, None, [sliced()], 'service "hook" not found'),
        (Reference("default", "hook", 80), service(), [sliced()], 'no service port 80 found for service "hook"'),
        (HOOK, service(), [], 'no endpoints available for service "hook"'),
        (HOOK, service(), [sliced(ready=(False,))], 'no endpoints available for service "hook"'),
        (HOOK, service(), [sliced(addressType="FQDN")], 'no endpoints available for service "hook"'),
    ],
)
def test_a_reference_may_lead_nowhere(reference: Reference, found: Any, slices: list[Any], sentence: str) -> None:
    with pytest.raises(Unresolvable) as refused:
        addresses(reference, found, slices)
    assert str(refused.value) == sentence


def test_an_external_name_is_called_at_the_port_of_the_reference() -> None:
    external = service(type="ExternalName", externalName="hooks.example.com")
    assert addresses(HOOK, external, []) == [("hooks.example.com", 443)]
