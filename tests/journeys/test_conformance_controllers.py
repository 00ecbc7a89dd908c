"""The recorded behaviour of the real endpoint controllers, replayed against a whole Seamark over HTTPS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from seamark_process import Seamark

Start = Callable[..., Seamark]
CONFORMANCE = Path(__file__).parent.parent / "conformance"


def test_the_controllers_do_what_the_real_ones_were_recorded_to_do(start: Start) -> None:
    server = start("--ephemeral", "--nodes", "0", "--dns-port", "0", verb="up")
    command = [sys.executable, str(CONFORMANCE / "replay.py"), "--server", server.url]
    command += ["--token", server.token, "--ca", str(server.ca), "--jobs", "24"]
    command += [str(path) for path in sorted((CONFORMANCE / "controllers").glob("*.json"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wrong = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert done.returncode == 0, "\n".join([*wrong, done.stderr])
