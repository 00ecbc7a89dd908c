"""``seamark up``: everything in one process, in the foreground or (``--detach``) in the background."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.data_dir import data_dir_of
from seamark.cli.failure import Failure
from seamark.cli.light_imports import uninterrupted
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.running.serving import serve
from seamark.cli.settings import ENVIRONMENT, add_settings, config_of
from seamark.cli.terminal import Progress, colourful, styled

if TYPE_CHECKING:
    from seamark.config import Config
    from seamark.daemon import Daemon
    from seamark.presence import Presence

EXAMPLES = """\
seamark up                                   # state in ~/.local/state/seamark
seamark up --ephemeral --nodes 3             # no objects are kept
seamark up --detach --merge-kubeconfig       # in the background, and `kubectl --context seamark` knows it
seamark up --data-dir ./data --api-port 6443 --dns-port 1053
seamark up --store etcd://127.0.0.1:2379/seamark
"""

LOG_NAME = "seamark.log"
LARGEST_LOG = 16 * 1024 * 1024  # a longer one is put aside at the next start
LOOK_AGAIN = 0.02  # seconds


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "up",
        "Run everything: API server, store, controllers, cluster DNS and simulated nodes.\n"
        "It is up once its last line says `ready`, and stays until SIGTERM or Ctrl-C.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_settings(made, "up")
    add_switch(made, "--detach", help="run in the background: see `seamark status`, `logs` and `down`")
    made.add_argument(
        "--merge-kubeconfig",
        nargs="?",
        const="seamark",
        metavar="CONTEXT",
        help="add a context (default seamark) to $KUBECONFIG's first file, or ~/.kube/config; all else in it stays",
    )
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    config = config_of(options, "up")
    if options.detach:
        started = start_in_background(config, arguments)
        try:
            _is_up(started, options.merge_kubeconfig, detached=True)
        except Failure:
            os.kill(started.pid, signal.SIGTERM)  # without the context that was asked for, it should not run
            raise
        return 0

    with uninterrupted():
        from seamark.daemon import EVERYTHING

    async def ready(running: Daemon) -> None:
        _is_up(running.presence(""), options.merge_kubeconfig)

    serve(config, EVERYTHING, ready)
    return 0


def _is_up(presence: Presence, context: str | None, *, detached: bool = False) -> None:
    if context:
        from seamark.cli.running.kubeconfig_merge import merge_for_user

        merge_for_user(Path(presence.kubeconfig), context)
    announce(presence, context, detached=detached)


def own_command(called: str) -> str:
    """The command to type for this program: its name if the shell finds it, else as it was called."""
    if shutil.which("seamark"):
        return "seamark"
    return called if Path(called).name == "seamark" else f"{sys.executable} -m seamark"


def announce(presence: Presence, context: str | None, *, detached: bool = False) -> None:
    """Print where everything is, what to try, how to stop it, and that it is ready."""
    lines = [("API server", presence.api), ("kubeconfig", presence.kubeconfig)]
    if context:
        lines.append(("context", context))
    if presence.dns:
        lines.append(("DNS", f"{presence.dns[0]} (UDP and TCP)"))
    if presence.nodes:
        lines.append(("nodes", presence.about_nodes))
    if presence.node_ports:
        lines.append(("node ports", f"on {' and '.join(presence.node_ports)}"))
    if presence.log:
        lines.append(("log", presence.log))
    colour = colourful(sys.stdout)
    print("\n".join(styled(f"{name:<13}", "bold", colour=colour) + text for name, text in lines))
    if not _printed_into(presence.log):
        print("\n".join(_next_steps(presence, context, detached=detached)))
    print(styled("ready", "green", colour=colour), flush=True)


def _next_steps(presence: Presence, context: str | None, *, detached: bool) -> list[str]:
    """What to try and how to stop it: commands that can be typed as they are, and that mean this Seamark."""
    seamark = own_command(sys.argv[0])
    get = "kubectl" if shutil.which("kubectl") else seamark
    directory = Path(presence.kubeconfig).parent
    here = "" if directory == data_dir_of(None) else f" --data-dir {shlex.quote(str(directory))}"
    there = f" --context {shlex.quote(context)}" if context else ""
    steps = [] if context else [f"export KUBECONFIG={shlex.quote(presence.kubeconfig)}"]
    steps.append(f"{get} get svc,endpoints{there}")
    if presence.dns:
        host, _, port = presence.dns[0].rpartition(":")
        name = f"kubernetes.default.svc.{presence.cluster_domain}"
        dig = f"dig @{host.strip('[]')} -p {port} {name}"
        steps.append(dig if shutil.which("dig") else f"{seamark} resolve {name}. --server {presence.dns[0]}{there}")
    steps += [f"{seamark} why -A{there}", f"{seamark} demo{here}"]
    return [
        "try:" if detached else "try, in another terminal:",
        *(f"  {step}" for step in steps),
        f"stop it with {f'`{seamark} down{here}`' if detached else 'Ctrl-C'}",
    ]


def _printed_into(log: str) -> bool:
    """Whether the output goes into this log, as it does in the background: it is read later, by other people."""
    try:
        return bool(log) and os.path.samestat(os.fstat(sys.stdout.fileno()), os.stat(log))
    except OSError:
        return False


# --- in the background -----------------------------------------------------------------------------


def start_in_background(config: Config, arguments: list[str]) -> Presence:
    """Run the same command in a session of its own, with a log file, and wait until it is ready.

    ``Failure`` with the line that it printed if it ends instead.
    """
    from seamark.presence import DirectoryError, find
    from seamark.private_files import make_private_directory

    directory = Path(config.data_dir)
    log = Path(config.log.file or directory / LOG_NAME).absolute()
    try:
        make_private_directory(directory, named=True)
        holder = find(directory)
        output = _opened(log)
    except DirectoryError as error:
        raise Failure(str(error)) from error
    except OSError as error:
        raise Failure(f"cannot use the data directory {directory}: {error.strerror}; see --data-dir") from error
    try:
        if holder is not None:
            raise Failure(f"the data directory {directory} is in use by pid {holder.pid}; stop it or give --data-dir")
        began = os.fstat(output).st_size
        command = [sys.executable, "-m", "seamark", "up", *in_front(arguments)]
        process = subprocess.Popen(
            [*command, "--log-file", str(log)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    return _await_ready(process, directory, log, began)


def in_front(arguments: list[str]) -> list[str]:
    """The arguments for the process in the background, without those that the one in the foreground acts on."""
    kept: list[str] = []
    before = ""
    for word in arguments:
        taken = before == "--merge-kubeconfig" and not word.startswith("-")
        if not taken and word.partition("=")[0] not in ("--detach", "--merge-kubeconfig"):
            kept.append(word)
        before = word
    return kept


def _opened(log: Path) -> int:
    from seamark.private_files import open_log

    if log.exists() and log.stat().st_size > LARGEST_LOG:
        log.replace(log.with_name(f"{log.name}.1"))
    return open_log(str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def _await_ready(process: subprocess.Popen[bytes], directory: Path, log: Path, began: int) -> Presence:
    from seamark.presence import find

    try:
        with Progress("starting …"):
            while process.poll() is None:
                found = find(directory)
                if found is not None and found.ready and found.pid == process.pid:
                    return found
                time.sleep(LOOK_AGAIN)
    except KeyboardInterrupt:
        process.terminate()
        process.wait()
        raise
    raise Failure(
        _last_words(log, began) or f"it ended; see {log}", process.returncode if process.returncode > 0 else 1
    )


def _last_words(log: Path, began: int) -> str:
    """The last line of a failure that it logged, if any."""
    with log.open("rb") as lines:
        lines.seek(began)
        said = [line for line in lines.read().decode(errors="replace").splitlines() if line.startswith("seamark: ")]
    return said[-1].removeprefix("seamark: ") if said else ""
