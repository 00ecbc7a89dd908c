"""A process that may have too few files or too little memory says so before it begins."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LIMITED = """
import resource, sys
from seamark.cli import main
resource.setrlimit(getattr(resource, sys.argv[1]), (int(sys.argv[2]),) * 2)
sys.exit(main(sys.argv[3:]))
"""


def limited(what: str, most: int, *arguments: str) -> tuple[int, str]:
    """The exit code of a command, and what it said."""
    words = [sys.executable, "-c", LIMITED, what, str(most), *arguments]
    done = subprocess.run(words, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("verb", ["up", "apiserver", "controllers", "dns", "proxy"])
@pytest.mark.parametrize("files", [8, 20, 63])
def test_too_few_files(verb: str, files: int, tmp_path: Path) -> None:
    own = ("--data-dir", str(tmp_path / "data")) if verb in ("up", "apiserver") else ("--kubeconfig", "/nowhere")
    said = f"seamark: only {files} files may be open at once, and Seamark needs 64 or more: see `ulimit -n`\n"
    assert limited("RLIMIT_NOFILE", files, verb, *own) == (1, said)
    assert not list(tmp_path.iterdir())


def test_too_little_address_space(tmp_path: Path) -> None:
    said = "seamark: only 300 MiB of address space are allowed, and Seamark needs 512 or more: see `ulimit -v`\n"
    assert limited("RLIMIT_AS", 300 << 20, "up", "--data-dir", str(tmp_path / "data")) == (1, said)
