"""The recordings of a real Kubernetes, played against a running Seamark by the tools beside them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from seamark_process import Seamark

from conformance_files import CONFORMANCE, playable

# Options that leave out the scenarios with hundreds of Pods behind one Service.  These cost as much as all others, and
# show what the controllers decide, which neither a store nor a process changes: one journey has them.
LARGE = ("--skip=over-capacity", "--skip=250-pods-then-trim")


def replay(server: Seamark, tool: str, recordings: str, *options: str, only: Sequence[str] = ("*",)) -> int:
    """How many cases passed; a single one that did not is the test's failure.  ``only`` names some of the files."""
    command = [sys.executable, str(CONFORMANCE / tool), "--server", server.url]
    command += ["--token", server.token, "--ca", str(server.ca), *options]
    with tempfile.TemporaryDirectory() as folder:
        files = [file for name in only for file in (CONFORMANCE / recordings).glob(f"{name}.json")]
        command += playable(files, Path(folder))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    said = [line for line in done.stdout.splitlines() if not line.startswith("ok ")]
    assert done.returncode == 0, "\n".join([*said[:120], done.stderr, server.log[-3000:]])
    passed, _, rest = said[-1].partition(" ")
    assert rest == "passed, 0 failed", done.stdout
    return int(passed)
