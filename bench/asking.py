"""`kubectl why svc/x` beside `kubectl get svc x` and `python -c pass`: wall and CPU time of whole commands."""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

MANIFEST = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\nspec: {selector: {app: x}, ports: [{port: 80}]}\n"


ONE_FILE = Path("dist/kubectl-why").resolve()  # as `make kubectl-why` builds it


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    if shutil.which("kubectl") is None:
        print("  there is no kubectl to compare with")
        return 0

    from seamark.testing import Cluster

    cluster = Cluster(nodes=1).start()
    try:
        env = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
        env.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run(["kubectl", "apply", "-f", "-"], input=MANIFEST, text=True, env=env, check=True)
        compare(env, options.rounds)
    finally:
        cluster.stop()
    return 0


def compare(env: dict[str, str], rounds: int) -> None:
    commands = {
        "kubectl get svc x": ["kubectl", "get", "svc", "x"],
        "kubectl-why svc/x": [str(Path(sys.executable).with_name("kubectl-why")), "svc/x"],
        "kubectl why svc/x": ["kubectl", "why", "svc/x"],
        "kubectl-why --help": [str(Path(sys.executable).with_name("kubectl-why")), "--help"],
        **({"dist/kubectl-why svc/x": [str(ONE_FILE), "svc/x"]} if ONE_FILE.exists() else {}),
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    env = {**env, "PATH": f"{Path(sys.executable).parent}:{env['PATH']}"}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, command in commands.items():
            taken = _taken(command, env)
            if number:  # the first round fills caches
                found[name].append(taken)
    wall, cpu = (statistics.median(column) for column in zip(*found["kubectl get svc x"], strict=True))
    for name, each in found.items():
        its_wall, its_cpu = (statistics.median(column) for column in zip(*each, strict=True))
        print(
            f"  {name:<22} {its_wall * 1e3:6.0f} ms {its_wall / wall:5.2f} ×   {its_cpu * 1e3:6.0f} ms of CPU"
            f" {its_cpu / cpu:5.2f} ×"
        )


def _taken(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU time of a command, in seconds."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=env, capture_output=True, check=False)
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
