"""``seamark backup``, ``restore`` and ``fsck``, as an operator uses them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from commands import Command

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: b}}"


@pytest.fixture
def seamark(tmp_path: Path) -> Command:
    return Command(tmp_path)


def names(seamark: Command) -> list[str]:
    listed = json.loads(seamark("get", "configmaps", "-o", "json"))["items"]
    return [each["metadata"]["name"] for each in listed if "data" in each and each["data"] == {"a": "b"}]


def test_a_cluster_goes_on_from_its_backup(seamark: Command, tmp_path: Path) -> None:
    backup, elsewhere = tmp_path / "monday.tar", tmp_path / "elsewhere"
    with seamark.up("--nodes", "0"):
        seamark("apply", "-f", "-", stdin=CONFIG_MAP % "kept")
        version = int(json.loads(seamark("get", "configmap", "kept", "-o", "json"))["metadata"]["resourceVersion"])
        assert "checked" in seamark("backup", str(backup))
        assert stat.S_IMODE(backup.stat().st_mode) == 0o600
        assert "sound" in seamark("fsck")
        seamark("apply", "-f", "-", stdin=CONFIG_MAP % "later")
        assert names(seamark) == ["kept", "later"]
        # Nothing that exists is written over.
        again = seamark.run("backup", str(backup))
        assert again.returncode == 1
        assert "exists already" in again.stderr
        refused = seamark.run("restore", str(backup))
        assert refused.returncode == 1
        assert "is running" in refused.stderr
    refused = seamark.run("restore", str(backup))
    assert "is not empty" in refused.stderr
    token = (seamark.data / "pki" / "admin.token").read_text()

    seamark("restore", str(backup), "--data-dir", str(elsewhere))
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".seamark")) == []
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o700
    assert stat.S_IMODE((elsewhere / "store.db").stat().st_mode) == 0o600
    assert (elsewhere / "pki" / "admin.token").read_text() == token
    seamark.environment = {**seamark.environment, "SEAMARK_DATA_DIR": str(elsewhere)}
    with seamark.up("--nodes", "0"):
        assert names(seamark) == ["kept"]
        seamark("apply", "-f", "-", stdin=CONFIG_MAP % "new")
        new = json.loads(seamark("get", "configmap", "new", "-o", "json"))
        assert int(new["metadata"]["resourceVersion"]) > version + 1000
    # A store that is not in use can be backed up and checked just as well.
    assert "checked" in seamark("backup", str(tmp_path / "tuesday.tar"))
    assert "sound" in seamark("fsck")


def test_damage_is_told_in_one_line(seamark: Command, tmp_path: Path) -> None:
    backup = tmp_path / "backup.tar"
    with seamark.up("--nodes", "0"):
        seamark("backup", str(backup))
    content = bytearray(backup.read_bytes())
    content[content.index(b"SQLite format 3") + 9000] ^= 0xFF
    damaged = tmp_path / "damaged.tar"
    damaged.write_bytes(content)
    cut = tmp_path / "cut.tar"
    cut.write_bytes(backup.read_bytes()[: backup.stat().st_size // 2])
    for file in (damaged, cut, tmp_path / "absent.tar", Path(os.devnull)):
        done = seamark.run("restore", str(file), "--data-dir", str(tmp_path / "new"))
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        assert str(file) in done.stderr
        assert not (tmp_path / "new").exists()

    with closing(sqlite3.connect(seamark.data / "store.db", isolation_level=None)) as store:
        store.execute("UPDATE log SET value = 'x' WHERE key = '/core/namespaces/default'")
    checked = seamark.run("fsck")
    assert checked.returncode == 1
    assert "/core/namespaces/default" in checked.stdout
    refused = seamark.run("backup", str(tmp_path / "bad.tar"))
    assert refused.returncode == 1
    assert "seamark fsck" in refused.stderr
    assert not (tmp_path / "bad.tar").exists()


def test_acknowledged_writes_that_are_missing_are_told_and_can_be_given_up(seamark: Command, tmp_path: Path) -> None:
    with seamark.up("--nodes", "0"):
        seamark("apply", "-f", "-", stdin=CONFIG_MAP % "lost")
        version = int(json.loads(seamark("get", "configmap", "lost", "-o", "json"))["metadata"]["resourceVersion"])
        pid = json.loads(seamark("status", "-o", "json"))["pid"]
        os.kill(pid, signal.SIGKILL)
    (seamark.data / "store.db-wal").unlink()

    refused = seamark.run("up", "--detach", "--api-port", "0", "--dns-port", "0")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1), refused.stderr
    assert "acknowledged" in refused.stderr
    assert "seamark fsck --accept-loss" in refused.stderr
    backup = seamark.run("backup", str(tmp_path / "without.tar"))
    assert (backup.returncode, backup.stderr.count("\n")) == (1, 1), backup.stderr
    assert not (tmp_path / "without.tar").exists()
    checked = seamark.run("fsck")
    assert (checked.returncode, checked.stdout.count("\n")) == (1, 1), checked.stdout
    assert "were acknowledged and are missing" in checked.stdout

    assert seamark("fsck", "--accept-loss").splitlines()[1].endswith(": sound")
    with seamark.up("--nodes", "0"):
        assert names(seamark) == []
        seamark("apply", "-f", "-", stdin=CONFIG_MAP % "new")
        new = json.loads(seamark("get", "configmap", "new", "-o", "json"))
        assert int(new["metadata"]["resourceVersion"]) > version + 1000
    assert "sound" in seamark("fsck")


@pytest.mark.parametrize(("store", "told"), [("etcd://127.0.0.1:2379", "etcdctl"), ("memory:", "in memory")])
def test_stores_without_a_file_are_refused(seamark: Command, tmp_path: Path, store: str, told: str) -> None:
    for words in (["backup", str(tmp_path / "file")], ["fsck"]):
        done = seamark.run(*words, "--store", store)
        assert done.returncode == 1
        assert told in done.stderr
    assert seamark.run("fsck").stderr.strip().endswith(f"there is no store at {seamark.data}/store.db")


def test_exported_manifests_make_the_same_elsewhere(seamark: Command, tmp_path: Path) -> None:
    manifests = """\
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c, image: example/web:1}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, nodePort: 30080}]}
"""
    with seamark.up():
        seamark("apply", "-f", "-", stdin=manifests)
        exported = seamark("export", "-A")
        assert exported == seamark("export", "-A")
        assert [line for line in exported.splitlines() if line.startswith("kind:")] == [
            "kind: Namespace",
            "kind: Service",
            "kind: Deployment",
        ]
    elsewhere = Command(tmp_path / "elsewhere")
    elsewhere.home.mkdir()
    with elsewhere.up():
        elsewhere("apply", "-f", "-", stdin=exported)
        assert elsewhere("export", "-A") == exported
        assert "30080" in elsewhere("get", "svc", "web", "-n", "shop")
