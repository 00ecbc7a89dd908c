"""Which cluster an everyday verb talks to, and how its refusals are told."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seamark.cli.data_dir import data_dir_of
from seamark.cli.failure import Failure, ServerFailure

if TYPE_CHECKING:
    from seamark.access.kubeconfig import Connection
    from seamark.cli.server import Server
    from seamark.errors import ApiError

ENVIRONMENT = {
    "KUBECONFIG": "kubeconfig files, as for kubectl",
    "SEAMARK_DATA_DIR": "whose kubeconfig is used if none is configured",
    "NO_COLOR": "no colours on the terminal either",
}
WHICH_CLUSTER = (
    "The cluster is the one kubectl would use: --kubeconfig, $KUBECONFIG, ~/.kube/config.  If none of these\n"
    "is there, it is the Seamark of this user (`seamark up`), through the kubeconfig in its data directory."
)


def add_cluster_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kubeconfig", metavar="FILE", help="the cluster (default: see above)")
    parser.add_argument("--context", metavar="NAME", default="", help="the kubeconfig's context to use")


def add_namespace_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--namespace", metavar="NAME", help="default: the context's, or default")


def connection_of(options: argparse.Namespace) -> Connection:
    """The connection that the options and the surroundings mean; ``Failure`` if there is none."""
    from seamark.access.kubeconfig import load
    from seamark.access.kubeconfig_file import KubeconfigError

    path = options.kubeconfig or default_kubeconfig(os.environ, Path.home())
    try:
        return load(path, context=options.context)
    except KubeconfigError as error:
        nothing = path is None and str(error).startswith("no cluster to talk to")
        raise Failure(f"{error}, or start one with `seamark up`" if nothing else str(error)) from error


def default_kubeconfig(environ: Mapping[str, str], home: Path) -> Path | None:
    """The kubeconfig of this user's Seamark if nothing else is configured; None for kubectl's rules."""
    configured = environ.get("KUBECONFIG") or environ.get("KUBERNETES_SERVICE_HOST")
    if configured or (home / ".kube" / "config").exists():
        return None
    own = data_dir_of(None) / "kubeconfig"
    return own if own.exists() else None


@asynccontextmanager
async def connected(options: argparse.Namespace) -> AsyncIterator[Server]:
    """The server inside the block; what it refuses becomes a ``Failure``."""
    from seamark.access.transport import Transport
    from seamark.cli.server import Server, Warnings
    from seamark.errors import ApiError

    warn = Warnings()
    transport = Transport(connection_of(options), agent="seamark", warn=warn)
    try:
        yield Server(transport, warn)
    except ApiError as error:
        if error.__cause__ is not None and not options.kubeconfig and default_kubeconfig(os.environ, Path.home()):
            raise Failure(f"{error.message}; start your Seamark with `seamark up`") from error
        raise refusal(error) from error
    finally:
        await transport.close()


def refusal(error: ApiError, doing: str = "") -> Failure:
    """What went wrong, as kubectl says it."""
    if error.__cause__ is not None:
        return Failure(error.message)  # it never came to an answer: these are our own words
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
