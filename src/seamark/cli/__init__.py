"""The command line: one module per verb, imported only when its verb is used.

A verb's module has ``parser()`` and ``main(arguments)``, which returns the exit code.  An expected failure is one line
on stderr and an exit code, never a traceback.

- ``running``: the verbs that run Seamark or parts of it
- ``objects``: ``get``, ``apply`` and ``delete``
- ``asking``: ``why``, ``doctor``, ``audit`` and ``resolve``
- ``reaching``: ``port-forward`` and ``forward``
- ``keeping``: ``backup``, ``restore``, ``export``, ``fsck`` and ``rotate``
- ``envtest``: ``envtest-assets``, for tests of Go operators
- ``config``: the effective settings, and a ``reference`` of all of them; ``toml_text`` writes TOML
- ``completion``: completion scripts for shells

Shared by the verbs:

- ``parsing``: what all parsers have in common
- ``settings``: from flags to a configuration
- ``clusters``: which cluster is meant; ``data_dir``: which Seamark of this machine
- ``light_imports``: imports at less cost, and undisturbed by Ctrl-C
- ``event_loop``: of commands that run on, and how they are told to end
- ``failure``: an expected failure
- ``terminal``: colours, widths and progress; ``logging_setup``: the log
"""

from __future__ import annotations

import errno
import gc
import importlib
import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from seamark.cli.failure import Failure
from seamark.cli.light_imports import import_msgspec, uncollected, uninterrupted

# heading → verb → (module, one line for the list of commands)
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "run it": {
        "up": ("seamark.cli.running.up", "everything in one process: API server, controllers, DNS, simulated nodes"),
        "run": ("seamark.cli.running.run", "a program of this machine as a Deployment and a Service"),
        "status": ("seamark.cli.running.status", "whether it runs, since when, where, and what it holds"),
        "logs": ("seamark.cli.running.logs", "what it said in the background"),
        "down": ("seamark.cli.running.down", "stop it"),
        "node": ("seamark.cli.running.node", "list simulated nodes, switch one off and on"),
        "demo": ("seamark.cli.running.demo", "the scenes of service discovery, played step by step"),
    },
    "everyday, as with kubectl": {
        "apply": ("seamark.cli.objects.apply", "create or change objects to be as files say"),
        "get": ("seamark.cli.objects.get", "objects as tables, YAML, JSON or names; -w follows changes"),
        "delete": ("seamark.cli.objects.delete", "delete objects by name, by labels, or as files describe them"),
    },
    "parts of it, on their own": {
        "apiserver": ("seamark.cli.running.apiserver", "the API server alone, over SQLite or etcd"),
        "controllers": ("seamark.cli.running.controllers", "the discovery controllers for any Kubernetes API"),
        "dns": ("seamark.cli.running.dns", "cluster DNS for any Kubernetes API"),
        "proxy": ("seamark.cli.running.proxy", "routes connections to Services on a node, as kube-proxy does"),
    },
    "ask it": {
        "why": ("seamark.cli.asking.why", "why a Service has no endpoints, and what to do about it"),
        "doctor": ("seamark.cli.asking.doctor", "whether controllers, slices, DNS, nodes and proxies are well"),
        "audit": ("seamark.cli.asking.audit", "endpoints that are orphaned, duplicated, stale or foreign"),
        "resolve": ("seamark.cli.asking.resolve", "look a name up as a Pod would, and why"),
    },
    "reach it from here": {
        "port-forward": ("seamark.cli.reaching.port_forward", "a Service, Pod or workload on local ports"),
        "shell": ("seamark.cli.reaching.shell", "a shell in the cluster's network"),
        "forward": ("seamark.cli.reaching.forward", "every Service of a namespace, with its name, ports and address"),
    },
    "keep it": {
        "backup": ("seamark.cli.keeping.backup", "write its state, certificates and token to one file"),
        "restore": ("seamark.cli.keeping.restore", "make a data directory from a backup"),
        "export": ("seamark.cli.keeping.export", "what people wrote, as manifests that any cluster can apply"),
        "fsck": ("seamark.cli.keeping.fsck", "check the store"),
        "rotate": ("seamark.cli.keeping.rotate", "replace the admin's token, the key that signs tokens, or the CA"),
    },
    "set it up": {
        "envtest-assets": ("seamark.cli.envtest.assets", "programs for envtest, so that tests of Go operators use it"),
        "config": ("seamark.cli.config", "the settings it would run with, or a reference of all of them"),
        "completion": ("seamark.cli.completion", "completion scripts for bash, zsh and fish"),
    },
}
VERBS: dict[str, tuple[str, str]] = {verb: about for group in GROUPS.values() for verb, about in group.items()}

OUTPUT_LOST = (errno.ENOSPC, errno.EDQUOT, errno.EIO)  # what is printed goes to a disk that is full or broken

INTERRUPTED = 130  # the exit code after Ctrl-C

# What people type who know other programs → what it is called here.
OTHER_WORDS = {
    **dict.fromkeys(("start", "serve", "server"), "up"),
    "stop": "down",
    **dict.fromkeys(("version", "-v", "-V"), "--version"),
    **dict.fromkeys(("ls", "list"), "get"),
    "ps": "status",
    **dict.fromkeys(("create", "import"), "apply"),
    **dict.fromkeys(("rm", "remove"), "delete"),
    **dict.fromkeys(("describe", "explain"), "why"),
    "exec": "shell",
}

EXAMPLES = """\
seamark up                               # a cluster, ready in a moment
seamark up --detach && seamark status    # the same in the background
seamark demo                             # what it is about, in two minutes
seamark VERB --help                      # one command, with examples
"""

EXIT_CODES = """\
  0    done
  1    it failed, or a check found something wrong; the reason is on stderr
  2    the command line or the configuration is wrong
  130  interrupted (Ctrl-C)
  141  the reader of the output is gone (| head)
"""


def help_text() -> str:
    """The text of ``seamark --help``; not by argparse, which takes longer to load than all of this to run."""
    from seamark.cli.terminal import colourful, columns, folded, indented, styled

    colour, room = colourful(sys.stdout), columns(sys.stdout)

    def heading(text: str) -> str:
        return styled(f"{text}:", "bold", colour=colour)

    lines = ["usage: seamark [-h] [--version] COMMAND …", ""]
    lines += ["Kubernetes service discovery: run it, test against it, ask it why.", ""]
    for title, verbs in GROUPS.items():
        lines += [
            heading(title),
            *(folded(f"  {verb:<14} {about}", room, hang=17) for verb, (_, about) in verbs.items()),
            "",
        ]
    lines += [heading("examples"), indented(EXAMPLES, room), "", heading("exit codes")]
    lines += [folded(line, room, hang=7) for line in EXIT_CODES.splitlines()]
    return "\n".join(lines).rstrip()


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point; returns the exit code."""
    if "_ARGCOMPLETE" in os.environ:
        from seamark.cli.completion import complete

        complete()
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    if not arguments or arguments[0] in ("-h", "--help"):
        return guarded(_tell, [help_text()])
    verb = arguments[0]
    if verb in VERBS:
        return guarded(lambda words: _loaded(verb).main(words), arguments[1:])
    if verb == "--version":
        from seamark import __version__

        return guarded(_tell, [f"seamark {__version__}"])
    print(f"seamark: {_unknown(verb)}; see `seamark --help`", file=sys.stderr)
    return 2


def kubectl_why() -> NoReturn:
    """The program ``kubectl-why``, which kubectl finds on the PATH.

    It asks a few questions and ends, so it does not look for garbage on its way (``--watch`` and ``--serve`` do), and
    it leaves its memory to the kernel, because Python would give back every object on its own.
    """
    gc.disable()
    code = main(["why", *sys.argv[1:]])
    sys.stderr.flush()
    os._exit(code)


def _loaded(verb: str) -> Any:
    with uncollected(), uninterrupted():
        import_msgspec()
        return importlib.import_module(VERBS[verb][0])


def _tell(lines: list[str]) -> int:
    print(*lines, sep="\n")
    return 0


def _unknown(verb: str) -> str:
    import difflib

    like = OTHER_WORDS.get(verb) or next(iter(difflib.get_close_matches(verb, VERBS, n=1, cutoff=0.7)), "")
    what = "option" if verb.startswith("-") else "command"
    return f"there is no {what} {verb}" + (f", but {like}" if like else "")


def guarded(run: Callable[[list[str]], int], arguments: list[str]) -> int:
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the shell closed it (>&-)
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        if isinstance(stream := getattr(sys, name), io.TextIOWrapper):  # another in tests
            stream.reconfigure(errors="backslashreplace")  # the locale may have no "…", nor what people wrote
    try:
        code = run(arguments)
        sys.stdout.flush()  # at the very end of the program, a BrokenPipeError could not be caught
        return code
    except Failure as failure:
        print(failure.line, file=sys.stderr)
        return failure.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe (| head).  What Python still flushes at its end goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        if error.errno not in OUTPUT_LOST or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"seamark: cannot write to standard output: {error.strerror}", file=sys.stderr)
        return 1
