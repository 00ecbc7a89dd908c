"""Durable writes of 1 KB, one at a time and 64 in flight, compared with a bare sqlite3 loop on the same disk.

Each figure is also given as a ratio to the bare loop of the same run, because disks differ.  With ``--busy`` the event
loop is kept busy in turns of that many milliseconds, as in a loaded API server.

Run: ``python -m bench.store [--seconds 2] [--keys 20000] [--busy 1] [--store etcd://127.0.0.1:2379/bench]``
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import sqlite3
import tempfile
import time
from pathlib import Path

import uvloop

from seamark.store.opening import open_store
from seamark.store.protocol import Store, Write

VALUE = os.urandom(1024)


def key(number: int) -> str:
    return f"/registry/pods/namespace-{number % 50}/pod-{number:07d}"


def bare_loop(path: Path, seconds: float, per_commit: int) -> float:
    """Upserts per second of SQLite itself, into one plain table."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE rows (key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID")
    written, end = 0, time.perf_counter() + seconds
    while time.perf_counter() < end:
        connection.execute("BEGIN")
        connection.executemany(
            "INSERT OR REPLACE INTO rows VALUES (?, ?)", [(key(written + i), VALUE) for i in range(per_commit)]
        )
        connection.execute("COMMIT")
        written += per_commit
    connection.close()
    return written / seconds


async def engine(store: Store, seconds: float, *, in_flight: int, keys: int) -> tuple[float, list[float], float]:
    """Writes per second, the time of each write, and CPU seconds per write."""
    numbers, times = itertools.count(), []
    end = time.perf_counter() + seconds

    async def client() -> None:
        while time.perf_counter() < end:
            began = time.perf_counter()
            await store.commit([Write(key(next(numbers) % keys), VALUE)])
            times.append(time.perf_counter() - began)

    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(client() for _ in range(in_flight)))
    took = time.perf_counter() - began
    return len(times) / took, sorted(times), (time.process_time() - cpu) / len(times)


async def measure(arguments: argparse.Namespace, directory: Path) -> None:
    bare = {n: bare_loop(directory / f"bare-{n}.db", arguments.seconds, n) for n in (1, 64)}
    for n, rate in bare.items():
        print(f"bare sqlite3, {n:2} per commit  {rate:8,.0f}/s")
    store = open_store(arguments.store or str(directory / "store.db"))
    await store.open()
    background = [asyncio.create_task(follow(store)), asyncio.create_task(burn(arguments.busy / 1e3))]
    for in_flight in (1, 64, 256):
        rate, times, cpu = await engine(store, arguments.seconds, in_flight=in_flight, keys=arguments.keys)
        reference = bare[min(in_flight, 64)]
        print(
            f"engine, {in_flight:3} in flight        {rate:8,.0f}/s  {rate / reference:4.2f} of bare"
            f"  p50 {1e3 * times[len(times) // 2]:5.2f} ms  p99 {1e3 * times[int(len(times) * 0.99)]:5.2f} ms"
            f"  CPU {1e6 * cpu:4.0f} µs"
        )
    began = time.perf_counter()
    revision = await store.revision()
    await store.compact(revision)
    took = time.perf_counter() - began
    print(f"compacting {revision:,} revisions took {took:.2f} s, {1e6 * took / revision:.1f} µs each")
    for task in background:
        task.cancel()
    await asyncio.gather(*background, return_exceptions=True)
    await store.close()


async def burn(turn: float) -> None:
    """Keep the event loop busy in turns of this many seconds."""
    while turn:
        end = time.perf_counter() + turn
        while time.perf_counter() < end:
            pass
        await asyncio.sleep(0)


async def follow(store: Store) -> None:
    async for _ in store.watch("/", await store.revision()):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--keys", type=int, default=20_000)
    parser.add_argument("--busy", type=float, default=0.0, metavar="MILLISECONDS")
    parser.add_argument("--store", default="", metavar="URL")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        uvloop.run(measure(arguments, Path(directory)))


if __name__ == "__main__":
    main()
