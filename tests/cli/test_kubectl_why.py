"""``kubectl-why`` as a program of its own: one file, and only the client side in it is used."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

from seamark import cli

ROOT = Path(__file__).parents[2]
SERVER_SIDE = ("api", "store", "controllers", "nodes", "proxy", "daemon", "testing", "runtime", "config", "dns")
KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: c
  cluster:
    server: "http://127.0.0.1:1"
contexts:
- name: c
  context:
    cluster: c
    user: ""
current-context: c
"""


def test_only_the_client_side_is_imported(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)
    code = (
        "import sys; from seamark.cli import main;"
        f"print(main(['why', 'svc/web', '--kubeconfig', {str(tmp_path / 'kubeconfig')!r}]), *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *loaded = done.stdout.split()
    assert code == "2", done.stderr
    assert "cannot reach" in done.stderr
    assert not {"aiohttp", "asyncio", "yaml", "logging", "typing_extensions", "email", "http.client"}.intersection(
        loaded
    )
    assert not {f"seamark.{each}" for each in SERVER_SIDE}.intersection(loaded)
    assert not {"platform", "textwrap", "threading", "msgspec.inspect", "seamark.rules.isolation"}.intersection(loaded)
    assert not {"cryptography", "uvloop", "httptools", "dns", "jwt", "lightkube"}.intersection(loaded)


def test_the_program_looks_for_no_garbage_and_ends_with_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> NoReturn:
        raise SystemExit(code, gc.isenabled())

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(sys, "argv", ["kubectl-why", "svc/web", "--port", "80"])
    try:
        with pytest.raises(SystemExit) as ended:
            cli.kubectl_why()
    finally:
        gc.enable()
    assert ended.value.args == (2, False)


def test_the_file_unpacks_itself_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ROOT / "tools" / "kubectl_why" / "__main__.py"
    spec = importlib.util.spec_from_file_location("kubectl_why_start", source)
    assert spec is not None
    assert spec.loader is not None
    start = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = tmp_path / "kubectl-why"
    with (
        zipfile.ZipFile(archive, "w") as outer,
        outer.open(start.CONTENT, "w") as stored,
        zipfile.ZipFile(stored, "w") as content,
    ):
        content.writestr("seamark/__init__.py", "")
    target = Path(start.unpacked(str(archive)))
    assert (target / "seamark" / "__init__.py").exists()
    (target / "mark").touch()
    assert Path(start.unpacked(str(archive)), "mark").exists()
    assert list((tmp_path / "cache" / "kubectl-why").iterdir()) == [target]
