"""A daemon whose Pods run, and what its tests ask of it."""

from __future__ import annotations

from contextlib import asynccontextmanager

from machines import allowed_machine

from seamark.config import settled
from seamark.daemon import EVERYTHING, Daemon
from seamark.kinds.resource import EVENTS, PODS
from seamark.rules.objects.pod import Pod

SERVER = """
import os, socket
listening = socket.create_server(("", 8080))
print("serving", flush=True)
while True:
    client, _ = listening.accept()
    client.sendall(os.environ["HOSTNAME"].encode() + b"\\n")
    client.close()
"""


@asynccontextmanager
async def running(tmp_path, *, mode="processes", processes=400, **nodes):
    await allowed_machine()
    said = {
        "data_dir": str(tmp_path),
        "ephemeral": True,
        "api": {"port": 0},
        "dns": {"listen": ["127.0.0.1:0"]},
        "userspace": {"enabled": False},
        "nodes": {"count": 2, **nodes},
        "pods": {"mode": mode, "images": ["runs-here=host", f"packed={tmp_path}/packed"], "processes": processes},
    }
    async with Daemon(settled(said), EVERYTHING).running() as made:
        yield made


@asynccontextmanager
async def watching(daemon, name):
    cluster = daemon.api.cluster("apiserver")
    listing = await cluster.list(PODS, namespace="default", fields=f"metadata.name={name}", as_=Pod)
    changes = cluster.watch(PODS, since=listing.version, namespace="default", fields=f"metadata.name={name}", as_=Pod)
    yield listing.items, changes


async def until(daemon, name, so, *, after=None):
    """The Pod, once it is so; None for a Pod that is gone.  ``after`` is awaited first, and nothing of it is missed."""
    async with watching(daemon, name) as (known, changes):
        if after is not None:
            await after
        for pod in known or [None]:
            if so(pod):
                return pod
        async for change in changes:
            if change.type != "BOOKMARK" and so(None if change.type == "DELETED" else change.object):
                return change.object
    raise AssertionError("the watch ended")


def ready(found):
    return found is not None and found.ready


def ended(found):
    return (
        found is not None
        and found.status.container_statuses
        and (
            found.status.container_statuses[0].state.terminated
            or found.status.container_statuses[0].last_state.terminated
        )
    )


async def create(daemon, made):
    await daemon.api.cluster("apiserver").create(PODS, made, namespace="default")


def pod(name, script, *, labels=None, **spec):
    container = {"name": "main", "image": "runs-here", "command": ["/usr/bin/env", "python3", "-c", script]}
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }


def container(made, **more):
    made["spec"]["containers"][0] |= more
    return made


def log_of(daemon, made):
    lines = (daemon.data_dir / "pods/pods" / made.metadata.uid / "logs/main/0.log").read_text().splitlines()
    return [line.split(" ", 3)[3] for line in lines]


@asynccontextmanager
async def events(cluster, reason):
    """Messages of Events with this reason, as they are written."""
    listing = await cluster.list(EVENTS, namespace="default")
    changes = cluster.watch(EVENTS, since=listing.version, namespace="default", fields=f"reason={reason}")

    async def messages():
        async for change in changes:
            if change.type in ("ADDED", "MODIFIED"):
                yield change.object["message"]

    yield messages()


async def first(messages, *words):
    async for message in messages:
        if all(word in message for word in words):
            return message
    raise AssertionError("the watch ended")
