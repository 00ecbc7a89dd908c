"""Pods that run: what a Pod costs beyond its process, and whether a Service slows its traffic.

``start``: Pods of one process each, created together until all are Ready, beside as many processes that are started by
``unshare --user --net --pid --fork`` by hand.  ``memory``: the helper and the daemon before and after, per Pod.
``traffic``: requests from one Pod to another, by the other's address and through a ClusterIP, request by request in
turns so that other load on the machine meets both alike; each on a connection of its own, and all on one that is kept.
The kernel does it all, so they should be alike.  The two ways lead to different ports of the server: to the same one, a
connection through the ClusterIP could meet the remembered one of a direct connection, and would have to change ports.

Run: ``python -m bench.pods [--pods 200] [--requests 3000]``
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from seamark.access.cluster import Cluster
from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.errors import Object
from seamark.kinds.resource import PODS, SERVICES
from seamark.kinds.wellknown import THIS_MACHINE
from seamark.rules.objects.pod import Pod

PYTHON = ["/usr/bin/env", "python3", "-c"]
SERVER = """
import socket, threading
def serve(port):
    listening = socket.create_server(("", port), backlog=512)
    while True:
        client, _ = listening.accept()
        with client:
            while client.recv(100):
                client.sendall(b"x")
for port in (8080, 8081):
    threading.Thread(target=serve, args=[port]).start()
"""
CLIENT = """
import socket, sys, time
direct, service, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
places = {"direct": (direct, 8081), "service": (service, 80)}
def ask(made):
    made.sendall(b"x")
    assert made.recv(1)
def on_a_new_one(name):
    with socket.create_connection(places[name]) as made:
        ask(made)
def on_a_kept_one(name):
    ask(kept[name])
for name in places:
    on_a_new_one(name)
kept = {}
for how, action in (("new", on_a_new_one), ("kept", on_a_kept_one)):
    if how == "kept":  # only now, because the server has one client at a time on each port
        kept = {name: socket.create_connection(place) for name, place in places.items()}
    for _ in range(5):
        took = dict.fromkeys(places, 0.0)
        for _ in range(count):
            for name in places:
                began = time.perf_counter()
                action(name)
                took[name] += time.perf_counter() - began
        for name in places:
            print(f"{how}-{name}", count / took[name], flush=True)
"""


@asynccontextmanager
async def running(folder: str) -> AsyncIterator[Daemon]:
    said = {
        "data_dir": folder,
        "ephemeral": True,
        "api": {"port": 0},
        "dns": {"listen": ["127.0.0.1:0"]},
        "userspace": {"enabled": False},
        "nodes": {"count": 1},
        "pods": {"mode": "processes"},
    }
    async with Daemon(settled(said), EVERYTHING).running() as daemon:
        yield daemon


def pod(name: str, command: list[str], **more: object) -> Object:
    container = {"name": "main", "image": THIS_MACHINE, "command": command}
    return {"metadata": {"name": name}, "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **more}}


async def until(cluster: Cluster, count: int, so: str) -> list[Pod]:
    """The Pods, once so many of them are ready, or finished."""
    listing = await cluster.list(PODS, namespace="default", as_=Pod)
    known = {each.metadata.name: each for each in listing.items}
    changes = cluster.watch(PODS, since=listing.version, namespace="default", as_=Pod)
    while sum(getattr(each, so) for each in known.values()) < count:
        change = await anext(changes)
        if change.type != "BOOKMARK" and change.object is not None:
            known[change.object.metadata.name] = change.object
    return list(known.values())


def memory(process: int) -> int:
    """Bytes that are the process's own."""
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Clean", "Private_Dirty")))


def by_hand(count: int) -> float | None:
    """Seconds to start so many processes in namespaces of their own, one after the other, with util-linux."""
    if shutil.which("unshare") is None:
        return None
    command = [
        "unshare",
        "--user",
        "--map-root-user",
        "--net",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "sh",
        "-c",
        "echo; exec sleep 1000",
    ]
    began = time.perf_counter()
    started = []
    for _ in range(count):
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.read(1)
        started.append(process)
    took = time.perf_counter() - began
    for process in started:
        process.kill()
        process.wait()
    return took


async def measure(options: argparse.Namespace) -> None:
    hand = by_hand(options.pods)
    with tempfile.TemporaryDirectory() as folder:
        async with running(folder) as daemon:
            cluster = daemon.api.cluster("apiserver")
            helper = next(iter(_children()), 0)
            before = memory(os.getpid()), memory(helper)
            began = time.perf_counter()
            for number in range(options.pods):
                await cluster.create(PODS, pod(f"idle-{number}", ["sleep", "1000"]), namespace="default")
            await until(cluster, options.pods, "ready")
            took = time.perf_counter() - began
            print(f"start      {options.pods} Pods Ready in {took:.2f} s: {took / options.pods * 1000:.1f} ms each")
            if hand is not None:
                each = hand / options.pods * 1000
                print(f"           unshare and exec by hand: {each:.1f} ms each ({took / hand:.1f} ×)")
            after = memory(os.getpid()), memory(helper)
            per_pod = [(new - old) / options.pods / 1024 for old, new in zip(before, after, strict=True)]
            print(f"memory     per Pod beyond its process: daemon {per_pod[0]:.0f} kB, helper {per_pod[1]:.0f} kB")
        async with running(folder) as daemon:
            await traffic(daemon, options)


async def traffic(daemon: Daemon, options: argparse.Namespace) -> None:
    cluster = daemon.api.cluster("apiserver")
    server = pod("server", [*PYTHON, SERVER], nodeName="node-1")
    server["metadata"]["labels"] = {"app": "server"}
    await cluster.create(PODS, server, namespace="default")
    ports = [{"port": 80, "targetPort": 8080}]
    made = await cluster.create(
        SERVICES,
        {"metadata": {"name": "server"}, "spec": {"selector": {"app": "server"}, "ports": ports}},
        namespace="default",
    )
    (ready,) = await until(cluster, 1, "ready")
    places = [ready.ips[0], made["spec"]["clusterIP"], str(options.requests)]
    await cluster.create(
        PODS, pod("client", [*PYTHON, CLIENT, *places], restartPolicy="OnFailure"), namespace="default"
    )
    done = [each for each in await until(cluster, 1, "finished") if each.metadata.name == "client"]
    log = daemon.data_dir / "pods/pods" / done[0].metadata.uid / "logs/main"
    rates: dict[str, list[float]] = {}
    for file in sorted(log.iterdir()):
        for line in file.read_text().splitlines():
            name, _, rate = line.split(" ", 3)[3].partition(" ")
            if name.startswith(("new-", "kept-")):
                rates.setdefault(name, []).append(float(rate))
    for how in ("new", "kept"):
        direct, service = (statistics.median(rates[f"{how}-{name}"]) for name in ("direct", "service"))
        shown = f"direct {direct:.0f}, ClusterIP {service:.0f} ({service / direct:.2f} ×)"
        print(f"traffic    requests/s on {how} connections: {shown}")


def _children() -> list[int]:
    """The helper of the machine: the child of our child."""
    found = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    return [int(each) for child in found for each in Path(f"/proc/{child}/task/{child}/children").read_text().split()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--requests", type=int, default=3000, help="in each of five rounds, each way")
    asyncio.run(measure(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
