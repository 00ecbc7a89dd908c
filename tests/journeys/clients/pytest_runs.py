"""Runs of pytest in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def run_pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "COV", "KUBE"))}
    # Clients write keys to files there, and may leave them.
    env["TMPDIR"] = str(folder)
    # Assertions as they are: pytest would compile all of Seamark anew to rewrite those of our plugin.
    command = [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", "--assert=plain", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
