"""The figures that say how fast and how large Seamark is, one below the other, in one run.

A request by 64 clients, a list of 5,000 Pods, an event to one of 1,000 watchers, idle memory, the start, 2,000 Pods
that become ready behind one Service, and a DNS query.  CPU time and memory are those of all processes of the server.
``--flags`` are given to every server, and ``--seamark`` names another program (an earlier version, say), so that
``--json`` and ``bench compare`` show two of them side by side.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
import uvloop
from bench import api
from bench.rig.load import Result, Server, connect, cpu_seconds, drive, environment, request, resident_megabytes
from bench.rig.load import seamark_server as running
from bench.rig.report import Report

PODS = "/api/v1/namespaces/default/pods"
SERVICES = "/api/v1/namespaces/default/services"
NODE = "bench-node"
STRATEGIC = "application/strategic-merge-patch+json"
AT_ONCE = 32  # questions to DNS before the next answers are awaited


def requests(server: Server, method: str, bodies: dict[str, Any], media: str = "application/json") -> list[bytes]:
    return [request(server, method, path, msgspec.json.encode(body), media) for path, body in bodies.items()]


async def behind_one_service(server: Server, count: int) -> float:
    """Seconds of CPU from the creation of so many Pods until all are ready in the slices of their Service."""
    labels = {"app": "bench"}
    spec = {"nodeName": NODE, "containers": [{"name": "c", "image": "example/app:1"}]}
    service = {"metadata": {"name": "bench"}, "spec": {"selector": labels, "ports": [{"port": 80}]}}
    await drive(server, requests(server, "POST", {"/api/v1/nodes": {"metadata": {"name": NODE}}}), 1)
    await drive(server, requests(server, "POST", {SERVICES: service}), 1)
    before = cpu_seconds(server.pids) or 0.0
    pods = [{"metadata": {"name": f"pod-{n}", "labels": labels}, "spec": spec} for n in range(count)]
    await drive(server, [request(server, "POST", PODS, msgspec.json.encode(each)) for each in pods], 32)
    reports = {}
    for number in range(count):
        conditions = [{"type": "Ready", "status": "True"}]
        address = f"10.9.{number >> 8}.{number & 255}"
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "conditions": conditions}
        reports[f"{PODS}/pod-{number}/status"] = {"status": status}
    await drive(server, requests(server, "PATCH", reports, STRATEGIC), 32)
    slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    asking, ready = await connect(server), 0
    while ready < count:
        await asyncio.sleep(0.1)
        _, found = await asking.ask(
            request(server, "GET", f"{slices}?labelSelector=kubernetes.io%2Fservice-name%3Dbench")
        )
        ready = found.count(b'"ready":true')
    return (cpu_seconds(server.pids) or 0.0) - before


async def ask_names(server: Server, data: Path, services: int, count: int) -> Result:
    """Ask for the addresses of Services, some at a time, over one socket."""
    new = [{"metadata": {"name": f"web-{n}"}, "spec": {"ports": [{"port": 80}]}} for n in range(services)]
    await drive(server, [request(server, "POST", SERVICES, msgspec.json.encode(each)) for each in new], 32)
    host, _, port = msgspec.json.decode((data / "running.json").read_bytes())["dns"][0].rpartition(":")

    def flood() -> Result:
        questions = []
        for number in range(services):
            labels = f"web-{number}.default.svc.cluster.local".encode().split(b".")
            name = b"".join(bytes([len(label)]) + label for label in labels)
            questions.append(struct.pack(">6H", number, 0x0100, 1, 0, 0, 0) + name + b"\0\0\1\0\1")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.connect((host, int(port)))
            before, began = cpu_seconds(server.pids) or 0.0, time.perf_counter()
            for first in range(0, count, AT_ONCE):
                for number in range(first, first + AT_ONCE):
                    udp.send(questions[number % services])
                for _ in range(AT_ONCE):
                    if udp.recv(4096)[3] & 15:
                        raise RuntimeError("a name of a Service is not answered")
            seconds = time.perf_counter() - began
        return Result(count / seconds, ((cpu_seconds(server.pids) or 0.0) - before) / count * 1e6, seconds)

    return await asyncio.to_thread(flood)


async def measure_requests(server: Server, options: argparse.Namespace, report: Report) -> None:
    await api.make_namespace(server)
    await api.measure(server, options, report)


def measure(folder: Path, options: argparse.Namespace, report: Report) -> None:
    env, program, flags = environment(f"{folder}/compiled"), shlex.split(options.seamark), shlex.split(options.flags)
    up = ("up", "--nodes", "0", "--dns-port", "0", *flags)
    with running(folder / "compiling", *up, env=env, program=program):
        pass
    with running(folder / "api", "apiserver", *flags, env=env, program=program) as server:
        uvloop.run(measure_requests(server, options, report))
    began = time.perf_counter()
    with running(folder / "up", *up, env=env, program=program) as server:
        report.seconds("start of up to ready", time.perf_counter() - began)
        report.memory("resident, up, idle", resident_megabytes(*server.pids))
        cpu = uvloop.run(behind_one_service(server, options.ready))
        report.seconds(f"{options.ready} Pods ready, CPU", cpu)
        asked = uvloop.run(ask_names(server, folder / "up", 1000, options.questions))
        report.show("DNS, queries", asked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seamark", default=f"{sys.executable} -m seamark", metavar="COMMAND", help="the program")
    parser.add_argument("--flags", default="", metavar="TEXT", help="further flags for every server: '--workers 2'")
    parser.add_argument("--json", metavar="FILE", help="keep the results, for `bench compare A.json B.json`")
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--watchers", type=int, default=1000)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--ready", type=int, default=2000, help="Pods that become ready behind one Service")
    parser.add_argument("--questions", type=int, default=64_000)
    options = parser.parse_args()
    report = Report("table", f"{options.seamark} {options.flags}".strip())
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), options, report)
    finally:
        if options.json:
            report.save(options.json)


if __name__ == "__main__":
    main()
