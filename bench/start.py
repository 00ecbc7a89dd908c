"""The time from the command to ready, of `seamark apiserver` and `seamark up`, as multiples of `python -c pass`.

And what a private cluster costs a test: its start and its end, beside a client that keeps its connection.
"""

from __future__ import annotations

import argparse
import http.client
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from bench.rig.load import environment, resident_megabytes


def timed(run: Callable[[], object], rounds: int) -> float:
    """The median of several runs, in seconds."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def until_ready(arguments: list[str], env: dict[str, str]) -> tuple[float, float, float]:
    """Seconds until ready, megabytes of memory then, and seconds to stop."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "seamark", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "ready":
            break
    ready = time.perf_counter() - began
    memory = resident_megabytes(process.pid)
    began = time.perf_counter()
    process.terminate()
    process.wait()
    process.stdout.close()
    return ready, memory, time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), environment(f"{folder}/compiled"), options.rounds)


def measure(folder: Path, env: dict[str, str], rounds: int) -> None:
    floor = timed(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True, env=env), rounds)
    print(f"  {'python -c pass':<36} {floor * 1e3:6.0f} ms")
    command = [sys.executable, "-m", "seamark", "--help"]
    help_ = timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=env), rounds)
    print(f"  {'seamark --help':<36} {help_ * 1e3:6.0f} ms  {help_ / floor:5.1f} ×")
    for name, verb in (("apiserver", ["apiserver"]), ("up, no nodes", ["up", "--nodes", "0", "--dns-port", "0"])):
        kept = folder / f"kept-{verb[0]}"
        until_ready([*verb, "--api-port", "0", "--data-dir", str(kept)], env)
        for state in ("first start", "later starts"):
            found = []
            for number in range(rounds):
                data = kept if state == "later starts" else folder / f"{verb[0]}-{number}"
                found.append(until_ready([*verb, "--api-port", "0", "--data-dir", str(data)], env))
            ready, memory, end = (statistics.median(column) for column in zip(*found, strict=True))
            print(
                f"  {f'seamark {name}, {state}':<36} {ready * 1e3:6.0f} ms  {ready / floor:5.1f} ×"
                f"   {memory:4.0f} MB   ends in {end * 1e3:4.0f} ms",
                flush=True,
            )
    for profile in ("plain", "full"):
        clusters = [private_cluster(profile) for _ in range(rounds + 1)][1:]  # the first one loads the modules
        start, end = (statistics.median(column) for column in zip(*clusters, strict=True))
        print(
            f"  {f'fixture, profile {profile}':<36} {start * 1e3:6.0f} ms  {(start + end) / floor:5.1f} ×"
            f"   with its end in {end * 1e3:4.0f} ms",
            flush=True,
        )


def private_cluster(profile: Literal["plain", "full"]) -> tuple[float, float]:
    """Seconds to start and to stop a cluster of the fixture, with a client that has asked it something."""
    from seamark.testing import Cluster

    began = time.perf_counter()
    cluster = Cluster(profile=profile).start()
    ready = time.perf_counter() - began
    trust = ssl.create_default_context(cafile=str(cluster.ca))
    client = http.client.HTTPSConnection(cluster.url.removeprefix("https://"), context=trust)
    client.request("GET", "/version")
    client.getresponse().read()
    began = time.perf_counter()
    cluster.stop()
    end = time.perf_counter() - began
    client.close()
    return ready, end


if __name__ == "__main__":
    main()
