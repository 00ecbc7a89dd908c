"""``kubectl-why`` as a program of its own: one file, and only the client side in it is used."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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
        "import sys; from seamark.cli.asking.why import kubectl_plugin;"
        f"sys.argv = ['kubectl-why', 'svc/web', '--kubeconfig', {str(tmp_path / 'kubeconfig')!r}];"
        "print(kubectl_plugin(), *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    code, *loaded = done.stdout.split()
    assert code == "2", done.stderr
    assert "cannot reach" in done.stderr
    assert not {"aiohttp", "asyncio", "yaml", "logging", "typing_extensions", "email", "http.client"}.intersection(
        loaded
    )
    assert not {f"seamark.{each}" for each in SERVER_SIDE}.intersection(loaded)
    assert not {"cryptography", "uvloop", "httptools", "dns", "jwt", "lightkube"}.intersection(loaded)


def test_the_file_unpacks_itself_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = ROOT / "tools" / "kubectl_why" / "__main__.py"
    spec = importlib.util.spec_from_file_location("kubectl_why_start", source)
    assert spec is not None
    assert spec.loader is not None
    start = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(start)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    archive = tmp_path / "kubectl-why"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("seamark/__init__.py", "")
    target = start.unpacked(archive)
    assert (target / "seamark" / "__init__.py").exists()
    (target / "mark").touch()
    assert (start.unpacked(archive) / "mark").exists()
    assert list((tmp_path / "cache" / "kubectl-why").iterdir()) == [target]
