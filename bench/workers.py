"""One process and several (``--workers``) under the same load, in turns: what each operation costs, and whom.

The figure that counts is the CPU time per operation of the *busiest* process: with a core for each process, it decides
how many operations there can be.  So the ratio shows what more processes bring also on a machine that is too small, or
too busy, to show it as a rate.  Each figure is the best of the rounds, because other work on the machine only adds.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import uvloop
from bench._load import Result, Server, common_megabytes, drive, request, seamark_server
from bench.api import NAMESPACE, fan_out, one, pod

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


async def operations(server: Server, options: argparse.Namespace, turn: int) -> AsyncIterator[tuple[str, Result]]:
    clients = options.clients
    creates = [request(server, "POST", PODS, pod(f"p{turn}-{n}")) for n in range(options.pods)]
    yield "create", await drive(server, creates, clients)
    reads = [request(server, "GET", f"{PODS}/p{turn}-{n % options.pods}") for n in range(options.requests)]
    yield "get", await drive(server, reads, clients)
    lists = [request(server, "GET", f"{PODS}?limit=500")] * options.lists
    yield "list of 500 Pods", await drive(server, lists, clients)
    yield f"event to {options.watchers} watchers", await fan_out(server, options.watchers, options.events, f"fan{turn}")


async def run(options: argparse.Namespace) -> None:
    best: dict[str, dict[int, Result]] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        servers = {
            workers: running.enter_context(
                seamark_server(Path(folder) / str(workers), options.verb, "--workers", str(workers), *options.more)
            )
            for workers in options.workers
        }
        for server in servers.values():
            await one(server, "POST", "/api/v1/namespaces", msgspec.json.encode({"metadata": {"name": NAMESPACE}}))
        idle = {workers: common_megabytes(*server.pids) for workers, server in servers.items()}
        for turn in range(options.rounds):
            for workers, server in servers.items():
                async for what, result in operations(server, options, turn):
                    known = best.setdefault(what, {}).get(workers)
                    if known is None or (result.busiest or 0) < (known.busiest or 0):
                        best[what][workers] = result
        loaded = {workers: common_megabytes(*server.pids) for workers, server in servers.items()}
    first, *others = options.workers
    print("  µs of CPU per operation: all processes, the busiest; and how many times as many operations that allows")
    for what, found in best.items():
        base = found[first]
        cells = [f"{base.cpu or 0:7.0f} {base.busiest or 0:7.0f}"]
        for workers in others:
            each = found[workers]
            times = (base.busiest or 0) / (each.busiest or 1)
            cells.append(f"{each.cpu or 0:7.0f} {each.busiest or 0:7.0f} {times:5.2f} ×")
        print(f"  {what:<26} {'  |  '.join(cells)}", flush=True)
    for what, megabytes in (("MB, idle", idle), (f"MB, {options.pods * options.rounds} Pods", loaded)):
        cells = [f"{size:15.0f} {size / megabytes[first]:5.2f} ×" for size in megabytes.values()]
        print(f"  {what:<26} {'  |  '.join(cells)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--lists", type=int, default=200)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--watchers", type=int, default=300)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--verb", default="apiserver")
    parser.add_argument("more", nargs="*", help="further options of the server")
    uvloop.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
