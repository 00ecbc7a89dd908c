"""What follows from an APIService, its Service and its EndpointSlices."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from tests.api.aggregation.extension_server import AGGREGATED_FORM, GROUP, RESOURCES, VERSION

from seamark.api.aggregation.asking import gathered
from seamark.api.aggregation.backends import Backend, Condition, backend_of, trouble, with_condition

SPEC = {"group": GROUP, "version": VERSION, "groupPriorityMinimum": 2000, "versionPriority": 15}
SERVICE = {"namespace": "wardle", "name": "api", "port": 443}


def apiservice(**more: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"{VERSION}.{GROUP}"}, "spec": SPEC | more}


def backend(**more: Any) -> Backend:
    found = backend_of(apiservice(service=SERVICE, **more))
    assert found is not None
    return found


def service(*ports: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"spec": {"type": "ClusterIP", "ports": list(ports), **more}}


def slice_(*endpoints: dict[str, Any], name: str = "https") -> dict[str, Any]:
    return {"endpoints": list(endpoints), "ports": [{"name": name, "port": 8443}]}


PORT = {"name": "https", "port": 443}
READY = {"addresses": ["10.0.0.1"], "conditions": {"ready": True}}


def test_a_local_one_has_no_other_server() -> None:
    assert backend_of(apiservice()) is None


def test_a_backend_knows_its_authority_and_whether_it_is_available() -> None:
    found = backend(caBundle=base64.b64encode(b"PEM").decode())
    assert (found.client.authority, found.available, found.path) == (b"PEM", False, f"/apis/{GROUP}/{VERSION}")
    assert found.client.server_name == "api.wardle.svc"
    well = apiservice(service=SERVICE) | {"status": {"conditions": [{"type": "Available", "status": "True"}]}}
    assert backend_of(well).available  # type: ignore[union-attr]  # it has a service


@pytest.mark.parametrize(
    ("found", "slices", "reason", "message"),
    [
        (None, [], "ServiceNotFound", 'service/api in "wardle" is not present'),
        (service({"port": 80}), [], "ServicePortError", 'service/api in "wardle" is not listening on port 443'),
        (service(PORT), [], "EndpointsNotFound", 'cannot find endpointslices for service/api in "wardle"'),
        (
            service(PORT),
            [slice_(READY, name="other"), slice_(READY | {"conditions": {"ready": False}})],
            "MissingEndpoints",
            'endpointslices for service/api in "wardle" have no addresses with port name "https"',
        ),
    ],
)
def test_what_is_wrong(found: Any, slices: Any, reason: str, message: str) -> None:
    assert trouble(backend(), found, slices) == Condition("False", reason, message)


def test_what_has_to_be_asked() -> None:
    assert trouble(backend(), service(PORT), [slice_(READY)]) is None
    external = service(type="ExternalName", externalName="api.example.com")
    assert trouble(backend(), external, []) is None


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    first = with_condition(apiservice(), Condition("False", "A", "a"), "t1")
    assert first is not None
    known = apiservice() | {"status": first}
    assert with_condition(known, Condition("False", "A", "a"), "t2") is None
    again = with_condition(known, Condition("False", "B", "b"), "t2")
    assert again is not None
    assert [c["lastTransitionTime"] for c in again["conditions"]] == ["t1"]
    other = with_condition(known, Condition("True", "Passed", "all checks passed"), "t2")
    assert other is not None
    assert [c["lastTransitionTime"] for c in other["conditions"]] == ["t2"]


def test_a_list_of_resources_in_the_aggregated_form() -> None:
    assert gathered(RESOURCES["resources"], GROUP, VERSION) == AGGREGATED_FORM  # type: ignore[arg-type]
