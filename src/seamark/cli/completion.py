"""``seamark completion``: completion scripts for shells.

The scripts are argcomplete's.  On TAB they start this program with ``_ARGCOMPLETE`` in the environment, and
:func:`complete` answers from the parser of the verb on the line, so that completion is never out of date.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import os
from collections.abc import Callable

from seamark.cli.parsing import verb_parser

EXAMPLES = """\
source <(seamark completion bash)                                   # in ~/.bashrc
source <(seamark completion zsh)                                    # in ~/.zshrc, after compinit
seamark completion fish > ~/.config/fish/completions/seamark.fish
"""
PATIENCE = 3.0  # seconds for the cluster to answer: a person waits for the TAB


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "completion",
        "Print a completion script for a shell: verbs, options, files, and the kinds, names, namespaces and\n"
        "contexts of the cluster.",
        examples=EXAMPLES,
    )
    made.add_argument("shell", choices=("bash", "zsh", "fish"), help="whose script to print")
    return made


def main(arguments: list[str]) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["seamark"], shell=parser().parse_args(arguments).shell))
    return 0


def complete() -> None:
    """Answer the shell with the words that can stand at the cursor, and exit."""
    import argcomplete

    from seamark.cli import VERBS

    whole = argparse.ArgumentParser(prog="seamark")
    whole.add_argument("--version", action="store_true", help="which Seamark this is")
    verbs = whole.add_subparsers()
    typed = os.environ["COMP_LINE"].split()[1:2]
    for verb, (module, about) in VERBS.items():
        verbs.add_parser(verb, help=about)
        if typed == [verb]:
            verbs.choices[verb] = _with_completers(importlib.import_module(module).parser())
    argcomplete.autocomplete(
        whole, always_complete_options=False, default_completer=argcomplete.completers.SuppressCompleter()
    )


def _with_completers(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    from argcomplete.completers import DirectoriesCompleter, FilesCompleter

    by_metavar: dict[str, Callable[..., object]] = {
        "FILE": FilesCompleter(),
        "FILE|DIR|-": FilesCompleter(),
        "DIR": DirectoriesCompleter(),
        "CONTEXT": _contexts,
        "NAMESPACE": _named("namespaces"),
        "NODE": _named("nodes"),
        "KIND": _targets,
        "TARGET": _targets,
        "CLIENT": _clients,
    }
    for action in parser._actions:  # argparse has no public way to ask a parser for its arguments
        if isinstance(action.metavar, str) and action.metavar in by_metavar:
            action.completer = by_metavar[action.metavar]  # type: ignore[attr-defined]  # argcomplete looks for it
    return parser


def _contexts(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    from seamark.access.kubeconfig import contexts

    return contexts(_kubeconfig(parsed_args))


def _kubeconfig(options: argparse.Namespace) -> str | None:
    """The kubeconfig that the line names so far; ``seamark node`` falls back to that of the data directory."""
    named = getattr(options, "kubeconfig", None) or getattr(options, "cluster.kubeconfig", None)
    if named or not hasattr(options, "data_dir"):
        return named

    from seamark.cli.data_dir import data_dir_of

    return str(data_dir_of(options.data_dir) / "kubeconfig")


def _named(kind: str) -> Callable[..., list[str]]:
    return lambda parsed_args, **_: asyncio.run(_names(kind, parsed_args))


def _targets(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """``KIND``, ``NAME`` behind a kind, or ``KIND/NAME``."""
    kind, slash, _name = prefix.partition("/")
    if slash:
        return [f"{kind}/{name}" for name in asyncio.run(_names(kind, parsed_args))]
    if hasattr(parsed_args, "target"):
        return ["svc/", "pod/", "deployment/"] if hasattr(parsed_args, "ports") else ["svc/", "pod/", "dns"]
    words = getattr(parsed_args, "what", None) or []
    return asyncio.run(_names(words[0] if words and "/" not in words[0] else "", parsed_args))


def _clients(prefix: str, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Where connections may come from: ``why --from``."""
    kind, slash, _name = prefix.partition("/")
    if slash:
        return [f"{kind}/{name}" for name in asyncio.run(_names(kind, parsed_args))]
    return ["pod/", "node/", "outside"]


async def _names(kind: str, options: argparse.Namespace) -> list[str]:
    """The names of all objects of a kind in the cluster that the line names so far; without a kind, all kinds."""
    from seamark.cli.clusters import connected

    where = argparse.Namespace(kubeconfig=_kubeconfig(options), context=getattr(options, "context", ""))
    async with asyncio.timeout(PATIENCE), connected(where) as server:
        kinds = await server.kinds()
        if not kind:
            return sorted({each.resource.plural for each in kinds.all if "list" in each.verbs})
        found: list[str] = []
        for target in kinds.targets([kind]):
            namespace = getattr(options, "namespace", None) or server.namespace
            async for page in server.pages(target.kind.resource, namespace=namespace, query={}):
                found += [item["metadata"]["name"] for item in page.get("items") or ()]
        return found
