"""``seamark why`` against a running Seamark: the catalogue's set-ups made real, and the proposed fixes carried out."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from seamark_process import Seamark

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.kinds.resource import ENDPOINT_SLICES, NAMESPACES, NODES, PODS
from seamark.why.look import look_at_service
from seamark.why.report import Report
from seamark.why.text import width

TESTS = Path(__file__).parents[1]
sys.path.append(str(TESTS / "why"))

import catalogue_cases  # noqa: E402  # it lives beside the tests of `why`

CASES = [path for path in catalogue_cases.everything() if catalogue_cases.load(path).on_a_server]
LARGE = ("endpoints-over-capacity", "endpoints-too-many")  # shown in memory; a thousand Pods take their time


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seamark]:
    running = Seamark(
        tmp_path_factory.mktemp("why") / "data", "--ephemeral", "--dns-port", "0", "--nodes", "0", verb="up"
    )
    yield running
    running.stop()


@pytest.fixture
async def cluster(server: Seamark) -> AsyncIterator[RemoteCluster]:
    async with RemoteCluster(load(server.kubeconfig, environ={})) as connected:
        yield connected


# --- making it real --------------------------------------------------------------------------------


class Stage:
    """One set-up on the server, in namespaces of its own; its nodes go when it ends."""

    def __init__(self, cluster: RemoteCluster, path: Path, number: int) -> None:
        self.cluster = cluster
        self.case = catalogue_cases.load(path, {"shop": f"shop-{number}", "back": f"back-{number}"})
        self._namespaces = (f"shop-{number}", f"back-{number}")

    async def __aenter__(self) -> Stage:
        for name in self._namespaces:
            await self.cluster.create(NAMESPACES, {"metadata": {"name": name}})
        for obj in self.case.objects:
            await self._make(obj)
        return self

    async def __aexit__(self, *_: object) -> None:
        for obj in self.case.objects:
            if obj["kind"] == "Node":
                await self.cluster.delete(NODES, obj["metadata"]["name"])
            if obj["kind"] == "Pod":
                # Nobody runs them, so nobody would ever report their end.
                meta = obj["metadata"]
                await self.cluster.delete(PODS, meta["name"], namespace=meta["namespace"], grace_seconds=0)
            if obj["metadata"].get("finalizers"):
                where = catalogue_cases.RESOURCES[obj["kind"]]
                meta = obj["metadata"]
                free = {"metadata": {"finalizers": None}}
                await self.cluster.patch(where, meta["name"], free, namespace=meta["namespace"])
        for name in self._namespaces:
            await self.cluster.delete(NAMESPACES, name)

    async def _make(self, obj: dict[str, Any]) -> None:
        resource = catalogue_cases.RESOURCES[obj["kind"]]
        meta = obj["metadata"]
        namespace = meta.get("namespace", "")
        await self.cluster.create(resource, obj, namespace=namespace)
        if "status" in obj and resource in (PODS, NODES):
            status = {"status": obj["status"]}
            await self.cluster.patch(resource, meta["name"], status, namespace=namespace, subresource="status")
        if "deletionTimestamp" in meta:
            await self.cluster.delete(resource, meta["name"], namespace=namespace)

    async def carry_on(self) -> None:
        """What happens once all was well."""
        for step in self.case.then:
            await self.until(lambda report: report.healthy)
            what = step["patch"]
            where = catalogue_cases.RESOURCES[what["kind"]]
            await self.cluster.patch(where, what["name"], what["patch"], namespace=what["namespace"])

    async def until(self, so: Any, key: tuple[str, str] | None = None) -> Report:
        """Look until it is as expected; what was seen last is what the test then complains about."""
        for _ in range(100):
            report = await look_at_service(self.cluster, key or self.case.key, sleep=_briefly)
            if so(report):
                return report
            await asyncio.sleep(0.1)
        return report

    async def addresses(self, namespace: str, name: str) -> tuple[set[str], set[int]]:
        """What the server's EndpointSlices list as ready for a Service, and on which ports."""
        listing = await self.cluster.list(
            ENDPOINT_SLICES, namespace=namespace, labels=f"kubernetes.io/service-name={name}"
        )
        ready = {
            address
            for each in listing.items
            for endpoint in each["endpoints"] or ()
            if endpoint.get("conditions", {}).get("ready", True)
            for address in endpoint["addresses"]
        }
        return ready, {port["port"] for each in listing.items if each["endpoints"] for port in each["ports"] or ()}


async def _briefly(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.2))


def numbered(paths: list[Path]) -> list[Any]:
    return [pytest.param(path, number, id=path.stem) for number, path in enumerate(paths) if path.stem not in LARGE]


@pytest.mark.parametrize(("path", "number"), numbered(CASES))
async def test_the_cause_and_the_fix_on_a_running_server(
    cluster: RemoteCluster, server: Seamark, path: Path, number: int
) -> None:
    async with Stage(cluster, path, number) as stage:
        case = stage.case
        await stage.carry_on()
        if case.healthy is not None:
            report = await stage.until(lambda report: report.healthy)
            assert [finding.cause for finding in report.findings] == []
            assert sorted(report.ready) == sorted(case.healthy["ready"] or [])
            return
        report = await stage.until(lambda report: report.cause is not None and report.cause.code.value == case.cause)
        assert report.cause is not None
        assert report.cause.code.value == case.cause, [each.cause for each in report.findings]
        if case.fix is not None:
            await _carry_out(stage, report, server)


async def _carry_out(stage: Stage, report: Report, server: Seamark) -> None:
    """Run the proposed commands as a person would, and see the endpoints appear."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl on this machine")
    assert report.cause is not None
    assert report.cause.fix.commands
    fix = stage.case.fix or {}
    for command in report.cause.fix.commands:
        text = command.text([f"--kubeconfig={server.kubeconfig}"])
        done = await asyncio.to_thread(
            subprocess.run, ["bash", "-c", text], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{text}: {done.stderr}"
    namespace, _, name = fix["service"].partition("/") if "service" in fix else (*stage.case.key[:1], "", "")
    key = (namespace, name or stage.case.key[1])
    code = report.cause.code
    after = await stage.until(
        lambda again: (
            all(each.code is not code for each in again.findings)
            and ("ready" not in fix or sorted(again.ready) == sorted(fix["ready"]))
        ),
        key,
    )
    assert all(each.code is not code for each in after.findings), after.findings
    if "ready" in fix:
        ready, ports = await stage.addresses(*key)
        assert sorted(ready) == sorted(fix["ready"])
        assert "port" not in fix or fix["port"] in ports
