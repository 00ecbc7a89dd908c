"""What real Kubernetes does with definitions and their instances, replayed against a server in this process."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from conformance_files import API, CONFORMANCE, playable
from seamark.config import ApiSettings, Config
from seamark.daemon import Daemon


@pytest.mark.parametrize("name", ["crd-definitions", "cr-objects", "cr-cel", "webhooks", "admission-policy"])
async def test_every_recorded_exchange_is_repeated(tmp_path: Path, name: str) -> None:
    config = Config(data_dir=str(tmp_path / "data"), ephemeral=True, profile="plain", api=ApiSettings(port=0))
    async with Daemon(config, ["controllers"]).running() as daemon:
        token = (daemon.data_dir / "pki" / "admin.token").read_text().strip()
        replay = await asyncio.create_subprocess_exec(
            sys.executable,
            str(CONFORMANCE / "replay_api.py"),
            *("--server", daemon.api.listener.url, "--token", token, "--ca", str(daemon.data_dir / "pki" / "ca.crt")),
            *("--jobs", "8", *playable([API / f"{name}.json"], tmp_path)),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await replay.communicate()
    said = [line for line in out.decode().splitlines() if not line.startswith("ok ")]
    assert replay.returncode == 0, "\n".join(said[:60])
    assert int(said[-1].partition(" ")[0]) >= 19
