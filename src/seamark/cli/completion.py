"""``seamark completion``: scripts for shells, and the words those scripts ask for."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterable

from seamark.cli.parsing import verb_parser

EXAMPLES = """\
source <(seamark completion bash)                                   # in ~/.bashrc
source <(seamark completion zsh)                                    # in ~/.zshrc, after compinit
seamark completion fish > ~/.config/fish/completions/seamark.fish
"""
PATIENCE = 3.0  # seconds somebody who pressed TAB waits


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "completion",
        "Print a completion script for a shell: verbs, options, files, and the kinds, names, namespaces and\n"
        "contexts of the cluster.",
        examples=EXAMPLES,
    )
    made.add_argument("shell", choices=("bash", "zsh", "fish"))
    return made


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["words"]:
        return _print_words(arguments[1:])
    shell = parser().parse_args(arguments).shell

    from seamark.cli import VERBS
    from seamark.cli.completion_model import verbs
    from seamark.cli.completion_shells import SHELLS

    print(SHELLS[shell](verbs(VERBS)), end="")
    return 0


def _print_words(arguments: list[str]) -> int:
    """What the scripts ask for: kinds, names KIND, namespaces or contexts.  Nobody reads an error behind a TAB."""
    from seamark.access.kubeconfig_file import KubeconfigError
    from seamark.cli.failure import Failure

    try:
        print("\n".join(_words(arguments)))
    except (Failure, KubeconfigError, TimeoutError) as error:
        print(f"seamark: {error}", file=sys.stderr)
        return 1
    return 0


def _words(arguments: list[str]) -> Iterable[str]:
    match arguments:
        case ["contexts"]:
            from seamark.access.kubeconfig import contexts

            return contexts()
        case ["kinds" | "namespaces"] | ["names", _]:
            return asyncio.run(_of_cluster(arguments))
        case _:
            return ()


async def _of_cluster(arguments: list[str]) -> list[str]:
    from seamark.cli.cluster_options import connected
    from seamark.cli.targets import parse_targets

    async with asyncio.timeout(PATIENCE), connected(argparse.Namespace(kubeconfig=None, context="")) as server:
        kinds = await server.kinds()
        if arguments == ["kinds"]:
            return sorted({kind.resource.plural for kind in kinds.all if "list" in kind.verbs})
        wanted = "namespaces" if arguments == ["namespaces"] else arguments[1]
        found: list[str] = []
        for target in parse_targets([wanted], kinds):
            namespace = server.namespace if target.kind.resource.namespaced else ""
            async for page in server.pages(target.kind.resource, namespace=namespace, query={}):
                found += [item["metadata"]["name"] for item in page.get("items") or ()]
        return found
