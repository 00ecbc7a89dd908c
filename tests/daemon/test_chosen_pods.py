"""Nodes whose Pods run beside nodes whose Pods are simulated, and Pods that say it themselves."""

from __future__ import annotations

import pytest
from pods_that_run import SERVER, log_of, pod, ready, running, until

from seamark.config import settled
from seamark.daemon.requirements import StartError, machines_for
from seamark.kinds.resource import NODES, PODS, RUNTIME_CLASSES
from seamark.kinds.wellknown import HOW_PODS_ARE

ASK = """
import socket, sys
def ask(address):
    try:
        with socket.create_connection((address, 8080), timeout=10) as connection:
            return connection.makefile().read().strip()
    except OSError:
        return "nothing"
print(*map(ask, sys.argv[1:]))
"""
# Without a probe a Pod is ready as soon as its process runs, which may be before the process listens.
LISTENS = {"tcpSocket": {"port": 8080}, "periodSeconds": 1, "timeoutSeconds": 60}


async def test_pods_of_both_sorts(tmp_path):
    """As the Pod asks, else as its RuntimeClass does, else as its node is; running Pods are reached, others are not."""
    async with running(tmp_path, mode="chosen", run_on=["node-1"]) as daemon:
        cluster = daemon.api.cluster("apiserver")
        assert (await cluster.get(NODES, "node-1"))["metadata"]["labels"][HOW_PODS_ARE] == "processes"
        await cluster.create(RUNTIME_CLASSES, {"metadata": {"name": "real"}, "handler": "processes"})
        made = {
            "by-node": pod("by-node", SERVER, nodeName="node-1"),
            "by-class": pod("by-class", SERVER, nodeName="node-2", runtimeClassName="real"),
            "by-itself": pod("by-itself", SERVER, nodeName="node-2"),
            "not-here": pod("not-here", SERVER, nodeName="node-1"),
            "usual": pod("usual", SERVER, nodeName="node-2"),
        }
        made["by-itself"]["metadata"]["annotations"] = {HOW_PODS_ARE: "processes"}
        made["not-here"]["metadata"]["annotations"] = {HOW_PODS_ARE: "simulated"}
        for each in made.values():
            each["spec"]["containers"][0]["readinessProbe"] = LISTENS
            await cluster.create(PODS, each, namespace="default")
        addresses = [(await until(daemon, name, ready)).ips[0] for name in made]
        asking = pod("asks", ASK, nodeName="node-1", restartPolicy="Never")
        asking["spec"]["containers"][0]["command"] += addresses
        await cluster.create(PODS, asking, namespace="default")
        done = await until(daemon, "asks", lambda found: found is not None and found.finished)
        assert log_of(daemon, done) == ["by-node by-class by-itself nothing nothing"]

        await cluster.patch(NODES, "node-1", {"metadata": {"labels": {HOW_PODS_ARE: "simulated"}}})  # for later ones
        for name in made:
            await cluster.delete(PODS, name, namespace="default", grace_seconds=0)
            await until(daemon, name, lambda found: found is None)


async def test_nodes_to_run_on_need_a_machine():
    with pytest.raises(StartError, match="add --pods chosen"):
        await machines_for(settled({"nodes": {"run_on": ["node-1"]}}))
