"""``seamark completion``: scripts for shells, and the words those scripts ask for."""

from __future__ import annotations

import argparse
import asyncio
import importlib
import sys
from typing import TYPE_CHECKING

from seamark.cli.parsing import verb_parser

if TYPE_CHECKING:
    from seamark.cli.completion_model import Verb
    from seamark.cli.completion_words import Wanted, Word

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
        return _print_words(arguments[1:] or [""])

    from seamark.cli.completion_shells import SHELLS

    print(SHELLS[parser().parse_args(arguments).shell], end="")
    return 0


def _print_words(typed: list[str]) -> int:
    """What the scripts ask for.  Nobody reads an error behind a TAB, but who looks for one finds it."""
    from seamark.access.kubeconfig_file import KubeconfigError
    from seamark.cli import VERBS
    from seamark.cli.completion_words import wanted
    from seamark.cli.failure import Failure

    asked = wanted(typed, {verb: about for verb, (_, about) in VERBS.items()}, _loaded)
    if asked.source in ("files", "directories"):
        print(asked.source)
        return 0
    try:
        words = _words(asked)
    except (Failure, KubeconfigError, TimeoutError) as error:
        print(f"seamark: {error}", file=sys.stderr)
        return 1
    print("words")
    for word, about in words:
        if word.startswith(asked.typed):
            print(f"{asked.lead}{word}\t{about}" if about else f"{asked.lead}{word}")
    return 0


def _loaded(verb: str) -> Verb:
    from seamark.cli import VERBS
    from seamark.cli.completion_model import verb_of

    module, about = VERBS[verb]
    return verb_of(verb, about, importlib.import_module(module).parser())


def _words(asked: Wanted) -> list[Word]:
    if asked.source in ("", "words"):
        return list(asked.words)
    if asked.source == "contexts":
        from seamark.access.kubeconfig import contexts

        return [(name, "") for name in contexts(asked.given.get("--kubeconfig"))]
    return [(name, "") for name in asyncio.run(_of_cluster(asked))]


async def _of_cluster(asked: Wanted) -> list[str]:
    from seamark.cli.cluster_options import connected
    from seamark.cli.data_dir import data_dir_of
    from seamark.cli.targets import parse_targets

    kubeconfig = asked.given.get("--kubeconfig")
    if asked.source == "nodes" and not kubeconfig:
        kubeconfig = str(data_dir_of(asked.given.get("--data-dir")) / "kubeconfig")
    whom = argparse.Namespace(kubeconfig=kubeconfig, context=asked.given.get("--context", ""))
    async with asyncio.timeout(PATIENCE), connected(whom) as server:
        kinds = await server.kinds()
        if asked.source == "kinds":
            return sorted({kind.resource.plural for kind in kinds.all if "list" in kind.verbs})
        found: list[str] = []
        for target in parse_targets([asked.kind or asked.source], kinds):
            namespace = asked.given.get("--namespace") or server.namespace
            namespace = namespace if target.kind.resource.namespaced else ""
            async for page in server.pages(target.kind.resource, namespace=namespace, query={}):
                found += [item["metadata"]["name"] for item in page.get("items") or ()]
        return found
