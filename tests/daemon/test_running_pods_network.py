"""The network of Pods that run, in a whole daemon: host ports, and how Pods reach the API server."""

from __future__ import annotations

from pods_that_run import SERVER, log_of, pod, ready, until

from seamark.kinds.resource import CLUSTER_ROLE_BINDINGS, ENDPOINTS, NODES, PODS

ASK = """
import socket, sys
said = []
for address in sys.argv[1:]:
    with socket.create_connection((address, 54323), timeout=10) as connection:
        said.append(connection.makefile().read().strip())
print(*said)
"""

# Verifies the server by the authority that every Pod has, at its Service's name and at its endpoint's address.
VERIFY = """
import json, ssl, sys
from urllib.request import Request, urlopen
mounted = "/var/run/secrets/kubernetes.io/serviceaccount/"
trusting = ssl.create_default_context(cafile=mounted + "ca.crt")
authorization = {"Authorization": "Bearer " + open(mounted + "token").read(), "Accept": "*/*"}
def asked(url):
    return json.load(urlopen(Request(url, headers=authorization), context=trusting, timeout=20))
found = asked("https://kubernetes.default.svc.cluster.local/.well-known/openid-configuration")
print(len(asked(found["jwks_uri"])["keys"]), asked(f"https://{sys.argv[1]}/version")["major"])
"""


async def test_host_ports(daemon):
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


async def test_a_pod_verifies_the_api_server_and_its_tokens(daemon):
    cluster = daemon.api.cluster("apiserver")
    rights = {
        "metadata": {"name": "discovery-by-pods"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:service-account-issuer-discovery",
        },
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    }
    await cluster.create(CLUSTER_ROLE_BINDINGS, rights)
    subset = (await cluster.get(ENDPOINTS, "kubernetes", namespace="default"))["subsets"][0]
    verifying = pod("verifying", VERIFY, restartPolicy="Never")
    verifying["spec"]["containers"][0]["command"].append(f"{subset['addresses'][0]['ip']}:{subset['ports'][0]['port']}")
    await cluster.create(PODS, verifying, namespace="default")
    done = await until(daemon, "verifying", lambda found: found is not None and found.finished)
    assert log_of(daemon, done)[-1] == "1 1"


async def _addresses(cluster, node):
    found = await cluster.get(NODES, node)
    return [each["address"] for each in found["status"]["addresses"] if each["type"] == "InternalIP"]
