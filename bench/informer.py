"""The CPU cost of an informer over HTTP, and what label indexes save.

A child process serves Pods from prepared bytes; only the informer's own CPU time is measured.  The ratios compare with
decoding the same bytes into dicts by the standard library, and with scanning instead of indexing, in the same run.
Run: ``python -m bench.informer [--pods 20000] [--events 20000]``
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection as Pipe
from typing import Any

import aiohttp  # noqa: F401 - imported here, so that its import is not measured
import msgspec

from seamark.access.credentials import Fixed, Identity
from seamark.access.informer import Informer
from seamark.access.kubeconfig import Connection
from seamark.access.labels import ObjectsByLabels, SelectorsByLabels
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import PODS


class Metadata(msgspec.Struct, frozen=True, gc=False):
    name: str
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    resourceVersion: str = ""  # noqa: N815 - the wire's name


class Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")


class Pod(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata
    status: Status = Status()


def pod(number: int, version: int) -> dict[str, Any]:
    """A typical Pod of a Deployment, about 2.5 KB."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": f"web-{number}",
            "namespace": f"team-{number % 20}",
            "uid": f"{number:032x}",
            "resourceVersion": str(version),
            "labels": {"app": f"app-{number % 500}", "tier": f"tier-{number % 7}", "env": "prod"},
            "annotations": {f"example.com/note-{i}": "x" * 40 for i in range(10)},
            "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:{i}": {} for i in range(60)}}],
        },
        "spec": {"containers": [{"name": f"c{i}", "image": "example/app:1", "args": ["-v"] * 10} for i in range(4)]},
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{number // 250 % 250}.{number % 250}",
            "conditions": [{"type": t, "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"} for t in "ABCD"],
        },
    }


def serve(pipe: Pipe, pods: int, events: int) -> None:
    """The child process: serves one list in pages, and a watch that sends all its events as fast as they are read."""
    encoded = [json.dumps(pod(number, number + 1), separators=(",", ":")).encode() for number in range(pods)]
    listener = socket.create_server(("127.0.0.1", 0))
    pipe.send(listener.getsockname()[1])
    while True:
        connection, _ = listener.accept()
        while head := connection.recv(65536):
            target = head.split()[1].decode()
            if "watch=" in target:
                connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                pipe.recv()
                for lines in changes(pods, events):
                    connection.sendall(f"{len(lines):x}\r\n".encode() + lines + b"\r\n")
            else:
                connection.sendall(page(encoded, target))


def changes(pods: int, events: int) -> Iterator[bytes]:
    for start in range(0, events, 50):
        yield b"".join(
            json.dumps({"type": "MODIFIED", "object": pod(number % pods, pods + number + 1)}).encode() + b"\n"
            for number in range(start, min(events, start + 50))
        )


def page(encoded: list[bytes], target: str) -> bytes:
    start = int(target.rpartition("continue=")[2].partition("&")[0]) if "continue=" in target else 0
    end = min(len(encoded), start + 500)
    more = f',"continue":"{end}"' if end < len(encoded) else ""
    metadata = f'{{"metadata":{{"resourceVersion":"{len(encoded)}"{more}}},"items":['.encode()
    body = metadata + b",".join(encoded[start:end]) + b"]}"
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def follow(url: str, pipe: Pipe, pods: int, events: int) -> tuple[float, float]:
    """CPU seconds for the list and for the watch events."""
    async with RemoteCluster(Connection(url, Fixed(Identity()))) as cluster:
        informer = Informer(cluster, PODS, as_=Pod)
        informer.index("ip", lambda pod: (pod.status.pod_ip,))
        began = time.process_time()
        task = asyncio.create_task(informer.run())
        await informer.synced.wait()
        listed = time.process_time() - began
        assert len(informer) == pods
        reached = asyncio.Event()
        last = str(pods + events)
        informer.on_change(
            lambda key, old, new: reached.set() if new and new.metadata.resourceVersion == last else None
        )
        began = time.process_time()
        pipe.send("go")
        await reached.wait()
        followed = time.process_time() - began
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return listed, followed


def each(function: Callable[[], object], times: int) -> float:
    """CPU microseconds per call."""
    began = time.process_time()
    for _ in range(times):
        function()
    return (time.process_time() - began) / times * 1e6


def labels(pods: int) -> None:
    objects: ObjectsByLabels[str] = ObjectsByLabels()
    selectors: SelectorsByLabels[str] = SelectorsByLabels()
    by_name = {f"pod-{i}": {"app": f"app-{i % 5000}", "tier": f"tier-{i % 15}", "env": "prod"} for i in range(pods)}
    services = {f"svc-{i}": {"env": "prod", "app": f"app-{i}"} for i in range(5000)}
    for name, pairs in by_name.items():
        objects.put("default", name, pairs)
    for name, selector in services.items():
        selectors.put("default", name, selector)
    one = by_name["pod-77"].items()
    for what, selector in (("narrow", {"env": "prod", "app": "app-7"}), ("broad", {"env": "prod", "tier": "tier-3"})):
        wanted = selector.items()
        scan = each(lambda wanted=wanted: [n for n, has in by_name.items() if wanted <= has.items()], 5)  # type: ignore[misc]
        index = each(lambda selector=selector: objects.select("default", selector), 200)  # type: ignore[misc]
        print(f"pods of a {what} selector: index {index:9.1f} us, scan {scan:9.1f} us, {scan / index:8.0f} times less")
    scan = each(lambda: [name for name, selector in services.items() if selector.items() <= one], 20)
    index = each(lambda: selectors.matching("default", by_name["pod-77"]), 2000)
    print(f"services of one pod:       index {index:9.1f} us, scan {scan:9.1f} us, {scan / index:8.0f} times less")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=20_000)
    arguments = parser.parse_args()
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("spawn").Process(
        target=serve, args=(theirs, arguments.pods, arguments.events), daemon=True
    )
    child.start()
    try:
        url = f"http://127.0.0.1:{ours.recv()}"
        listed, followed = asyncio.run(follow(url, ours, arguments.pods, arguments.events))
    finally:
        child.terminate()
        child.join()
    sample = json.dumps({"type": "MODIFIED", "object": pod(1, 1)}).encode()
    bare = each(lambda: json.loads(sample), 2000)
    for what, cost in (
        ("listed object", listed / arguments.pods * 1e6),
        ("watched change", followed / arguments.events * 1e6),
    ):
        print(f"{what:15} of {len(sample)} bytes: {cost:6.1f} us of CPU, {cost / bare:5.2f} times json.loads alone")
    labels(50_000)


if __name__ == "__main__":
    main()
