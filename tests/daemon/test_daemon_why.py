"""Events about Services that need attention, from a cluster that runs `why` among its controllers."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from seamark.access.kubeconfig import load
from seamark.access.remote import RemoteCluster
from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.kinds.resource import EVENTS, SERVICES
from seamark.why.telling import following

NAMES = ["endpoints", "endpointslices", "endpointslicemirroring", "why"]


async def test_events_say_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "PACE", 0.1)
    daemon = Daemon(
        settled(
            {
                "data_dir": str(tmp_path),
                "ephemeral": True,
                "dns_port": 0,
                "api": {"port": 0},
                "discovery": {"controllers": NAMES},
            }
        ),
        EVERYTHING,
    )
    async with daemon.running(), RemoteCluster(load(daemon.kubeconfig_path), agent="test") as cluster:
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        await cluster.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec}, namespace="default")
        about = "source=seamark-why,involvedObject.name=web"
        while not (events := (await cluster.list(EVENTS, fields=about)).items):
            await asyncio.sleep(0.05)
        assert [each["reason"] for each in events] == ["SelectorMatchesNothing"]
        assert daemon.supervisor.parts["why"].up
