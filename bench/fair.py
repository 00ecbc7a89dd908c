"""One user's get while another user's hundred clients list everything: as a multiple of the same get without them."""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

import msgspec
from bench.rig.load import Server, drive, request, server_of_users

USERS = {"storm": "storm-token", "calm": "calm-token"}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


def storm(server: Server, clients: int) -> None:
    """List until the process is ended."""
    endless = itertools.repeat(request(server, "GET", "/api/v1/configmaps"))
    asyncio.run(drive(server, endless, clients))  # type: ignore[arg-type]  # it only iterates


def mean_seconds(server: Server, gets: int) -> float:
    """How long a get takes, one after the other on one connection."""
    return asyncio.run(drive(server, [request(server, "GET", f"{CONFIGMAPS}/c0")] * gets, 1)).seconds / gets


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench fair", description=__doc__)
    parser.add_argument("--objects", type=int, default=1500, help="how many objects a list has")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--gets", type=int, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, server_of_users(Path(folder), USERS, "system:masters") as server:
        stormy, calm = (msgspec.structs.replace(server, token=token) for token in USERS.values())
        bodies = [json.dumps({"metadata": {"name": f"c{n}"}}).encode() for n in range(options.objects)]
        asyncio.run(drive(calm, [request(calm, "POST", CONFIGMAPS, body) for body in bodies], 16))
        alone = mean_seconds(calm, options.gets)
        other = multiprocessing.Process(target=storm, args=(stormy, options.clients), daemon=True)
        other.start()
        time.sleep(2)  # until all of its clients are at work
        beside = mean_seconds(calm, options.gets)
        other.kill()
    print(f"get alone                          {alone * 1e3:8.1f} ms")
    print(f"get beside {options.clients} clients that list    {beside * 1e3:8.1f} ms")
    print(f"ratio                              {beside / alone:8.1f}")
    return 0
