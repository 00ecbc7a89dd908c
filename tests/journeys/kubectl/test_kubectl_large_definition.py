"""A definition as large as the largest of real operators: made, explained, used, listed and deleted with kubectl."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from bench.rig.schemas import DEPLOYMENT, GROUP, definition, deployment, like
from commands import Kubectl

from seamark.config import ApiSettings, Config
from seamark.daemon import Daemon

NAME = f"works.{GROUP}"
COLUMNS = [{"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas"}]


def work(name: str, **spec: Any) -> str:
    made = deployment(name)
    made["spec"] |= spec
    return json.dumps({"apiVersion": f"{GROUP}/v1", "kind": "Work", **made})


async def test_a_definition_of_half_a_megabyte(tmp_path: Path) -> None:
    version = {"additionalPrinterColumns": COLUMNS, "subresources": {"status": {}}}
    text = json.dumps(definition("works", "Work", like(DEPLOYMENT, 500_000), **version))
    assert len(text) > 500_000
    config = Config(data_dir=str(tmp_path / "data"), ephemeral=True, api=ApiSettings(port=0))
    async with Daemon(config, ["controllers"]).running() as daemon:
        kubectl = Kubectl(daemon.kubeconfig_path, tmp_path)

        async def run(*arguments: str, stdin: str = "") -> str:
            return await asyncio.to_thread(kubectl, *arguments, stdin=stdin)

        # An annotation with the whole text, as client-side apply makes it, would be too long.
        refused = await asyncio.to_thread(kubectl.run, "apply", "-f", "-", stdin=text)
        assert "metadata.annotations: Too long: may not be more than 262144 bytes" in refused.stderr
        assert f"{NAME} created" in await run("create", "-f", "-", stdin=text)
        await run("wait", "--for=condition=Established", f"crd/{NAME}")
        assert f"{NAME} serverside-applied" in await run("apply", "--server-side", "-f", "-", stdin=text)

        containers = "works.spec.template.spec.containers"
        assert "imagePullPolicy\t<string>" in await run("explain", containers)
        assert "httpGet\t<Object>" in await run("explain", f"{containers}.readinessProbe")

        assert "work.bench.example.com/a created" in await run("apply", "-f", "-", stdin=work("a"))
        assert "work.bench.example.com/a configured" in await run("apply", "-f", "-", stdin=work("a", replicas=4))
        await run("apply", "--server-side", "-f", "-", stdin=work("b", replicas=5))
        rows = [line.split() for line in (await run("get", "works")).splitlines()]
        assert rows == [["NAME", "REPLICAS"], ["a", "4"], ["b", "5"]]
        wrong = await asyncio.to_thread(kubectl.run, "create", "-f", "-", stdin=work("c", replicas="many"))
        assert 'spec.replicas in body must be of type integer: "string"' in wrong.stderr
        odd = await asyncio.to_thread(kubectl.run, "create", "-f", "-", stdin=work("c", colour="red"))
        assert 'unknown field "spec.colour"' in odd.stderr

        assert f'"{NAME}" deleted' in await run("delete", "crd", NAME)
        gone = await asyncio.to_thread(kubectl.run, "get", "works", "a")
        assert gone.returncode != 0
