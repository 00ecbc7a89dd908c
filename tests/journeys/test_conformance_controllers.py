"""The recorded behaviour of the real endpoint controllers, replayed against a whole Seamark over HTTPS."""

from __future__ import annotations

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from seamark_process import Seamark

import etcd_server

Start = Callable[..., Seamark]
CONFORMANCE = Path(__file__).parent.parent / "conformance"


@pytest.mark.parametrize("store", ["sqlite", "etcd"])
def test_the_controllers_do_what_the_real_ones_were_recorded_to_do(
    start: Start, store: str, request: pytest.FixtureRequest
) -> None:
    arguments = ["--nodes", "0", "--dns-port", "0"]
    if store == "etcd":
        etcd: etcd_server.EtcdCluster = request.getfixturevalue("etcd")
        arguments += ["--store", f"etcd://{','.join(etcd.addresses)}/{uuid.uuid4().hex}"]
    server = start(*arguments, verb="up")
    failed, said = replay(server)
    # The scenarios have waits that a busy machine can miss: one that fails is played once more, alone.
    for name in failed:
        again, differences = replay(server, "-k", name)
        assert not again, "\n".join([*said[:60], *differences[:60]]) + server.log[-3000:]


def replay(server: Seamark, *options: str) -> tuple[list[str], list[str]]:
    """The names of the scenarios that failed, and everything that was said about them."""
    command = [sys.executable, str(CONFORMANCE / "replay.py"), "--server", server.url]
    command += ["--token", server.token, "--ca", str(server.ca), "--jobs", "24", *options]
    command += [str(path) for path in sorted((CONFORMANCE / "controllers").glob("*.json"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    failed = [line.split()[1].rstrip(":") for line in said if line.startswith(("FAIL ", "ERROR "))]
    assert said[-1].endswith(f" passed, {len(failed)} failed"), done.stdout + done.stderr
    return failed, said
