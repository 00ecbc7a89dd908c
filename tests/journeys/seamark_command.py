"""The command line as a person uses it: one process per command, a home directory of one's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Command:
    """``seamark …`` with a home directory, and a data directory in it, that nobody else uses."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("SEAMARK_") and key not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_STATE_HOME")
        }
        self.environment = {**kept, "HOME": str(home), "SEAMARK_DATA_DIR": str(self.data)}

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "seamark", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env={**self.environment, **environment},
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """What it prints; a failure is the test's failure."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"seamark {' '.join(arguments)}: {done.stderr or done.stdout}"
        return done.stdout

    @contextmanager
    def up(self, *arguments: str) -> Iterator[str]:
        """A Seamark in the background, on free ports; what it announced."""
        said = self("up", "--detach", "--api-port", "0", "--dns-port", "0", *arguments)
        try:
            yield said
        finally:
            self.run("down")
