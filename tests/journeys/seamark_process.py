"""Seamark as its users run it: a process of its own, real sockets, a data directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path


class Seamark:
    """One running ``seamark apiserver`` or ``seamark up``; started when made, ended by ``stop``."""

    def __init__(self, directory: Path, *arguments: str, verb: str = "apiserver") -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        self._log = (directory.parent / f"{directory.name}.log").open("ab")
        command = [sys.executable, "-m", "seamark", verb, "--data-dir", str(directory), "--api-port", "0", *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SEAMARK_")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, env=environment)
        self.lines = self._wait_until_ready()

    def _wait_until_ready(self) -> list[str]:
        assert self.process.stdout is not None
        lines: list[str] = []
        for raw in self.process.stdout:
            lines.append(raw.decode().rstrip())
            if lines[-1] == "ready":
                return lines
        self._log.flush()
        text = Path(self._log.name).read_text()
        raise AssertionError(f"seamark ended with {self.process.wait()} before it was ready:\n{text}")

    @property
    def url(self) -> str:
        return next(word for line in self.lines for word in line.split() if word.startswith(("https://", "http://")))

    @property
    def ca(self) -> Path:
        return self.directory / "pki" / "ca.crt"

    @property
    def token(self) -> str:
        return (self.directory / "pki" / "admin.token").read_text().strip()

    def kill(self) -> None:
        """As a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._close()

    def stop(self) -> int:
        """Politely; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        self._close()
        return code

    def _close(self) -> None:
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text()
