"""The command line: one module per group of verbs, imported only when its verb is used.

``main`` builds the parser from small ``add_parser`` functions, which import nothing heavy, and wraps what a verb does:
an expected failure is one line on stderr and an exit code, never a traceback.

Exit codes: 0 done, 1 it failed or (``why``) something is wrong, 2 the command line or the configuration is wrong.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

# verb → (module, one line for the list of commands)
VERBS: dict[str, tuple[str, str]] = {
    "up": ("seamark.cli.up", "everything in one process: API server, controllers, DNS, simulated nodes"),
    "apiserver": ("seamark.cli.apiserver", "the API server alone, over SQLite or etcd"),
    "controllers": ("seamark.cli.controllers", "the discovery controllers for any Kubernetes API"),
    "dns": ("seamark.cli.dns", "cluster DNS for any Kubernetes API"),
    "resolve": ("seamark.cli.resolve", "look a name up as a Pod would, and why"),
}

EXAMPLES = """\
examples:
  seamark apiserver --data-dir ./data          # an API server on a free directory
  kubectl --kubeconfig data/kubeconfig get svc # use it
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="seamark",
        description="Kubernetes service discovery: run it, test against it, ask it why.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the version and exit")
    verbs = top.add_subparsers(dest="verb", metavar="COMMAND", title="commands")
    for verb, (_, about) in VERBS.items():
        verbs.add_parser(verb, help=about, add_help=False)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and arguments[0] in VERBS:
        module = importlib.import_module(VERBS[arguments[0]][0])
        return _guarded(module.main, arguments[1:])
    options = parser().parse_args(arguments)
    if options.version:
        from seamark import __version__

        print(f"seamark {__version__}")
        return 0
    parser().print_help()
    return 0 if not arguments else 2


def _guarded(run: object, arguments: list[str]) -> int:
    from seamark.cli.failure import Failure

    assert callable(run)
    try:
        return int(run(arguments))
    except Failure as failure:
        print(f"seamark: {failure}", file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Somebody closed the pipe (| head): that is their right.
        sys.stderr.close()
        return 141
