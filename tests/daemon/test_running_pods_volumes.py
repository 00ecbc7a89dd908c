"""Volumes of Pods that run, and what follows when their Pod or what they are made of changes."""

from __future__ import annotations

import asyncio

from pods_that_run import container, create, ended, events, first, log_of, pod, ready, until

from seamark.kinds.resource import CONFIGMAPS, PERSISTENT_VOLUME_CLAIMS, PODS

FOLLOWS = """
import pathlib, time
seen = None
while True:
    now = [pathlib.Path(name).read_text() for name in ("/etc/config/color", "/etc/about/app", "/etc/one/color")]
    if now != seen:
        print(*now, flush=True)
        seen = now
    if now[:2] == ["red", "new"]:
        try:
            open("/etc/config/color", "w")
        except OSError as error:
            print(error.errno)
        break
    time.sleep(0.02)
"""


async def test_content_follows_its_sources(daemon):
    """A ConfigMap and the Pod's own labels; a file mounted by itself stays as it was, as on every kubelet."""
    cluster = daemon.api.cluster("apiserver")
    await cluster.create(CONFIGMAPS, {"metadata": {"name": "colors"}, "data": {"color": "blue"}}, namespace="default")
    labels = {"items": [{"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}}]}
    volumes = [
        {"name": "config", "configMap": {"name": "colors"}},
        {"name": "about", "projected": {"sources": [{"downwardAPI": labels}]}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/etc/config"},
        {"name": "config", "mountPath": "/etc/one/color", "subPath": "color"},
        {"name": "about", "mountPath": "/etc/about"},
    ]
    made = pod("follows", FOLLOWS, labels={"app": "old"}, volumes=volumes, restartPolicy="Never")
    await create(daemon, container(made, volumeMounts=mounts))
    await until(daemon, "follows", ready)
    await cluster.patch(CONFIGMAPS, "colors", {"data": {"color": "red"}}, namespace="default")
    await cluster.patch(PODS, "follows", {"metadata": {"labels": {"app": "new"}}}, namespace="default")
    found = await until(daemon, "follows", ended)
    assert ended(found).exit_code == 0
    lines = log_of(daemon, found)
    assert lines[-2:] == ["red new blue", "30"]  # EROFS


async def test_a_path_below_a_volume_stays_in_it(daemon):
    cluster = daemon.api.cluster("apiserver")
    made = pod("escapes", "", volumes=[{"name": "data", "emptyDir": {}}])
    mount = {"name": "data", "mountPath": "/data", "subPathExpr": "$(WHERE)"}
    made = container(made, env=[{"name": "WHERE", "value": "../../../../.."}], volumeMounts=[mount])
    async with events(cluster, "Failed") as messages:
        await create(daemon, made)
        assert "must not contain '..'" in await first(messages, "SubPath")


async def test_a_claim_keeps_what_was_written_until_it_is_deleted(daemon):
    cluster = daemon.api.cluster("apiserver")
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    await cluster.create(PERSISTENT_VOLUME_CLAIMS, claim, namespace="default")
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    for name, script in (("writes", "open('/data/x', 'w').write('kept')"), ("reads", "print(open('/data/x').read())")):
        made = pod(name, script, volumes=[volume], restartPolicy="Never")
        await create(daemon, container(made, volumeMounts=[{"name": "data", "mountPath": "/data"}]))
        found = await until(daemon, name, lambda found: found is not None and found.finished)
        assert found.status.phase == "Succeeded"
    assert log_of(daemon, found) == ["kept"]
    for name in ("writes", "reads"):
        await cluster.delete(PODS, name, namespace="default")
        await until(daemon, name, lambda found: found is None)
    folder = daemon.data_dir / "pods/claims/default"
    assert len(list(folder.iterdir())) == 1
    await cluster.delete(PERSISTENT_VOLUME_CLAIMS, "data", namespace="default")
    while list(folder.iterdir()):
        await asyncio.sleep(0.02)


async def test_another_image_and_an_ephemeral_container(daemon):
    cluster = daemon.api.cluster("apiserver")
    made = pod("changes", "import time; time.sleep(1000)")
    await create(daemon, made)
    await until(daemon, "changes", ready)
    async with events(cluster, "Killing") as messages:
        patch = {"spec": {"containers": [{"name": "main", "image": "runs-here:2"}]}}
        await cluster.patch(PODS, "changes", patch, namespace="default", type="strategic")
        assert await first(messages, "") == "Container main definition changed, will be restarted"
    again = await until(daemon, "changes", lambda found: ready(found) and restarts(found))
    assert again.status.container_statuses[0].image == "runs-here:2"
    extra = {"name": "debug", "image": "runs-here", "command": ["/bin/sh", "-c", "exit 4"]}
    patch = {"spec": {"ephemeralContainers": [extra]}}
    await cluster.patch(PODS, "changes", patch, namespace="default", subresource="ephemeralcontainers")
    found = await until(daemon, "changes", debugged)
    assert found.status.ephemeral_container_statuses[0].state.terminated.exit_code == 4


def restarts(found):
    return found.status.container_statuses[0].restart_count


def debugged(found):
    return any(each.state.terminated is not None for each in found.status.ephemeral_container_statuses)
