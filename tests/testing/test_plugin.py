"""The fixture other projects use."""

from __future__ import annotations

import json
import ssl
import subprocess
import sys
import threading
import urllib.request

import pytest

from seamark.testing import TestCluster


def get(cluster: TestCluster, path: str) -> dict[str, object]:
    asked = urllib.request.Request(cluster.url + path, headers={"Authorization": f"Bearer {cluster.token}"})
    with urllib.request.urlopen(asked, context=ssl.create_default_context(cafile=str(cluster.ca))) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


@pytest.fixture
def other() -> TestCluster:
    return TestCluster(parts=())


def test_a_cluster_for_this_test(seamark: TestCluster) -> None:
    assert get(seamark, "/api/v1/namespaces/default")["kind"] == "Namespace"
    assert seamark.kubeconfig.exists()
    assert seamark.dns[1] > 0


def test_clusters_know_nothing_of_each_other(seamark: TestCluster, other: TestCluster) -> None:
    with other:
        assert other.url != seamark.url
        folder = other.kubeconfig.parent
        uids = [get(each, "/api/v1/namespaces/default")["metadata"]["uid"] for each in (seamark, other)]  # type: ignore[index]
        assert uids[0] != uids[1]
    assert not folder.exists()


def test_many_one_after_the_other_leave_nothing_behind() -> None:
    before = set(threading.enumerate())
    for _ in range(5):
        with TestCluster(parts=()) as cluster:
            assert get(cluster, "/version")["major"] == "1"
    # The event loop and its pool of helper threads are shared by all clusters and stay.
    left = [thread.name for thread in set(threading.enumerate()) - before]
    assert not [name for name in left if not name.startswith(("seamark", "asyncio_"))]


def test_loading_the_plugin_does_not_load_a_server() -> None:
    loaded = "import seamark.testing.plugin, sys; print(*(name for name in sys.modules if name.startswith('seamark')))"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["seamark", "seamark.testing", "seamark.testing.plugin"]
