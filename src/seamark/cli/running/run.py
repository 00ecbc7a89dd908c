"""``seamark run``: a program of this machine as a Deployment and a Service, in one line."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
from typing import TYPE_CHECKING, Any

from seamark.cli.clusters import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connection_of,
    presence_of,
    tell_writes,
    unanswered,
)
from seamark.cli.data_dir import data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, duration, verb_parser
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from seamark.access.cluster import Cluster
    from seamark.errors import Object
    from seamark.presence import Presence

EXAMPLES = """\
seamark run web --port 8080 -- python3 -m http.server 8080
seamark run web --replicas 3 --port 8080 --health / -- ./server --listen :8080
seamark run worker --env QUEUE=jobs -- ./worker        # no port: no Service
seamark delete deployment/web service/web              # the end of it
"""
ABOUT = f"""\
Run a program of this machine in the cluster that `seamark up --pods processes` runs: as a Deployment, and as a
Service if it has a port.  Each replica has a network and an address of its own, so all of them can listen on the
same port; the Service balances over those that are ready.  The same name again changes what is there.

{WHICH_CLUSTER}"""
MANAGER = "seamark-run"
NAME_LABEL = "app.kubernetes.io/name"
GRACE_SECONDS = 5


def parser() -> argparse.ArgumentParser:
    made = verb_parser("run", ABOUT, examples=EXAMPLES, environment=ENVIRONMENT)
    made.add_argument("name", metavar="NAME", help="of the Deployment and the Service")
    made.add_argument("command", metavar="COMMAND", nargs="+", help="the program and its arguments, after --")
    made.add_argument("--replicas", metavar="N", type=int, default=1, help="how many of it (default 1)")
    made.add_argument("--port", metavar="P", type=int, default=0, help="where it listens; $PORT tells it, too")
    made.add_argument("--health", metavar="PATH", default="", help="an HTTP path that answers when it is ready")
    made.add_argument("--env", metavar="NAME=VALUE", action="append", default=[], help="a variable; repeatable")
    add_namespace_options(made)
    add_switch(made, "--wait", default=True, help="until all replicas are ready (default true; --wait=false does not)")
    made.add_argument("--timeout", metavar="DURATION", type=duration, default=60.0, help="give up waiting (default 60)")
    add_cluster_options(made)
    made.add_argument("--data-dir", metavar="DIR", help="instead: the Seamark that runs in this data directory")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.health and not options.port:
        raise Failure("--health needs a --port to ask at")
    if options.data_dir:
        options.kubeconfig = _kubeconfig_in(data_dir_of(options.data_dir))

    from seamark.errors import ApiError

    try:
        asyncio.run(_run(options))
    except ApiError as error:
        raise unanswered(error, options) from error
    return 0


def _kubeconfig_in(directory: Path) -> str:
    found = running_in(directory)
    if found is None or not found.ready:
        raise Failure(f"no Seamark runs in {directory}; start one with `seamark up --pods processes`")
    return found.kubeconfig


async def _refuse_others(cluster: Cluster, server: str, found: Presence | None) -> None:
    """Programs of this machine run where Seamark runs Pods as processes, and nowhere else."""
    from seamark.kinds.resource import NODES
    from seamark.rules.objects.node import Node

    if found is not None and found.pods == "simulated":
        raise Failure(f"the Seamark at {server} only simulates Pods; start it with `seamark up --pods processes`")
    if found is None and not any(each.simulated for each in (await cluster.list(NODES, as_=Node)).items):
        raise Failure(
            f"{server} is not a cluster of `seamark up --pods processes`, and cannot run programs of this machine; "
            "name one by --data-dir, --kubeconfig or $KUBECONFIG"
        )


async def _run(options: argparse.Namespace) -> None:
    from seamark.access.remote import RemoteCluster
    from seamark.kinds.resource import DEPLOYMENTS, SERVICES

    connection = connection_of(options)
    found = presence_of(connection, options)
    options.namespace = options.namespace or connection.namespace
    async with RemoteCluster(connection, agent="seamark") as cluster:
        await _refuse_others(cluster, connection.server, found)
        tell_writes(connection, options)
        wanted = [(DEPLOYMENTS, deployment(options))]
        if options.port:
            wanted.append((SERVICES, service(options)))
        for resource, obj in wanted:
            await cluster.patch(
                resource,
                options.name,
                obj,
                namespace=options.namespace,
                type="apply",
                field_manager=MANAGER,
                force=True,
            )
        if options.wait:
            await _ready(cluster, options)
        print(f"deployment/{options.name} runs {shlex.join(options.command)} ({options.replicas} of it)")
        if options.port:
            made = await cluster.get(SERVICES, options.name, namespace=options.namespace)
            print(f"service/{options.name} leads to it: in the cluster http://{options.name}:{options.port}")
            node_port = made["spec"]["ports"][0].get("nodePort")
            if node_port and found is not None and found.node_ports:
                print(f"from this machine: http://{found.node_ports[0]}:{node_port}")


async def _ready(cluster: Cluster, options: argparse.Namespace) -> None:
    from seamark.kinds.resource import DEPLOYMENTS

    with Progress(f"waiting for {options.name} …"):
        try:
            async with asyncio.timeout(options.timeout):
                where = {"namespace": options.namespace, "fields": f"metadata.name={options.name}"}
                listing = await cluster.list(DEPLOYMENTS, **where)
                if any(is_ready(each) for each in listing.items):
                    return
                async for change in cluster.watch(DEPLOYMENTS, since=listing.version, **where):
                    if change.type != "BOOKMARK" and change.object is not None and is_ready(change.object):
                        return
        except TimeoutError as error:
            raise Failure(
                f"{options.name} is not ready after {options.timeout:g} s; `{_who_knows(options)}` says why"
            ) from error


def _who_knows(options: argparse.Namespace) -> str:
    """The command that tells what keeps it from being ready."""
    if options.port:
        return f"seamark why svc/{options.name} -n {options.namespace}"
    return f"kubectl describe pods -l {NAME_LABEL}={options.name} -n {options.namespace}"


def is_ready(found: Object) -> bool:
    status, wanted = found.get("status") or {}, found["spec"].get("replicas", 1)
    seen = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
    return bool(seen and status.get("updatedReplicas", 0) == status.get("availableReplicas", 0) == wanted)


# --- the objects -----------------------------------------------------------------------------------


def deployment(options: argparse.Namespace) -> Object:
    from seamark.kinds.wellknown import HOW_PODS_ARE, THIS_MACHINE

    labels = {NAME_LABEL: options.name}
    container: dict[str, Any] = {
        "name": "main",
        "image": THIS_MACHINE,
        "command": list(options.command),
        "workingDir": os.getcwd(),
        "env": [{"name": name, "value": value} for name, value in _variables(options).items()],
    }
    if options.port:
        container["ports"] = [{"name": "main", "containerPort": options.port}]
        ask = (
            {"httpGet": {"path": options.health, "port": "main"}} if options.health else {"tcpSocket": {"port": "main"}}
        )
        container["readinessProbe"] = {**ask, "periodSeconds": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": options.name, "labels": labels},
        "spec": {
            "replicas": options.replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels, "annotations": {HOW_PODS_ARE: "processes"}},
                "spec": {"terminationGracePeriodSeconds": GRACE_SECONDS, "containers": [container]},
            },
        },
    }


def _variables(options: argparse.Namespace) -> dict[str, str]:
    found = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}
    if options.port:
        found["PORT"] = str(options.port)
    for each in options.env:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise Failure(f"--env {each}: NAME=VALUE is needed")
        found[name] = value
    return found


def service(options: argparse.Namespace) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": options.name},
        "spec": {
            "type": "NodePort",
            "selector": {NAME_LABEL: options.name},
            "ports": [{"name": "main", "port": options.port, "targetPort": "main"}],
        },
    }
