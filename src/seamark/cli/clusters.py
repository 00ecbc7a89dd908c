"""Which cluster a command talks to, and how the refusals of its API server are printed."""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from seamark.cli.data_dir import data_dir_of, running_in
from seamark.cli.failure import Failure, ServerFailure
from seamark.cli.light_imports import import_http_client, uninterrupted

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.cli.objects.server import Server
    from seamark.errors import ApiError
    from seamark.presence import Presence

ENVIRONMENT = {
    "KUBECONFIG": "kubeconfig files, as for kubectl",
    "SEAMARK_DATA_DIR": "the data directory with the kubeconfig to use if none is configured",
    "NO_COLOR": "no colours on the terminal either",
}
WHICH_CLUSTER = (
    "The cluster is the one kubectl would use: --kubeconfig, $KUBECONFIG, ~/.kube/config.  If none of these\n"
    "is there, it is the Seamark of this user (`seamark up`), through the kubeconfig in its data directory."
)


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="the cluster (default: see above)")
    parser.add_argument("--context", metavar="CONTEXT", default="", help="the kubeconfig's context to use")


def add_namespace_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAMESPACE", help="default: the context's, or default")


class Named(Protocol):
    """What options, or the settings of a long-running verb, say about the cluster; both may be empty."""

    @property
    def kubeconfig(self) -> str: ...

    @property
    def context(self) -> str: ...


def connection_of(named: Named | argparse.Namespace) -> Connection:
    """The connection that options and environment name; ``Failure`` if there is none."""
    with uninterrupted():
        from seamark.access.kubeconfig import load
        from seamark.access.kubeconfig_file import KubeconfigError

    path = kubeconfig_of(named)
    try:
        return load(path, context=named.context)
    except KubeconfigError as error:
        nothing = path is None and str(error).startswith("no cluster to talk to")
        raise Failure(f"{error}, or start one with `seamark up`" if nothing else str(error)) from error


def kubeconfig_of(named: Named | argparse.Namespace) -> str | Path | None:
    """The kubeconfig that is named, or that of this user's Seamark; None for kubectl's rules."""
    return named.kubeconfig or default_kubeconfig(os.environ, Path.home())


def tell_writes(connection: Connection, named: Named | argparse.Namespace) -> None:
    """Say on stderr which cluster is written to, unless it is one that ``seamark up`` runs on this machine."""
    if connection.server in _own_directories(kubeconfig_of(named) or os.environ.get("KUBECONFIG", "")):
        return
    context = f" (context {connection.context})" if connection.context else ""
    print(f"seamark: writing to {connection.server}{context}", file=sys.stderr, flush=True)


def presence_of(connection: Connection, named: Named | argparse.Namespace) -> Presence | None:
    """What is known of the Seamark on this machine that the connection leads to, if it does."""
    own = _own_directories(kubeconfig_of(named) or os.environ.get("KUBECONFIG", ""))
    return running_in(own[connection.server]) if connection.server in own else None


def _own_directories(kubeconfig: str | Path) -> dict[str, Path]:
    """This user's Seamark and the one whose directory the kubeconfig is in, by the addresses of their API servers."""
    from seamark.access.kubeconfig import load
    from seamark.access.kubeconfig_file import KubeconfigError
    from seamark.presence import RUNNING

    found = {}
    for file in (data_dir_of(None) / "kubeconfig", Path(kubeconfig)):
        if (file.parent / RUNNING).exists():
            with contextlib.suppress(KubeconfigError):
                found[load(file).server] = file.parent
    return found


def default_kubeconfig(environ: Mapping[str, str], home: Path) -> Path | None:
    """The kubeconfig of this user's Seamark if nothing else is configured; None for kubectl's rules."""
    configured = environ.get("KUBECONFIG") or environ.get("KUBERNETES_SERVICE_HOST")
    if configured or (home / ".kube" / "config").exists():
        return None
    own = data_dir_of(None) / "kubeconfig"
    return own if own.exists() else None


@contextlib.asynccontextmanager
async def connected(options: argparse.Namespace, *, writes: bool = False, warns: bool = True) -> AsyncIterator[Server]:
    """The server inside the block; what it refuses becomes a ``Failure``, what it ``warns`` of is printed once.

    If the block ``writes``, it is said where to.
    """
    from seamark.access.transport import Transport
    from seamark.cli.objects.server import Server
    from seamark.errors import ApiError

    warned: set[str] = set()

    def warn(text: str) -> None:
        if text not in warned:
            warned.add(text)
            print(f"Warning: {text}", file=sys.stderr)

    connection = connection_of(options)
    import_http_client()
    if writes:
        tell_writes(connection, options)
    transport = Transport(connection, agent="seamark", warn=warn if warns else None)
    try:
        yield Server(transport)
    except ApiError as error:
        raise unanswered(error, options) from error
    finally:
        await transport.close()


def unanswered(error: ApiError, named: Named | argparse.Namespace) -> Failure:
    """What the server refused, or why there is no answer; if that is a Seamark that does not run, how to start it."""
    if error.__cause__ is not None:
        return Failure(f"{error.message}{how_to_start(named)}")
    return refusal(error)


def how_to_start(named: Named | argparse.Namespace) -> str:
    """The end of a sentence about a server that does not answer, if it is a Seamark of this machine that is stopped."""
    if named.kubeconfig:
        return ""  # a user who names a file knows which server it is
    own = _own_directories(kubeconfig_of(named) or os.environ.get("KUBECONFIG", ""))
    directory = own.get(connection_of(named).server)
    if directory is None or running_in(directory) is not None:
        return ""
    where = "" if directory == data_dir_of(None) else f" --data-dir {shlex.quote(str(directory))}"
    return f"; start your Seamark with `seamark up{where}`"


def refusal(error: ApiError, doing: str = "") -> Failure:
    """An error of the API server, in kubectl's words; ``doing`` says what was attempted."""
    if error.__cause__ is not None:
        return Failure(error.message)  # the server did not answer: the words are our own
    if error.reason == "Invalid":
        return ServerFailure(_invalid(error))
    reason = f" ({error.reason})" if error.reason else ""
    return ServerFailure(f"Error from server{reason}: {doing}{error.message}")


def _invalid(error: ApiError) -> str:
    details = error.details or {}
    text = "The request is invalid"
    if details.get("kind") or details.get("name"):
        text = f'The {details.get("kind", "")} "{details.get("name", "")}" is invalid'
    elif not error.causes:
        return f"{text}: {error.message}"
    sentences = list(
        dict.fromkeys(f"{cause.field}: {cause.message}" if cause.field else cause.message for cause in error.causes)
    )
    if len(sentences) > 1:
        return "\n".join([f"{text}: ", *(f"* {sentence}" for sentence in sentences)])
    return f"{text}: {sentences[0]}" if sentences else text
