"""The recorded behaviour of a real Kubernetes API server, replayed against Seamark on either store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from seamark_process import Seamark

CONFORMANCE = Path(__file__).parents[1] / "conformance"


def replay(server: Seamark, *options: str) -> tuple[list[str], list[str]]:
    """The names of the cases that failed, and everything that was said about them."""
    recordings = sorted(map(str, (CONFORMANCE / "api").glob("*.json")))
    command = [sys.executable, str(CONFORMANCE / "replay_api.py"), "--server", server.url, "--token", server.token]
    command += ["--ca", str(server.ca), "--jobs", "16", *options, *recordings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    failed = [line.split()[1].rstrip(":") for line in said if line.startswith(("FAIL ", "ERROR "))]
    assert said[-1].endswith(f" passed, {len(failed)} failed"), done.stdout + done.stderr
    if not options:
        assert sum(map(int, said[-1].split()[0::2])) >= 397
    return failed, said


@pytest.mark.xdist_group("conformance")
def test_every_recorded_exchange_is_repeated(server: Seamark) -> None:
    failed, said = replay(server)
    # Timestamps have whole seconds and order some entries: a case in which a second begins in an unlucky moment, as
    # it did not when it was recorded, is played once more.
    for name in failed:
        again, differences = replay(server, "-k", name)
        assert not again, "\n".join([*said[:60], *differences[:60]]) + server.log[-3000:]
