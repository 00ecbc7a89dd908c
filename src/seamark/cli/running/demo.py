"""``seamark demo``: the scenes of service discovery, played with real commands against a real Seamark."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import re
import shlex
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from seamark.cli.data_dir import add_data_dir_option, data_dir_of, running_in
from seamark.cli.failure import Failure
from seamark.cli.light_imports import uninterrupted
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.terminal import Progress, colourful, columns, styled
from seamark.errors import Object

EXAMPLES = """\
seamark demo                     # on the Seamark that runs, else on one of its own
seamark demo --ephemeral --pause
seamark demo --kubeconfig data/kubeconfig --keep
"""
PATIENCE = 120.0  # seconds a cluster may take, on a busy machine too, until it shows what a scene is about
LOOK_AGAIN = 0.1
WIDEST = 100  # columns: longer lines are hard to read


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "demo",
        "Play the scenes of service discovery step by step: a sentence, the command, its real output.\n"
        "It uses the Seamark that runs in the data directory; if none does, one of its own that is gone afterwards.",
        examples=EXAMPLES,
        codes={0: "every scene came out as it should", 1: "a scene did not; the reason is on stderr"},
    )
    add_data_dir_option(made)
    add_switch(made, "--ephemeral", help="on one of its own in any case")
    made.add_argument("--kubeconfig", metavar="FILE", help="on this one, which must be a Seamark")
    made.add_argument("--nodes", metavar="N", type=int, default=3, help="simulated nodes of one of its own (default 3)")
    made.add_argument("-n", "--namespace", metavar="NAME", default="demo", help="where to play (default demo)")
    add_switch(made, "--pause", help="wait for Enter after each scene")
    add_switch(made, "--keep", help="leave the namespace as it is at the end")
    return made


class DemoCluster(msgspec.Struct, frozen=True):
    """A cluster to play on; ``dns`` is empty if its address is not known."""

    kubeconfig: Path
    dns: str
    told: str


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)

    from seamark.cli.logging_setup import set_up
    from seamark.cli.running.scenes import node_name
    from seamark.config import LogSettings

    # The log of a Seamark of our own would be taken for the output of a command.
    set_up(LogSettings(level="error"))
    with _cluster(options) as cluster, _environment(cluster.kubeconfig):
        stage = TerminalStage(options.namespace, cluster, pause=options.pause)
        stage.say(cluster.told)
        stage.shown(f"export KUBECONFIG={cluster.kubeconfig}")
        if not stage.nodes:
            stage.say("It has no simulated nodes.")
        _prepare(stage)
        try:
            _play(stage)
        finally:
            if not options.keep:
                stage.heading("Tidying up")
                stage.run(f"seamark delete namespace {options.namespace}", until="deleted")
                if not stage.nodes:
                    stage.run(f"seamark delete node {node_name(stage)} --ignore-not-found")
    return 0


def _play(stage: TerminalStage) -> None:
    from seamark.cli.running.scenes import SCENES

    for number, (title, scene) in enumerate(SCENES, 1):
        stage.heading(f"{number}. {title}")
        scene(stage)
        stage.rest()


# --- where -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _cluster(options: argparse.Namespace) -> Iterator[DemoCluster]:
    if options.kubeconfig:
        path = Path(options.kubeconfig).absolute()
        yield DemoCluster(path, "", f"On the cluster of {path}.")
        return
    found = None if options.ephemeral else running_in(data_dir_of(options.data_dir))
    if found is not None and found.ready:
        dns = found.dns[0] if found.dns else ""
        yield DemoCluster(Path(found.kubeconfig), dns, f"On the Seamark that runs in {Path(found.kubeconfig).parent}.")
        return

    with uninterrupted():
        from seamark.daemon import StartError
        from seamark.testing.cluster import Cluster

    began = time.perf_counter()
    try:
        with Progress("starting a Seamark …"):
            cluster = Cluster(nodes=options.nodes).start()
    except StartError as error:
        raise Failure(str(error)) from error
    try:
        host, port = cluster.dns
        took = time.perf_counter() - began
        yield DemoCluster(
            cluster.kubeconfig, f"{host}:{port}", f"On a Seamark of its own, which took {took:.2f} s to start."
        )
    finally:
        cluster.stop()


@contextlib.contextmanager
def _environment(kubeconfig: Path) -> Iterator[None]:
    """Inside the block the demo's commands use this file, and print for the terminal that the demo is played on."""
    room = columns(sys.stdout)
    wanted = {"KUBECONFIG": str(kubeconfig), **({"COLUMNS": str(room)} if room else {})}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _simulated(nodes: list[Object]) -> bool:
    """Whether there are simulated nodes; fails on real ones: their kubelets cannot pull the demo's images."""
    from seamark.kinds.wellknown import SIMULATED_ANNOTATION

    real = [
        node["metadata"]["name"]
        for node in nodes
        if SIMULATED_ANNOTATION not in node["metadata"].get("annotations", {})
    ]
    if real:
        raise Failure(f"this is no Seamark: {real[0]} is a real Node, and the demo's Pods are only played")
    return bool(nodes)


def _prepare(stage: TerminalStage) -> None:
    """Make the namespace, which must not exist yet, because it is deleted at the end."""
    namespace = stage.namespace
    if stage.output(f"seamark get namespace {namespace} -o name")[0]:
        raise Failure(f"there is a namespace {namespace} already; delete it, or choose another with --namespace")
    given = f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n"
    stage.run("seamark apply -f -", given=given, until="created")


# --- how -------------------------------------------------------------------------------------------


class TerminalStage:
    """Plays on the terminal: shows every command and exactly what it printed."""

    def __init__(self, namespace: str, cluster: DemoCluster, *, pause: bool) -> None:
        self.namespace = namespace
        self.resolver = f"--server {cluster.dns}" if cluster.dns else ""
        self._pause = pause and sys.stdin.isatty()
        self._colour = colourful(sys.stdout)
        self._columns = min(columns(sys.stdout) or WIDEST, WIDEST)
        self._warned: set[str] = set()
        self._nodes: bool | None = None

    @property
    def nodes(self) -> bool:
        if self._nodes is None:
            self._nodes = _simulated(json.loads(self.output("seamark get nodes -o json")[0])["items"])
        return self._nodes

    def heading(self, text: str) -> None:
        print(f"\n{styled(text, 'bold', colour=self._colour)}\n")

    def say(self, text: str) -> None:
        print(textwrap.fill(text, self._columns, break_long_words=False, break_on_hyphens=False) + "\n")

    def shown(self, command: str) -> None:
        print(styled(f"$ {command}", "cyan", colour=self._colour))

    def rest(self) -> None:
        if self._pause:
            input(styled("Enter goes on … ", "dim", colour=self._colour))

    def run(self, command: str, *, given: str = "", until: str = "") -> str:
        """Show the command, run it until its output is what it should be, show that."""
        self.shown(f"{command} <<EOF\n{given}EOF" if given else command)
        out, err = self._until(command, given, until)
        for line in err.splitlines():
            if not line.startswith("Warning:") or line not in self._warned:
                print(line)
            self._warned.add(line)
        print(out, flush=True)
        return out

    def _until(self, command: str, given: str, until: str) -> tuple[str, str]:
        patience = time.monotonic() + PATIENCE
        with Progress("waiting until the cluster has seen it …"):
            while True:
                out, err = self.output(command, given)
                if re.search(until, out + err):
                    return out, err
                if given or time.monotonic() > patience:
                    raise Failure(f"`{command}` did not print what it should ({until}), but: {out}{err}".strip())
                time.sleep(LOOK_AGAIN)

    def output(self, command: str, given: str = "") -> tuple[str, str]:
        """What a command prints on stdout and stderr, run in this process by the code that a shell would start."""
        from seamark.cli import INTERRUPTED
        from seamark.cli import main as seamark

        _, *arguments = shlex.split(command)
        out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
        sys.stdin = io.StringIO(given)
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                code = seamark(arguments)
            if code == INTERRUPTED:  # the command has taken the Ctrl-C that was meant for us
                raise KeyboardInterrupt
        finally:
            sys.stdin = stdin
        return out.getvalue(), err.getvalue()
