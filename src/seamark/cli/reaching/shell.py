"""``seamark shell``: a shell in the cluster's network, where names resolve and cluster addresses lead somewhere."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING

from seamark.cli.clusters import (
    ENVIRONMENT,
    WHICH_CLUSTER,
    add_cluster_options,
    add_namespace_options,
    connection_of,
    unanswered,
)
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser
from seamark.cli.terminal import Progress

if TYPE_CHECKING:
    from seamark.access.remote import RemoteCluster
    from seamark.access.remote_command import RemoteCommand
    from seamark.errors import Object
    from seamark.rules.objects.pod import Pod

EXAMPLES = """\
seamark shell                              # this machine's shell, as a Pod of the cluster
seamark shell -n shop -c 'curl -s http://web'
seamark shell --in pod/web-0               # inside of a Pod that runs
"""
ABOUT = f"""\
A shell in the cluster's network: it sees Services by their names and reaches ClusterIPs and Pods.  It is a Pod of its
own for as long as it lasts, with this machine's file system; it needs `seamark up --pods processes`.

{WHICH_CLUSTER}"""
_CHUNK = 64 << 10


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "shell",
        ABOUT,
        examples=EXAMPLES,
        codes={0: "done; any other may be that of the shell or the command, which is passed on"},
        environment={**ENVIRONMENT, "SHELL": "the shell (default /bin/sh)"},
    )
    made.add_argument("-c", metavar="COMMAND", dest="command", default="", help="have the shell run this, and end")
    add_namespace_options(made)
    made.add_argument("--in", metavar="pod/NAME", dest="inside", default="", help="inside of this Pod")
    add_cluster_options(made)
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    from seamark.errors import ApiError

    try:
        return asyncio.run(_shell(options))
    except ApiError as error:
        raise unanswered(error, options) from error


async def _shell(options: argparse.Namespace) -> int:
    from seamark.access.remote import RemoteCluster
    from seamark.access.remote_command import RemoteCommand

    terminal = os.isatty(0) and os.isatty(1)
    command = [os.environ.get("SHELL", "/bin/sh")]
    if options.command:
        command += ["-c", options.command]
    connection = connection_of(options)
    options.namespace = options.namespace or connection.namespace
    async with RemoteCluster(connection, agent="seamark") as cluster, _place(cluster, options) as place:
        remote = await RemoteCommand.start(cluster.transport, options.namespace, *place, command, terminal=terminal)
        try:
            with _raw(terminal):
                await _converse(remote, terminal=terminal)
        finally:
            await remote.close()
    if remote.problem:
        raise Failure(remote.problem)
    return remote.code


@asynccontextmanager
async def _place(cluster: RemoteCluster, options: argparse.Namespace) -> AsyncIterator[tuple[str, str]]:
    """The Pod and container to be in: of the Pod that was named, or of one of our own that is removed afterwards."""
    from seamark.kinds.resource import PODS

    if options.inside:
        name = options.inside.removeprefix("pod/")
        yield name, main_container(await cluster.get(PODS, name, namespace=options.namespace))
        return
    making = asyncio.ensure_future(cluster.create(PODS, own_pod(), namespace=options.namespace))
    try:
        made = await asyncio.shield(making)
        name = made["metadata"]["name"]
        with Progress("waiting for a place in the cluster …"):
            await _running(cluster, options.namespace, name)
        yield name, main_container(made)
    finally:
        # After Ctrl-C its creation may be under way: only the answer says whether there is a Pod, and its name.
        await asyncio.wait({making})
        if making.exception() is None:
            name = making.result()["metadata"]["name"]
            await cluster.delete(PODS, name, namespace=options.namespace, grace_seconds=0)


def main_container(pod: Object) -> str:
    """The container that kubectl means if none is named: the one that the Pod's annotation names, or the first."""
    names: list[str] = [each["name"] for each in pod["spec"]["containers"]]
    said = (pod["metadata"].get("annotations") or {}).get("kubectl.kubernetes.io/default-container")
    return str(said) if said in names else names[0]


def own_pod() -> Object:
    from seamark.kinds.wellknown import HOW_PODS_ARE, THIS_MACHINE

    variables = {key: os.environ[key] for key in ("PATH", "HOME", "TERM", "LANG") if key in os.environ}
    container = {
        "name": "shell",
        "image": THIS_MACHINE,
        "command": ["sleep", "infinity"],
        "workingDir": os.getcwd(),
        "env": [{"name": name, "value": value} for name, value in variables.items()],
    }
    return {
        "metadata": {"generateName": "shell-", "annotations": {HOW_PODS_ARE: "processes"}},
        "spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "containers": [container]},
    }


async def _running(cluster: RemoteCluster, namespace: str, name: str) -> None:
    from seamark.kinds.resource import PODS
    from seamark.rules.objects.pod import Pod

    fields = f"metadata.name={name}"
    listing = await cluster.list(PODS, namespace=namespace, fields=fields, as_=Pod)
    for pod in listing.items:
        if _is_there(pod):
            return
    async for change in cluster.watch(PODS, since=listing.version, namespace=namespace, fields=fields, as_=Pod):
        if change.object is not None and change.type != "BOOKMARK" and _is_there(change.object):
            return


def _is_there(pod: Pod) -> bool:
    if pod.finished:
        raise Failure(
            f"pod/{pod.metadata.name} ended before it could be used; Pods run with `seamark up --pods processes`"
        )
    return pod.status.phase == "Running"


# --- the conversation ------------------------------------------------------------------------------


async def _converse(remote: RemoteCommand, *, terminal: bool) -> None:
    """Pass on what is typed, and write what comes, until the command ends."""
    loop = asyncio.get_running_loop()
    typing = asyncio.create_task(_type(remote))
    if terminal:
        await _resize(remote)
        loop.add_signal_handler(signal.SIGWINCH, lambda: asyncio.ensure_future(_resize(remote)))
    try:
        async for stream, data in remote.output():
            await asyncio.to_thread(_write, 2 if stream == 2 else 1, data)
    finally:
        typing.cancel()
        if terminal:
            loop.remove_signal_handler(signal.SIGWINCH)


async def _type(remote: RemoteCommand) -> None:
    loop = asyncio.get_running_loop()
    while True:
        ready: asyncio.Future[None] = loop.create_future()
        try:
            loop.add_reader(0, ready.set_result, None)
        except (PermissionError, OSError):  # a file, which is always ready
            ready.set_result(None)
        try:
            await ready
        finally:
            with suppress(OSError):
                loop.remove_reader(0)
        data = os.read(0, _CHUNK)
        if not data:
            await remote.end_input()
            return
        await remote.send(data)


async def _resize(remote: RemoteCommand) -> None:
    size = os.get_terminal_size(1)
    await remote.resize(size.columns, size.lines)


def _write(target: int, data: bytes) -> None:
    while data:
        data = data[os.write(target, data) :]


@contextmanager
def _raw(terminal: bool) -> Iterator[None]:
    """Every key goes to the shell over there, Ctrl-C too."""
    if not terminal:
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
