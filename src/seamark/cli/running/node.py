"""``seamark node list``, ``stop`` and ``start``: simulated nodes, and to switch them off and on."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING

from seamark.cli.clusters import refusal, tell_writes
from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, duration, verb_parser
from seamark.cli.terminal import Progress, columns

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.rules.objects.node import Node

EXAMPLES = """\
seamark node list                # which there are, whether they are on, how many Pods each has
seamark node stop node-2         # NotReady, and its Pods are no longer endpoints
seamark node start node-2
"""

DONE = {"stop": "stopped", "start": "started"}


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "node",
        "List simulated nodes, stop one as if it lost its power, or start it again and wait until the cluster knows.\n"
        "Real Nodes are refused.",
        examples=EXAMPLES,
    )
    made.add_argument("action", choices=("list", "stop", "start"), help="what to do")
    made.add_argument("name", metavar="NODE", nargs="?", help="its name, as `seamark node list` prints it")
    add_data_dir_option(made)
    made.add_argument("--kubeconfig", metavar="FILE", help="instead: any cluster with simulated nodes")
    made.add_argument("--context", metavar="CONTEXT", default="", help="the kubeconfig's context to use")
    add_switch(
        made, "--wait", default=True, help="until the node is as it should be (default true; --wait=false does not)"
    )
    made.add_argument("--timeout", metavar="DURATION", type=duration, default=60.0, help="give up waiting (default 60)")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if (options.action == "list") is bool(options.name):
        raise Failure(f"`node {options.action}` takes {'no name' if options.name else 'the name of a node'}", 2)

    from seamark.errors import ApiError
    from seamark.nodes.simulated.control import NotSimulated

    try:
        asyncio.run(_print_nodes(options) if options.action == "list" else _switch(options))
    except NotSimulated as error:
        raise Failure(str(error)) from error
    except ApiError as error:
        raise refusal(error) from error
    if options.action != "list":
        print(f"node/{options.name} {DONE[options.action]}")
    return 0


async def _print_nodes(options: argparse.Namespace) -> None:
    from collections import Counter

    from seamark.access.remote import RemoteCluster
    from seamark.kinds.resource import NODES, PODS
    from seamark.rules.objects.node import Node
    from seamark.rules.objects.pod import Pod
    from seamark.why.render import UNLIMITED, table

    async with RemoteCluster(_connection(options), agent="seamark") as cluster:
        nodes = [each for each in (await cluster.list(NODES, as_=Node)).items if each.simulated]
        pods = Counter(each.spec.node_name for each in (await cluster.list(PODS, as_=Pod)).items)
    if not nodes:
        print("no simulated nodes")
        return
    rows = [(each.metadata.name, _state(each), str(pods[each.metadata.name])) for each in nodes]
    print("\n".join(table(("NODE", "STATE", "PODS"), sorted(rows), columns(sys.stdout) or UNLIMITED)))


def _state(node: Node) -> str:
    if node.stopped:
        return "stopping" if node.ready else "stopped"
    return "running" if node.ready else "starting"


async def _switch(options: argparse.Namespace) -> None:
    from seamark.access.remote import RemoteCluster
    from seamark.nodes.simulated import control

    connection = _connection(options)
    if options.kubeconfig:
        tell_writes(connection, options)
    async with RemoteCluster(connection, agent="seamark") as cluster:
        await (control.stop if options.action == "stop" else control.start)(cluster, options.name)
        if not options.wait:
            return
        with Progress(f"waiting for {options.name} …"):
            try:
                async with asyncio.timeout(options.timeout):
                    await control.settled(cluster, options.name)
            except TimeoutError as error:
                done = DONE[options.action]
                raise Failure(f"node {options.name} has not {done} within {options.timeout:g} s") from error


def _connection(options: argparse.Namespace) -> Connection:
    """The Seamark of a data directory, or the cluster of ``--kubeconfig``; never the one that kubectl is set to."""
    from seamark.access.kubeconfig import load
    from seamark.access.kubeconfig_file import KubeconfigError

    path = options.kubeconfig
    if not path:
        directory = data_dir_of(options.data_dir)
        found = running_in(directory)
        if found is None or not found.ready:
            raise Failure(f"no Seamark runs in {directory}; start one with `seamark up`, or name a --kubeconfig")
        path = found.kubeconfig
    try:
        return load(path, context=options.context)
    except KubeconfigError as error:
        raise Failure(str(error)) from error
