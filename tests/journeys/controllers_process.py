"""``seamark controllers`` as its users run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path


class ControllersProcess:
    """One running ``seamark controllers``; started when made, ended by ``stop``."""

    def __init__(self, kubeconfig: Path, *arguments: str, log: Path) -> None:
        command = [sys.executable, "-m", "seamark", "controllers", "--kubeconfig", str(kubeconfig)]
        command += ["--status", "127.0.0.1:0", *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SEAMARK_")}
        self._log = log.open("ab")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment)
        assert self.process.stdout is not None
        self.lines: list[str] = []
        for line in self.process.stdout:
            self.lines.append(line.rstrip())
            if self.lines[-1] == "ready":
                return
        raise AssertionError(f"seamark controllers ended with {self.process.wait()} before ready:\n{log.read_text()}")

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text()

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

    def kill(self) -> None:
        """As a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self._close()

    def stop(self) -> int:
        """Politely; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._close()

    def _close(self) -> int:
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code
