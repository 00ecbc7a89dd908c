"""Machines outside of the cluster, checked by real requests: slices, DNS and ``why`` follow their health."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import dns.message
import dns.query
import dns.rdatatype
import pytest
from api_calls import call
from commands import Command
from controllers_process import ControllersProcess
from seamark_process import Seamark, Start
from waiting import until

SLICES = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
EVENTS = "/api/v1/namespaces/default/events"
OFTEN = {
    "seamark.dev/probe-interval": "200ms",
    "seamark.dev/probe-timeout": "30s",
    "seamark.dev/probe-failure-threshold": "2",
}


@pytest.fixture
def address() -> str:
    """An address of this machine that an EndpointSlice may hold: loopback ones are refused."""
    with socket.socket(type=socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address but loopback")
        found: str = asking.getsockname()[0]
    if found.startswith("127."):
        pytest.skip("this machine has no address but loopback")
    return found


class Machine(ThreadingHTTPServer):
    """A web server that is well or not."""

    well = True


class _Answer(BaseHTTPRequestHandler):
    server: Machine

    def do_GET(self) -> None:
        self.send_response(200 if self.server.well and self.path == "/healthz" else 503)
        self.end_headers()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing on the terminal."""


@contextlib.contextmanager
def machine(address: str) -> Iterator[Machine]:
    with Machine((address, 0), _Answer) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        serving.start()
        try:
            yield server
        finally:
            server.shutdown()
            serving.join()


def post(server: Seamark, path: str, body: dict[str, Any]) -> None:
    status, answer = call(server, "POST", path, body)
    assert status == 201, answer


def add_service(server: Seamark, name: str) -> None:
    spec = {"clusterIP": "None", "ports": [{"name": "web", "port": 80}]}
    post(server, "/api/v1/namespaces/default/services", {"metadata": {"name": name}, "spec": spec})


def slice_of(service: str, address: str, port: int, probe: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{service}-hand",
            "labels": {"kubernetes.io/service-name": service},
            "annotations": {"seamark.dev/probe": probe, **OFTEN},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": [{"name": "web", "port": port}],
    }


def ready(server: Seamark, service: str) -> list[bool | None]:
    found = call(server, "GET", f"{SLICES}?labelSelector=kubernetes.io/service-name={service}")[1]["items"]
    return [endpoint["conditions"].get("ready") for each in found for endpoint in each["endpoints"] or ()]


def resolved(server: Seamark, name: str) -> list[str]:
    host, port = next(line for line in server.lines if line.startswith("DNS")).split()[1].rsplit(":", 1)
    question = dns.message.make_query(f"{name}.default.svc.cluster.local", dns.rdatatype.A)
    return [str(record) for rrset in dns.query.tcp(question, host, port=int(port)).answer for record in rrset]


def test_slices_and_names_follow_the_health_of_a_machine(start: Start, address: str, tmp_path: Path) -> None:
    up = start("--dns-port", "0", "--nodes", "0", verb="up")
    add_service(up, "web")
    with machine(address) as web:
        post(up, SLICES, slice_of("web", address, web.server_port, "http://:web/healthz"))
        until(lambda: ready(up, "web") == [True])
        until(lambda: resolved(up, "web") == [address])

        web.well = False
        until(lambda: ready(up, "web") == [False])
        until(lambda: resolved(up, "web") == [])
        until(lambda: "ProbeFailed" in [each["reason"] for each in call(up, "GET", EVENTS)[1]["items"]])
        explained = " ".join(Command(tmp_path).run("why", "svc/web", "--kubeconfig", str(up.kubeconfig)).stdout.split())
        assert f"GET http://{address}:{web.server_port}/healthz: 503 Service Unavailable" in explained

        web.well = True
        until(lambda: ready(up, "web") == [True])
        until(lambda: resolved(up, "web") == [address])
    until(lambda: ready(up, "web") == [False])


def test_endpoints_are_sorted_and_their_mirror_follows(start: Start, address: str) -> None:
    up = start("--dns-port", "0", "--nodes", "0", verb="up")
    add_service(up, "db")
    with machine(address) as db:
        subsets = [{"addresses": [{"ip": address}], "ports": [{"name": "web", "port": db.server_port}]}]
        annotations = {"seamark.dev/probe": "tcp", **OFTEN}
        endpoints = {"metadata": {"name": "db", "annotations": annotations}, "subsets": subsets}
        post(up, "/api/v1/namespaces/default/endpoints", endpoints)
        until(lambda: resolved(up, "db") == [address])
    until(lambda: ready(up, "db") == [False])
    until(lambda: resolved(up, "db") == [])
    [subset] = call(up, "GET", "/api/v1/namespaces/default/endpoints/db")[1]["subsets"]
    assert [each["ip"] for each in subset["notReadyAddresses"]] == [address]


def test_probes_alone_against_another_control_plane(start: Start, address: str, tmp_path: Path) -> None:
    server = start()
    add_service(server, "web")
    lease = ("--leader-elect-name", "seamark-probes")
    controllers = ControllersProcess(server.kubeconfig, "--controllers", "probes", *lease, log=tmp_path / "probes.log")
    try:
        with machine(address) as web:
            post(server, SLICES, slice_of("web", address, web.server_port, "http://:web/healthz"))
            until(lambda: ready(server, "web") == [True])
        until(lambda: ready(server, "web") == [False])
        watched = {line for line in controllers.ask("/metrics")[1].splitlines() if line.startswith("workqueue_depth")}
        assert {line.split('"')[1] for line in watched} == {"probes-endpoints", "probes-endpointslices"}
    finally:
        assert controllers.stop() == 0
