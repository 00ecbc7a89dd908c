"""The command line: one module per verb, imported only when its verb is used.

A verb's module has ``parser()``, which imports nothing heavy, and ``main(arguments)``, which returns the exit code.  An
expected failure is one line on stderr and an exit code, never a traceback.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence

# heading → verb → (module, one line for the list of commands)
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "run it": {
        "up": ("seamark.cli.up", "everything in one process: API server, controllers, DNS, simulated nodes"),
        "status": ("seamark.cli.status", "whether it runs, since when, where, and what it holds"),
        "logs": ("seamark.cli.logs", "what it said in the background"),
        "down": ("seamark.cli.down", "stop it"),
        "node": ("seamark.cli.node", "switch a simulated node off and on"),
        "demo": ("seamark.cli.demo", "the scenes of service discovery, played step by step"),
    },
    "everyday, as with kubectl": {
        "apply": ("seamark.cli.apply", "make objects be as files say"),
        "get": ("seamark.cli.get", "what there is: tables, YAML, JSON, names; -w follows"),
        "delete": ("seamark.cli.delete", "by name, by labels, or what files describe"),
    },
    "parts of it, on their own": {
        "apiserver": ("seamark.cli.apiserver", "the API server alone, over SQLite or etcd"),
        "controllers": ("seamark.cli.controllers", "the discovery controllers for any Kubernetes API"),
        "dns": ("seamark.cli.dns", "cluster DNS for any Kubernetes API"),
    },
    "ask it": {
        "why": ("seamark.cli.why", "why a Service has no endpoints, and what to do about it"),
        "audit": ("seamark.cli.audit", "endpoints that are orphaned, duplicated, stale or foreign"),
        "resolve": ("seamark.cli.resolve", "look a name up as a Pod would, and why"),
    },
    "set it up": {
        "config": ("seamark.cli.config", "the settings it would run with, or a reference of all of them"),
        "completion": ("seamark.cli.completion", "completion scripts for bash, zsh and fish"),
    },
}
VERBS: dict[str, tuple[str, str]] = {verb: about for group in GROUPS.values() for verb, about in group.items()}

BEFORE_THE_VERB = ("-n", "--namespace", "--context", "--kubeconfig")

EXAMPLES = """\
  seamark up                               # a cluster for service discovery, ready in a moment
  seamark up --detach && seamark status    # the same in the background
  seamark demo                             # what it is about, in two minutes
  seamark VERB --help                      # everything about one command, with examples
"""

EXIT_CODES = """\
  0    done
  1    it failed, or what was asked about is not as it should be; the reason is on stderr
  2    the command line or the configuration is wrong
  130  interrupted (Ctrl-C)
  141  nobody reads the output any more (| head)
"""


def help_text() -> str:
    """What ``seamark --help`` says; made by hand, because argparse takes longer to load than all of this to run."""
    from seamark.cli.terminal import colourful, styled

    colour = colourful(sys.stdout)

    def heading(text: str) -> str:
        return styled(f"{text}:", "bold", colour=colour)

    lines = ["usage: seamark [-h] [--version] COMMAND …", ""]
    lines += ["Kubernetes service discovery: run it, test against it, ask it why.", ""]
    for title, verbs in GROUPS.items():
        lines += [heading(title), *(f"  {verb:<12} {about}" for verb, (_, about) in verbs.items()), ""]
    lines += [heading("examples"), EXAMPLES, heading("exit codes"), EXIT_CODES]
    return "\n".join(lines).rstrip()


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        print(help_text())
        return 0
    arguments = verb_first(arguments)
    verb = arguments[0]
    if verb in VERBS:
        module = importlib.import_module(VERBS[verb][0])
        return guarded(module.main, arguments[1:])
    if verb == "--version":
        from seamark import __version__

        print(f"seamark {__version__}")
        return 0
    print(f"seamark: {_unknown(verb)}; see `seamark --help`", file=sys.stderr)
    return 2


def verb_first(arguments: list[str]) -> list[str]:
    """``-n shop get svc`` is ``get -n shop svc``: kubectl's users may put these options before the verb."""
    position = 0
    while position < len(arguments) and arguments[position].partition("=")[0] in BEFORE_THE_VERB:
        position += 1 if "=" in arguments[position] else 2
    return arguments[position : position + 1] + arguments[:position] + arguments[position + 1 :]


def _unknown(verb: str) -> str:
    import difflib

    like = difflib.get_close_matches(verb, VERBS, n=1)
    what = "option" if verb.startswith("-") else "command"
    return f"there is no {what} {verb}" + (f", but {like[0]}" if like else "")


def guarded(run: Callable[[list[str]], int], arguments: list[str]) -> int:
    from seamark.cli.failure import Failure

    try:
        code = run(arguments)
        sys.stdout.flush()  # here and not at the very end, where nobody could catch what comes of it
        return code
    except Failure as failure:
        print(failure.line, file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Somebody closed the pipe (| head): that is their right.  What is still to be written goes nowhere.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
