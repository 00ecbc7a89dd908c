"""``seamark controllers`` beside an API server that runs no controllers of the kind: recorded behaviour, takeovers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from api_calls import Api
from controllers_process import ControllersProcess
from replaying import LARGE, replay
from seamark_process import Seamark
from waiting import until

SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
ENDPOINTS = "/api/v1/namespaces/default/endpoints"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/seamark-discovery"
# A leader that a busy machine holds up for long must not lose its lease.
PATIENT = ("--leader-elect-lease-duration", "600", "--leader-elect-renew-deadline", "500")
PATIENT += ("--leader-elect-retry-period", "0.4")
SERVICES = ("web", "api", "db")

Run = Callable[..., ControllersProcess]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start controllers; whatever still runs at the end of the test is stopped."""
    running: list[ControllersProcess] = []

    def begin(server: Seamark, *arguments: str) -> ControllersProcess:
        log = tmp_path / f"controllers-{len(running)}.log"
        running.append(ControllersProcess(server.kubeconfig, *arguments, log=log))
        return running[-1]

    yield begin
    for process in running:
        if process.process.poll() is None:
            process.stop()


@pytest.fixture
def api(start: Callable[..., Seamark]) -> Iterator[tuple[Seamark, Api]]:
    server = start()
    api = Api(server)
    yield server, api
    api.close()


def add_service(api: Api, name: str) -> None:
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}
    api("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})


def addresses(api: Api, service: str) -> list[str]:
    """Every address in every slice of a Service, as often as it is listed."""
    found = api("GET", f"{SLICES}?labelSelector=kubernetes.io/service-name={service}")["items"]
    return sorted(address for each in found for e in each["endpoints"] or () for address in e["addresses"])


def in_endpoints(api: Api, service: str) -> list[str]:
    found = api("GET", ENDPOINTS)["items"]
    subsets = [s for each in found if each["metadata"]["name"] == service for s in each.get("subsets") or ()]
    return sorted(address["ip"] for subset in subsets for address in subset.get("addresses") or ())


def versions(api: Api) -> dict[str, str]:
    """What every Endpoints and EndpointSlice is at: a write would show."""
    found = api("GET", SLICES)["items"] + api("GET", ENDPOINTS)["items"]
    return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}


def test_every_recorded_scenario_ends_as_with_the_real_controllers(api: tuple[Seamark, Api], run: Run) -> None:
    server, _ = api
    controllers = run(server)
    metrics = f"{controllers.status}/metrics"
    assert replay(server, "replay.py", "controllers", "--jobs", "64", "--metrics", metrics, *LARGE) >= 125
    assert controllers.stop() == 0


def test_when_the_leader_is_killed_another_goes_on_and_rewrites_nothing(api: tuple[Seamark, Api], run: Run) -> None:
    server, write = api
    first = run(server, *PATIENT)
    second = run(server, *PATIENT)
    assert first.leading
    assert second.ask("/ready")[0] == 200
    assert second.ask("/ready")[1].startswith("standing by: ")
    write.add_node()
    for number, service in enumerate(SERVICES, start=1):
        add_service(write, service)
        write.run_pod(f"{service}-0", f"10.0.0.{number}", service=service)
    for number, service in enumerate(SERVICES, start=1):
        until(lambda s=service, n=number: addresses(write, s) == [f"10.0.0.{n}"])
        until(lambda s=service, n=number: in_endpoints(write, s) == [f"10.0.0.{n}"])
    before = versions(write)

    first.kill()
    write("PATCH", LEASE, {"spec": {"leaseDurationSeconds": 1}}, "application/merge-patch+json")
    write.run_pod("web-1", "10.0.0.9", service="web")  # while there is no leader
    until(lambda: second.leading)
    until(lambda: addresses(write, "web") == ["10.0.0.1", "10.0.0.9"])
    until(lambda: in_endpoints(write, "web") == ["10.0.0.1", "10.0.0.9"])

    after = versions(write)
    changed = {uid for uid in after if after[uid] != before.get(uid)}
    assert before.keys() == after.keys(), "nothing was made anew"
    assert len(changed) == 2, "only what the new Pod belongs to was written"
    assert write("GET", LEASE)["spec"]["leaseTransitions"] == 1


def test_a_leader_told_to_end_hands_over_at_once(api: tuple[Seamark, Api], run: Run) -> None:
    server, write = api
    first = run(server, *PATIENT)
    second = run(server, *PATIENT)
    write.add_node()
    add_service(write, "web")
    write.run_pod("web-0", "10.0.0.1", service="web")
    until(lambda: addresses(write, "web") == ["10.0.0.1"])
    until(lambda: in_endpoints(write, "web") == ["10.0.0.1"])
    before = versions(write)

    assert first.stop() == 0
    until(lambda: second.leading)
    assert "leader_election_master_status" in second.ask("/metrics")[1]
    write.report("web-0", "10.0.0.1", ready=False)
    until(lambda: in_endpoints(write, "web") == [])
    assert before.keys() == versions(write).keys()
    assert second.stop() == 0
    assert not write("GET", LEASE)["spec"].get("holderIdentity")
