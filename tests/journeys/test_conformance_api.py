"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seamark_process import Seamark

CONFORMANCE = Path(__file__).parents[1] / "conformance"


@pytest.mark.xdist_group("conformance")
def test_every_recorded_exchange_is_repeated(server: Seamark) -> None:
    recordings = sorted(map(str, (CONFORMANCE / "api").glob("*.json")))
    command = [sys.executable, str(CONFORMANCE / "replay_api.py"), "--server", server.url, "--token", server.token]
    command += ["--ca", str(server.ca), "--jobs", "16", *recordings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    differences = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert done.returncode == 0, "\n".join(differences[:60]) + server.log[-3000:]
    assert differences[-1].endswith(" passed, 0 failed")
    assert int(differences[-1].split()[0]) >= 397
