"""Cluster DNS compared with NSD (or Knot) on the same zone, queried by ``dnsperf``, in one run.

1,000 Services and 200 headless ones of 5 endpoints each; A, AAAA, SRV and PTR mixed; one and two workers.  Compare the
CPU time per query, user and system: queries per second depend on other load on the machine.  Then a flood of names that
do not exist, each asked once, so that caches do not help; and staleness: the time from a change of readiness, as
acknowledged by the API, to the first right answer.
Run: ``python -m bench dns [--seconds 5] [--rounds 3] [--changes 200]``; needs Debian's dnsperf, nsd or knot.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from bench.rig import dns_cluster as cluster
from bench.rig.dns_servers import Measured, knot, measure, nsd, seamark_dns, transferred_zones

SERVICES, HEADLESS, ENDPOINTS = 1000, 200, 5
FLOOD = 300_000

Serving = Callable[[], AbstractContextManager[tuple[int, list[int]]]]


def questions() -> Iterator[str]:
    zone = f"{cluster.NAMESPACE}.svc.cluster.local"
    for number in range(SERVICES):
        yield f"web-{number}.{zone} A"
        yield f"web-{number}.{zone} AAAA"
        yield f"_http._tcp.web-{number}.{zone} SRV"
        yield f"{cluster.reversed_address(cluster.service_address(number))} PTR"
    for number in range(HEADLESS):
        yield f"db-{number}.{zone} A"
        yield f"_http._tcp.db-{number}.{zone} SRV"
        for endpoint in range(ENDPOINTS):
            yield f"db-{number}-{endpoint}.db-{number}.{zone} A"
            yield f"{cluster.reversed_address(cluster.endpoint_address(number, endpoint))} PTR"


def show(name: str, found: Measured, base: Measured | None) -> None:
    ratio = f"{found.cpu / base.cpu:6.2f} ×" if base is not None else ""
    print(
        f"  {name:<26} {found.rate:9.0f}/s   {found.cpu:6.2f} µs per query ({found.user:5.2f} user,"
        f" {found.system:5.2f} system)  {ratio}",
        flush=True,
    )


def compare(servers: dict[str, Serving], asked: Path, options: argparse.Namespace, *, warm: bool = True) -> None:
    """Alternate the servers' rounds, so that other load affects all of them; the result is the median by CPU time."""
    found: dict[str, list[Measured]] = {name: [] for name in servers}
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(start()) for name, start in servers.items()}
        for number in range(options.rounds + warm):
            for name, (port, pids) in running.items():
                measured = measure(port, pids, asked, seconds=options.seconds)
                if number >= warm:
                    found[name].append(measured)
    medians = {name: sorted(each, key=lambda m: m.cpu)[len(each) // 2] for name, each in found.items()}
    base = next(iter(medians.values()))
    for name, median in medians.items():
        show(name, median, base if median is not base else None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0, help="of load per round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--changes", type=int, default=200, help="of readiness, for staleness")
    parser.add_argument("--peer", choices=("nsd", "knot"), default="nsd" if shutil.which("nsd") else "knot")
    options = parser.parse_args()
    if shutil.which("dnsperf") is None or shutil.which({"nsd": "nsd", "knot": "knotd"}[options.peer]) is None:
        print(f"  skipped: needs dnsperf and {options.peer} (Debian packages of these names)")
        return 0
    with tempfile.TemporaryDirectory() as name, cluster.running(Path(name)) as api:
        directory = Path(name)
        asyncio.run(cluster.fill(api, services=SERVICES, headless=HEADLESS, endpoints=ENDPOINTS))
        asked = directory / "questions"
        asked.write_text("".join(f"{line}\n" for line in questions()))
        zones = transferred_zones(api, directory)
        peer = {"nsd": nsd, "knot": knot}[options.peer]
        for workers in (1, 2):
            print(f"mixed questions, {workers} {'process' if workers == 1 else 'processes'}")
            compare(
                {
                    options.peer: lambda workers=workers: peer(zones, directory, workers),
                    "seamark dns": lambda workers=workers: seamark_dns(api, workers),
                },
                asked,
                options,
            )
        flood = directory / "flood"
        zone = f"{cluster.NAMESPACE}.svc.cluster.local"
        flood.write_text("".join(f"random-{number * 7919}.{zone} A\n" for number in range(FLOOD)))
        print("names that do not exist, each asked once, 1 process")
        compare(
            {options.peer: lambda: peer(zones, directory, 1), "seamark dns": lambda: seamark_dns(api, 1)},
            flood,
            options,
            warm=False,
        )
    with tempfile.TemporaryDirectory() as name:
        delays = asyncio.run(cluster.staleness(Path(name), options.changes))
    print("from an acknowledged change to the first right answer; none was wrong afterwards")
    for what, seconds in (("an EndpointSlice", delays.of_slices), ("a Pod's readiness", delays.of_pods)):
        quantiles = statistics.quantiles(seconds, n=100)
        print(
            f"  {what:<26} median {quantiles[49] * 1e3:.2f} ms, p99 {quantiles[98] * 1e3:.2f} ms,"
            f" worst of {len(seconds)}: {max(seconds) * 1e3:.2f} ms",
            flush=True,
        )
    return 0
