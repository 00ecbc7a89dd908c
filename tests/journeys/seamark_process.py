"""Seamark as its users run it: a process of its own, real sockets, a data directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path


class Process:
    """One running ``seamark …``: started and ready when made, ended by ``stop`` or ``kill``."""

    def __init__(self, *arguments: str, log: Path) -> None:
        self._log = log.open("ab")
        command = [sys.executable, "-m", "seamark", *arguments]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("SEAMARK_")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment)
        self.lines = self._wait_until_ready()

    def _wait_until_ready(self) -> list[str]:
        """The lines it prints until then."""
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line.rstrip())
            if lines[-1] == "ready":
                return lines
        raise AssertionError(f"seamark ended with {self.process.wait()} before it was ready:\n{self.log}")

    @property
    def log(self) -> str:
        return Path(self._log.name).read_text()

    def kill(self) -> None:
        """As a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Politely; returns the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> int:
        self.process.send_signal(how)  # does nothing if the process has ended by itself
        code = self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._log.close()
        return code


class Seamark(Process):
    """One running ``seamark apiserver`` or ``seamark up``."""

    def __init__(self, directory: Path, *arguments: str, verb: str = "apiserver") -> None:
        self.directory = directory
        self.kubeconfig = directory / "kubeconfig"
        place = ["--data-dir", str(directory), "--api-port", "0"]
        super().__init__(verb, *place, *arguments, log=directory.parent / f"{directory.name}.log")

    @property
    def url(self) -> str:
        return next(word for line in self.lines for word in line.split() if word.startswith(("https://", "http://")))

    @property
    def ca(self) -> Path:
        return self.directory / "pki" / "ca.crt"

    @property
    def token(self) -> str:
        return (self.directory / "pki" / "admin.token").read_text().strip()


Start = Callable[..., Seamark]  # the fixture ``start``
