"""``seamark proxy`` for a user without rights, in namespaces of that user's own; and what happens when the
API server or the proxy dies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def _namespaces() -> str:
    """Why such namespaces cannot be made here; empty if they can."""
    for program in ("unshare", "ip", "nft"):
        if shutil.which(program) is None:
            return f"there is no {program} on this machine"
    return subprocess.run(["unshare", "-Urn", "true"], capture_output=True, text=True, check=False).stderr.strip()


@pytest.mark.parametrize("mode", ["nftables", "userspace"])
def test_what_outlives_the_proxy_and_the_api_server(mode: str, tmp_path: Path) -> None:
    if reason := _namespaces():
        pytest.skip(f"user and network namespaces cannot be made here: {reason}")
    script = Path(__file__).with_name("faults_in_namespace.py")
    command = ["unshare", "-Urn", sys.executable, str(script), str(tmp_path), mode]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything held" in done.stdout
