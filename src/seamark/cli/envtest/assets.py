"""``seamark envtest-assets DIR``: make a directory for ``KUBEBUILDER_ASSETS``."""

from __future__ import annotations

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from seamark.cli.envtest.flags import CONTROLLERS, KNOWN, NODES
from seamark.cli.failure import Failure
from seamark.cli.parsing import verb_parser

EXAMPLES = """\
seamark envtest-assets ./bin/seamark     # then type the line that it prints
eval "$(seamark envtest-assets ./bin/seamark)" && go test ./...
SEAMARK_ENVTEST_CONTROLLERS=true go test ./...    # with what envtest lacks: garbage collection, Deployments, Pods
"""
ENVIRONMENT = {
    CONTROLLERS: "`true`: run the controllers and simulated nodes, too, which envtest has not",
    NODES: "how many simulated nodes there are then (default 1)",
}
ETCD_FLAGS = ("advertise-client-urls", "data-dir", "listen-client-urls", "listen-peer-urls", "unsafe-no-fsync")
VERSIONS = {"etcd": "etcd Version: 3.6.0", "kube-apiserver": "Kubernetes v1.38.0"}


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "envtest-assets",
        "Make a directory for KUBEBUILDER_ASSETS, with a kube-apiserver and an etcd that start Seamark, and print the\n"
        "line for the shell that uses it.  The tests of Go operators that use envtest then run unchanged.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    made.add_argument("directory", metavar="DIR", help="where to write the programs; made if it is not there")
    return made


def main(arguments: list[str]) -> int:
    directory = Path(parser().parse_args(arguments).directory).absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, module, flags in (("kube-apiserver", "apiserver", KNOWN), ("etcd", "etcd", ETCD_FLAGS)):
            program = directory / name
            program.write_text(script(name, f"seamark.cli.envtest.{module}", flags))
            program.chmod(0o755)
        if (kubectl := shutil.which("kubectl")) and not (link := directory / "kubectl").exists():
            link.unlink(missing_ok=True)
            link.symlink_to(kubectl)
    except OSError as error:
        raise Failure(f"cannot write {error.filename or directory}: {error.strerror}") from error
    print(f"export KUBEBUILDER_ASSETS={shlex.quote(str(directory))}")
    return 0


def script(name: str, module: str, flags: tuple[str, ...]) -> str:
    """A program that runs a module of ours.

    envtest asks it for ``--help`` before each start, to see which flags there are, so the shell answers that.
    """
    listed = "\n".join(f"      --{flag}" for flag in flags)
    return f"""\
#!/bin/sh
case "$1" in
  --help) cat <<'EOF'
Seamark in place of {name}; other flags are passed over.
{listed}
EOF
  exit;;
  --version) echo '{VERSIONS[name]}'; exit;;
esac
exec {shlex.quote(sys.executable)} -m {module} "$@"
"""
