"""Probes of Pods that run: real requests from the node, real commands in the container."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import grpc
from pods_that_run import create, events, first, pod, until

from seamark.kinds.resource import EVENTS

SERVER = """
import http.server, os, pathlib, socketserver
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code = {"/redirect": 302, "/away": 302}.get(self.path, 200 if os.path.exists("/tmp/well") else 503)
        if self.path == "/header" and self.headers.get("X-Asked") != "yes": code = 400
        self.send_response(code)
        if self.path == "/redirect": self.send_header("Location", "/header")
        if self.path == "/away": self.send_header("Location", "http://elsewhere.example/")
        self.end_headers()
    def log_message(self, *_): pass
pathlib.Path("/tmp/well").touch()
class Server(socketserver.ThreadingMixIn, http.server.HTTPServer): address_family = 2
Server(("0.0.0.0", 8080), Answers).serve_forever()
"""
QUICK = {"periodSeconds": 1, "failureThreshold": 1}
PATIENT = {"periodSeconds": 1, "timeoutSeconds": 60}  # for probes that shall pass, however slow the machine is


def probed(name, script=SERVER, **probes):
    made = pod(name, script)
    made["spec"]["containers"][0] |= {"ports": [{"name": "web", "containerPort": 8080}], **probes}
    return made


async def test_readiness_by_http_and_by_a_command(daemon, tmp_path):
    """The liveness probe's command fails once the test says so, after the readiness probe passed."""
    cluster = daemon.api.cluster("apiserver")
    http = {"path": "/redirect", "port": "web", "httpHeaders": [{"name": "X-Asked", "value": "yes"}]}
    async with events(cluster, "Unhealthy") as messages:
        await create(daemon, probed("http", readinessProbe={"httpGet": http, **PATIENT}))
        await until(daemon, "http", lambda found: found is not None and found.ready)
        command = {"exec": {"command": ["/bin/sh", "-c", "test ! -e /told/go || { echo bad; exit 1; }"]}}
        liveness = {**command, **PATIENT, "failureThreshold": 1}
        made = probed(
            "exec", readinessProbe={"httpGet": {"path": "/", "port": 8080}, **PATIENT}, livenessProbe=liveness
        )
        made["spec"]["volumes"] = [{"name": "told", "hostPath": {"path": str(tmp_path)}}]
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "told", "mountPath": "/told"}]
        await create(daemon, made)
        await until(daemon, "exec", lambda found: found is not None and found.ready)
        (tmp_path / "go").touch()
        assert await first(messages, "Liveness") == "Liveness probe failed: bad\n"
    again = await until(daemon, "exec", lambda f: f is not None and f.status.container_statuses[0].restart_count)
    assert again.status.container_statuses[0].last_state.terminated.exit_code in (137, 143)


async def test_a_port_that_nothing_listens_on(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "Unhealthy") as messages, events(cluster, "Killing") as killings:
        probe = {"tcpSocket": {"port": 81}, **QUICK}
        await create(daemon, probed("tcp", startupProbe=probe))
        said = await first(messages, "Startup probe failed")
        assert said.startswith("Startup probe failed: dial tcp ")
        assert said.endswith(":81: connect: connection refused")
        assert await first(killings, "startup") == "Container main failed startup probe, will be restarted"
    async with events(cluster, "Unhealthy") as messages:
        await create(daemon, probed("http", readinessProbe={"httpGet": {"port": 81}, **QUICK}))
        said = await first(messages, "Get")
        assert said.startswith('Readiness probe failed: Get "http://')
    async with events(cluster, "ProbeWarning") as warnings:
        await create(daemon, probed("away", readinessProbe={"httpGet": {"port": 8080, "path": "/away"}, **PATIENT}))
        await until(daemon, "away", lambda found: found is not None and found.ready)
        assert "Probe terminated redirects" in await first(warnings, "")


async def test_grpc(daemon):
    cluster = daemon.api.cluster("apiserver")
    script = """
import sys; sys.path.append("/packages")
import concurrent.futures, grpc
from grpc import unary_unary_rpc_method_handler as method, method_handlers_generic_handler as service
def check(request, context):
    return bytes((8, 2 if request.endswith(b"ill") else 1))
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers((service("grpc.health.v1.Health", {"Check": method(check)}),))
server.add_insecure_port("0.0.0.0:5000")
server.start()
server.wait_for_termination()
"""

    def serving(name, **more):
        made = probed(name, script, readinessProbe={"grpc": {"port": 5000, **more}, **PATIENT})
        # The packages fit this Python, which python3 need not be.
        made["spec"]["containers"][0]["command"][:2] = [os.path.realpath(sys.executable)]
        # Mounted, because a Pod has a /tmp of its own, and the packages may be below the machine's.
        made["spec"]["volumes"] = [{"name": "packages", "hostPath": {"path": str(Path(grpc.__file__).parents[1])}}]
        made["spec"]["containers"][0]["volumeMounts"] = [{"name": "packages", "mountPath": "/packages"}]
        return made

    async with events(cluster, "Unhealthy") as messages:
        await create(daemon, serving("well"))
        await until(daemon, "well", lambda found: found is not None and found.ready)
        await create(daemon, serving("ill", service="ill"))
        said = await first(messages, "NOT_SERVING")
    assert said == 'Readiness probe failed: service unhealthy (responded with "NOT_SERVING")'


async def test_a_command_that_takes_too_long(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "Unhealthy") as messages:
        slow = {"exec": {"command": ["sleep", "1000"]}, **QUICK}
        await create(daemon, probed("slow", readinessProbe=slow))
        said = await first(messages, "timed out")
        assert said == 'Readiness probe failed: command timed out: "sleep 1000" timed out after 1s'
        none = {"exec": {"command": ["no-such-program"]}, **QUICK}
        await create(daemon, probed("none", readinessProbe=none))
        assert "errored" in await first(messages, "no-such-program")


async def test_events_of_a_start_and_of_a_crash(daemon):
    cluster = daemon.api.cluster("apiserver")
    async with events(cluster, "BackOff") as messages:
        await create(daemon, pod("crash", "raise SystemExit(1)"))
        assert (await first(messages, "crash")).startswith("Back-off restarting failed container main in pod crash_")
    told = {each["reason"]: each for each in (await cluster.list(EVENTS, namespace="default")).items}
    assert told["Created"]["message"] == "Container created"
    assert told["Pulled"]["message"].startswith('Container image "runs-here" already present on machine')
    assert told["Started"]["involvedObject"]["fieldPath"] == "spec.containers{main}"
