"""kubectl, with kinds that another API server serves: its own ones, and the metrics that ``kubectl top`` shows."""

from __future__ import annotations

import asyncio
from pathlib import Path

from commands import Kubectl
from tests.api.aggregation.keeping_server import FLUNDERS, NODE_METRICS, POD_METRICS, KeepingServer

from seamark.api.aggregation.front_proxy import FrontProxy
from seamark.config import ApiSettings, Config
from seamark.daemon import Daemon
from seamark.kinds.resource import NODES, PODS


async def test_kubectl_knows_the_kinds_of_another_server(tmp_path: Path) -> None:
    config = Config(data_dir=str(tmp_path / "data"), ephemeral=True, profile="plain", api=ApiSettings(port=0))
    async with Daemon(config, ["controllers"]).running() as daemon:
        front_proxy = FrontProxy(daemon.data_dir / "pki")
        server = KeepingServer(front_proxy, tmp_path / "other", FLUNDERS, POD_METRICS, NODE_METRICS)
        kubectl = Kubectl(daemon.kubeconfig_path, tmp_path)

        async def run(*arguments: str, stdin: str = "") -> str:
            return await asyncio.to_thread(kubectl, *arguments, stdin=stdin)

        async with server.running():
            await server.register(daemon.api.cluster("kubectl"))
            for name in ("v1.wardle.example.com", "v1beta1.metrics.k8s.io"):
                await run("wait", "apiservice", name, "--for=condition=Available")
            await daemon.api.aggregation.settled()

            listed = await run("api-resources", "--api-group", "wardle.example.com")
            assert listed.splitlines()[1].split() == ["flunders", "fl", "wardle.example.com/v1", "true", "Flunder"]
            assert "A Flunder is kept by another server." in await run("explain", "flunders")
            assert "fins\t<integer>" in await run("explain", "flunders.spec")
            manifest = '{"apiVersion": "wardle.example.com/v1", "kind": "Flunder", "metadata": {"name": "nemo"}}'
            assert "flunder.wardle.example.com/nemo created" in await run(
                "create", "--validate=false", "-f", "-", stdin=manifest
            )
            assert (await run("get", "fl")).splitlines()[1].split()[0] == "nemo"
            assert "Kind:         Flunder" in await run("describe", "flunder", "nemo")
            assert server.requests[-1].headers["X-Remote-Group"] == "system:masters"

            usage = {"cpu": "250m", "memory": "64Mi"}
            when = {"timestamp": "2026-01-01T00:00:00Z", "window": "30s"}
            cluster = daemon.api.cluster("kubectl")
            capacity = {"capacity": {"cpu": "1", "memory": "1Gi"}, "allocatable": {"cpu": "1", "memory": "1Gi"}}
            await cluster.create(NODES, {"metadata": {"name": "n"}, "status": capacity})
            server.put(NODE_METRICS, "n", usage=usage, **when)
            server.put(POD_METRICS, "p", "default", containers=[{"name": "c", "usage": usage}], **when)
            pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
            await cluster.create(PODS, pod, namespace="default")
            assert (await run("top", "pods")).splitlines()[1].split() == ["p", "250m", "64Mi"]
            assert (await run("top", "nodes")).splitlines()[1].split() == ["n", "250m", "25%", "64Mi", "6%"]
            assert 'flunder.wardle.example.com "nemo" deleted' in await run("delete", "flunder", "nemo")
        assert not [key for key in server.objects if key[0] == FLUNDERS]
