"""kubectl, with a kind that is added to a running server and removed again."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

from commands import Kubectl

from seamark.config import ApiSettings, Config
from seamark.daemon import Daemon
from widgets import WIDGETS, shape, widget, widget_kind


async def test_kubectl_knows_a_kind_while_it_is_served(tmp_path: Path) -> None:
    config = Config(data_dir=str(tmp_path / "data"), ephemeral=True, api=ApiSettings(port=0))
    async with Daemon(config, ["controllers"]).running() as daemon:
        kubectl = Kubectl(daemon.kubeconfig_path, tmp_path)

        async def run(*arguments: str, stdin: str = "") -> str:
            return await asyncio.to_thread(kubectl, *arguments, stdin=stdin)

        await daemon.api.add_kind(widget_kind())
        manifest = json.dumps(widget("a", size=3, parts=[{"name": "wheel", "count": 4}]))
        assert "widget.example.com/a created" in await run("apply", "-f", "-", stdin=manifest)
        bigger = manifest.replace('"size": 3', '"size": 4')
        assert "widget.example.com/a configured" in await run("apply", "-f", "-", stdin=bigger)
        for manager, part in (("one", "wheel"), ("two", "door")):
            built = json.dumps(widget("built", parts=[{"name": part}]))
            await run("apply", "--server-side", f"--field-manager={manager}", "-f", "-", stdin=built)
        parts = await run("get", "widget", "built", "-o", "jsonpath={.spec.parts[*].name}")
        assert parts == "wheel door"
        header, row = (await run("get", "wd", "a")).splitlines()
        assert (header.split(), row.split()[:2]) == (["NAME", "SIZE", "AGE"], ["a", "4"])
        assert "widget.example.com/a" in await run("get", "all", "-o", "name")
        assert "A Widget is what tests are made of." in await run("explain", "widgets")
        assert "count\t<integer>" in await run("explain", "widgets.spec.parts")
        assert "widgets" in await run("api-resources", "--api-group", "example.com", "-o", "name")
        refused = await asyncio.to_thread(kubectl.run, "apply", "-f", "-", stdin=json.dumps(widget("b", weight=1)))
        assert 'unknown field "spec.weight"' in refused.stderr

        await daemon.api.add_kind(widget_kind(shape({"weight": "int32 keep"})))
        assert "weight\t<integer>" in await run("explain", "widgets.spec")
        assert "widget.example.com/b created" in await run("apply", "-f", "-", stdin=json.dumps(widget("b", weight=1)))

        await daemon.api.remove_kind(WIDGETS)
        gone = await asyncio.to_thread(kubectl.run, "get", "widgets")  # it keeps what discovery told it
        assert "the server could not find the requested resource" in gone.stderr
        shutil.rmtree(tmp_path / ".kube")
        gone = await asyncio.to_thread(kubectl.run, "get", "widgets")
        assert "the server doesn't have a resource type" in gone.stderr
