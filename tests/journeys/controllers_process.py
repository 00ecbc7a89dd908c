"""``seamark controllers`` as its users run it."""

from __future__ import annotations

import urllib.error
import urllib.request
from pathlib import Path

from seamark_process import Process


class ControllersProcess(Process):
    """One running ``seamark controllers``."""

    def __init__(self, kubeconfig: Path, *arguments: str, log: Path) -> None:
        place = ["--kubeconfig", str(kubeconfig), "--status", "127.0.0.1:0"]
        super().__init__("controllers", *place, *arguments, log=log)

    @property
    def status(self) -> str:
        """The address of its status pages."""
        return next(line.split()[1] for line in self.lines if line.startswith("status "))

    def ask(self, path: str) -> tuple[int, str]:
        """One page of its status."""
        try:
            with urllib.request.urlopen(self.status + path) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    @property
    def leading(self) -> bool:
        return self.ask("/ready") == (200, "leading\n")
