"""Command lines as a person uses them: ``seamark`` and kubectl, one process per command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy
from pathlib import Path
from typing import Any

import pytest


class Program:
    """A program, and the environment that it runs in."""

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self.words = words
        self.environment = environment

    def run(self, *arguments: str, stdin: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self.words, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            env={**self.environment, **environment},
            check=False,
        )

    def __call__(self, *arguments: str, stdin: str = "", **environment: str) -> str:
        """What it prints; a failure is the test's failure."""
        done = self.run(*arguments, stdin=stdin, **environment)
        assert done.returncode == 0, f"{done.args}: {done.stderr or done.stdout}"
        return done.stdout

    def beside(self, *arguments: str, **options: Any) -> AbstractContextManager[subprocess.Popen[str]]:
        """It runs inside the block, and prints to where ``options`` say."""
        return running([*self.words, *arguments], env=self.environment, **options)


@contextmanager
def running(words: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed if it still runs at the end of the block, which waits for it otherwise.

    A test that fails inside the block would wait for ever.
    """
    with subprocess.Popen(words, text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()


SEAMARK = (sys.executable, "-m", "seamark")


class Command(Program):
    """``seamark …`` with a home directory, and a data directory in it, that nothing else uses."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data"
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith("SEAMARK_") and key not in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "XDG_STATE_HOME")
        }
        environment = {**kept, "HOME": str(home), "SEAMARK_DATA_DIR": str(self.data)}
        super().__init__(SEAMARK, environment)

    @contextmanager
    def up(self, *arguments: str) -> Iterator[str]:
        """A Seamark in the background, on free ports; what it announced."""
        said = self("up", "--detach", "--api-port", "0", "--dns-port", "0", *arguments)
        try:
            yield said
        finally:
            self.run("down")


class Kubectl(Program):
    """The real kubectl against one server; a test that makes one is skipped where there is no kubectl."""

    def __init__(self, kubeconfig: Path, home: Path) -> None:
        path = shutil.which("kubectl")
        if path is None:
            pytest.skip("there is no kubectl on this machine")
        environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "PATH": "/usr/bin:/bin:/usr/local/bin"}
        environment |= {"GOMAXPROCS": "1", "GOGC": "400"}  # a fourth less to compute: hundreds of commands run and end
        super().__init__([path], environment)

    def with_environment(self, **environment: str) -> Kubectl:
        """The same with more in its environment."""
        made = copy(self)
        made.environment = {**self.environment, **environment}
        return made

    def wait(self, *arguments: str) -> str:
        """``kubectl wait`` without its limit of 30 seconds."""
        return self("wait", *arguments, "--timeout=-1s")
