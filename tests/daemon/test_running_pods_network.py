"""The network of Pods that run, in a whole daemon: host ports."""

from __future__ import annotations

from test_running_pods import SERVER, daemon, log_of, pod, until  # noqa: F401

from seamark.kinds.resource import NODES, PODS

ASK = """
import socket, sys
said = []
for address in sys.argv[1:]:
    with socket.create_connection((address, 54323), timeout=10) as connection:
        said.append(connection.makefile().read().strip())
print(*said)
"""


def ready(found):
    return found is not None and found.ready


async def test_host_ports(daemon):  # noqa: F811
    """The same host port at two addresses of a node leads to two Pods; a third one is refused."""
    cluster = daemon.api.cluster("apiserver")
    node = next(iter(await _addresses(cluster, "node-1")))

    def serving(name, address, **spec):
        made = pod(name, SERVER, nodeName="node-1", **spec)
        made["spec"]["containers"][0]["ports"] = [{"containerPort": 8080, "hostPort": 54323, "hostIP": address}]
        return made

    await cluster.create(PODS, serving("inside", "127.0.0.1"), namespace="default")
    await cluster.create(PODS, serving("outside", node), namespace="default")
    for name in ("inside", "outside"):
        await until(daemon, name, ready)
    await cluster.create(PODS, serving("late", node), namespace="default")
    late = await until(daemon, "late", lambda found: found is not None and found.finished)
    assert (late.status.phase, late.status.reason) == ("Failed", "NodePorts")

    places = {"same": ("node-1", True, ("127.0.0.1", node)), "other": ("node-2", False, (node,))}
    for name, (where, shares, addresses) in places.items():
        asking = pod(name, ASK, nodeName=where, hostNetwork=shares, restartPolicy="OnFailure")
        asking["spec"]["containers"][0]["command"] += addresses
        await cluster.create(PODS, asking, namespace="default")
    for name, expected in (("same", "inside outside"), ("other", "outside")):
        done = await until(daemon, name, lambda found: found is not None and found.finished)
        assert log_of(daemon, done)[-1] == expected


async def _addresses(cluster, node):
    found = await cluster.get(NODES, node)
    return [each["address"] for each in found["status"]["addresses"] if each["type"] == "InternalIP"]
