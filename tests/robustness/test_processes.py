"""Random clients of real servers that are killed and stopped, whose disk is full, whose etcd is cut off."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

from faults import for_a_while, full_disk, killed, relays, repeated, stopped, worker_stopped
from processes import Machine, processes
from runs import check, run

import etcd_server

SEED = 1
OPERATIONS = 60  # of each client
BRIEF = (0.05, 0.3)  # seconds


async def test_a_server_over_a_file_is_killed_and_stopped(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "data")
    faults = repeated([killed([machine]), for_a_while(stopped(lambda: [machine.pid]), *BRIEF)])
    async with processes([machine], random.Random(SEED)) as site:
        check(await run(site, SEED, operations=OPERATIONS, faults=faults), SEED)


async def test_three_processes_that_serve_together_are_killed_and_stopped(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "data", "--workers", "3")
    paused = [stopped(lambda: [machine.pid]), worker_stopped(machine)]
    faults = repeated([killed([machine]), *(for_a_while(each, *BRIEF) for each in paused)])
    async with processes([machine], random.Random(SEED)) as site:
        check(await run(site, SEED, operations=OPERATIONS, faults=faults), SEED)


async def test_a_server_over_a_file_has_no_room(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "data")
    faults = repeated([for_a_while(full_disk(machine), *BRIEF)])
    async with processes([machine], random.Random(SEED)) as site:
        check(await run(site, SEED, operations=OPERATIONS, faults=faults), SEED)


async def test_two_servers_are_cut_off_from_etcd(tmp_path: Path, etcd: etcd_server.EtcdCluster) -> None:
    async with relays(etcd.addresses * 2) as between:
        prefix = uuid.uuid4().hex
        machines = [
            Machine(tmp_path / f"data-{number}", "--store", f"etcd://{relay.address}/{prefix}")
            for number, relay in enumerate(between)
        ]
        network = [fault for relay in between for fault in (relay.dropping, relay.holding, relay.delaying)]
        faults = repeated([killed(machines), *(for_a_while(fault, *BRIEF) for fault in network)])
        async with processes(machines, random.Random(SEED)) as site:
            check(await run(site, SEED, operations=OPERATIONS, faults=faults), SEED)
