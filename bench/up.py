"""`seamark up` as a whole: Pods from creation to Ready, a rollout, and how far the slices are behind.

Beside it, in the same run, the floor: the same number of bare creates through the same API server.  `python -m bench
start` has the times to ready.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop
from bench._load import Server, cpu_seconds, drive, request, resident_megabytes, seamark_server
from bench.api import pod

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "example/web:1"}]},
}


class Watching:
    """The ready Pods of the Deployment and the ready addresses in its slices, as two watches see them."""

    def __init__(self) -> None:
        self.pods: dict[str, tuple[str, bool]] = {}  # name → address, ready and staying
        self.slices: dict[str, set[str]] = {}
        self.ready_since: dict[str, float] = {}
        self.lags: list[float] = []
        self.changed = asyncio.Event()

    def pod(self, type: str, obj: dict[str, Any]) -> None:
        name, status = obj["metadata"]["name"], obj.get("status", {})
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        ready = ready and "deletionTimestamp" not in obj["metadata"] and type != "DELETED"
        address = status.get("podIP", "")
        if ready and not self.pods.get(name, ("", False))[1]:
            self.ready_since[address] = time.perf_counter()
        if not ready:
            self.ready_since.pop(address, None)
        if type == "DELETED":
            self.pods.pop(name, None)
        else:
            self.pods[name] = (address, ready)
        self._check()

    def slice(self, type: str, obj: dict[str, Any]) -> None:
        name = obj["metadata"]["name"]
        if type == "DELETED":
            self.slices.pop(name, None)
        else:
            self.slices[name] = {
                address
                for endpoint in obj.get("endpoints") or ()
                if endpoint["conditions"].get("ready")
                for address in endpoint["addresses"]
            }
        self._check()

    def _check(self) -> None:
        now = time.perf_counter()
        listed = set().union(*self.slices.values()) if self.slices else set()
        for address in [a for a in self.ready_since if a in listed]:
            self.lags.append(now - self.ready_since.pop(address))
        self.changed.set()

    @property
    def ready(self) -> int:
        return sum(1 for _, ready in self.pods.values() if ready)

    @property
    def listed(self) -> int:
        return len(set().union(*self.slices.values())) if self.slices else 0

    async def until(self, done: Any) -> None:
        while not done(self):
            self.changed.clear()
            await self.changed.wait()


async def follow(session: aiohttp.ClientSession, path: str, tell: Any) -> None:
    async with session.get(path) as answer:
        async for line in answer.content:
            event = msgspec.json.decode(line)
            tell(event["type"], event["object"])


async def measure(server: Server, count: int) -> None:
    base = f"https://{server.host}:{server.port}"
    headers = {"Authorization": f"Bearer {server.token.strip()}"}
    timeout = aiohttp.ClientTimeout(total=None)
    idle = resident_megabytes(server.pid)
    bare = [
        request(
            server,
            "POST",
            "/api/v1/namespaces/default/pods",
            pod(f"bare{n}").replace(b'"containers"', b'"schedulerName":"none","containers"'),
        )
        for n in range(count)
    ]
    floor = await drive(server, bare, 64)
    print(f"  bare creates of {count} Pods       {floor.seconds:6.2f} s   {floor.cpu or 0:5.0f} µs CPU each")
    async with aiohttp.ClientSession(
        base, headers=headers, connector=aiohttp.TCPConnector(ssl=server.tls), timeout=timeout, read_bufsize=2**24
    ) as session:
        seen = Watching()
        labels = "app%3Dweb%2Cside%3Dours"
        pods, slices = "/api/v1/namespaces/default/pods", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
        tasks = [
            asyncio.create_task(follow(session, f"{pods}?watch=true&labelSelector={labels}", seen.pod)),
            asyncio.create_task(
                follow(session, f"{slices}?watch=true&labelSelector=kubernetes.io%2Fservice-name%3Dweb", seen.slice)
            ),
        ]
        template = {**TEMPLATE, "metadata": {"labels": {"app": "web", "side": "ours"}}}
        selector = {"app": "web", "side": "ours"}
        service = {"metadata": {"name": "web"}, "spec": {"selector": selector, "ports": [{"port": 80}]}}
        await session.post("/api/v1/namespaces/default/services", json=service)
        before, began = cpu_seconds(server.pid), time.perf_counter()
        deployment = {
            "metadata": {"name": "web"},
            "spec": {"replicas": count, "selector": {"matchLabels": selector}, "template": template},
        }
        await session.post("/apis/apps/v1/namespaces/default/deployments", json=deployment)
        await seen.until(lambda s: s.ready == count)
        ready = time.perf_counter() - began
        await seen.until(lambda s: s.listed == count)
        after = cpu_seconds(server.pid)
        print(
            f"  {count} Pods Ready                {ready:6.2f} s   {ready / floor.seconds:5.2f} × the bare creates"
            f"   {((after or 0) - (before or 0)) / count * 1e6:5.0f} µs CPU each, slices included"
        )
        seen.lags.clear()
        began = time.perf_counter()
        patch = {"spec": {"template": {"metadata": {"annotations": {"restarted": "yes"}}}}}
        await session.patch(
            "/apis/apps/v1/namespaces/default/deployments/web",
            data=msgspec.json.encode(patch),
            headers={"Content-Type": "application/merge-patch+json"},
        )
        # Every Pod is replaced: so many new ones have to be seen ready in the slices.
        await seen.until(lambda s: len(s.lags) >= count and s.listed == count and s.ready == count)
        lags = sorted(seen.lags)
        print(
            f"  rollout of {count} Pods            {time.perf_counter() - began:6.2f} s   ready Pod to slice:"
            f" p50 {lags[len(lags) // 2] * 1e3:.0f} ms, p99 {lags[int(len(lags) * 0.99)] * 1e3:.0f} ms,"
            f" longest {lags[-1] * 1e3:.0f} ms"
        )
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    print(f"  resident: idle {idle:.0f} MB, now {resident_megabytes(server.pid):.0f} MB with {2 * count} Pods")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=1000)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        seamark_server(Path(folder) / "data", "up", "--dns-port", "0") as server,
    ):
        uvloop.run(measure(server, options.pods))


if __name__ == "__main__":
    main()
