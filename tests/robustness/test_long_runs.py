"""Hours of random clients, by `make soak`: more seeds, longer runs and faults, and three etcds under two servers."""

from __future__ import annotations

import random
import uuid
from pathlib import Path

import pytest
from faults import Fault, for_a_while, full_disk, killed, member_killed, relays, repeated, stopped, worker_stopped
from in_process import Faltering, JumpingClock, servers
from processes import Machine, processes
from runs import check, run

import etcd_server
from seamark.store.opening import open_store

pytestmark = pytest.mark.soak

SEEDS = range(100, 400)
OPERATIONS = 400  # of each client
WHILE = (0.05, 3.0)  # seconds


@pytest.mark.parametrize("seed", SEEDS)
async def test_many_seeds_in_process(seed: int) -> None:
    chance, store = random.Random(seed), open_store("memory:")
    views = [Faltering(store, chance), Faltering(store, chance)]
    async with servers(store, views, chance, JumpingClock(chance)) as site:
        check(await run(site, seed, operations=OPERATIONS, gives_up=chance.choice((0, 0.05, 0.2))), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_file_and_everything_that_can_happen_to_its_server(tmp_path: Path, seed: int) -> None:
    machine, chance = Machine(tmp_path / "data"), random.Random(seed)
    lasting = [full_disk(machine), stopped(lambda: [machine.pid])]
    faults = repeated([killed([machine]), *(for_a_while(fault, *WHILE) for fault in lasting)])
    async with processes([machine], chance) as site:
        check(await run(site, seed, operations=OPERATIONS, faults=faults), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_file_and_processes_that_serve_together(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    machine = Machine(tmp_path / "data", "--workers", chance.choice("234"))
    lasting = [full_disk(machine), stopped(lambda: [machine.pid]), worker_stopped(machine)]
    faults = repeated([killed([machine]), *(for_a_while(fault, *WHILE) for fault in lasting)])
    async with processes([machine], chance) as site:
        check(await run(site, seed, operations=OPERATIONS, faults=faults), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_an_etcd_and_processes_that_serve_together(
    tmp_path: Path, seed: int, etcd: etcd_server.EtcdCluster
) -> None:
    """Two servers, one of them of several processes, each with a way of its own to the same etcd."""
    chance, prefix = random.Random(seed), uuid.uuid4().hex
    async with relays(etcd.addresses * 2) as between:
        stores = [f"etcd://{relay.address}/{prefix}" for relay in between]
        machine = Machine(tmp_path / "data-0", "--store", stores[0], "--workers", chance.choice("23"))
        machines = [machine, Machine(tmp_path / "data-1", "--store", stores[1])]
        lasting: list[Fault] = [
            stopped(lambda: [each.pid for each in machines]),
            worker_stopped(machine),
            *(fault for relay in between for fault in (relay.dropping, relay.holding, relay.delaying)),
        ]
        faults = repeated([killed(machines), *(for_a_while(fault, *WHILE) for fault in lasting)])
        async with processes(machines, chance) as site:
            check(await run(site, seed, operations=OPERATIONS, faults=faults), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_three_etcds_and_two_servers(tmp_path: Path, seed: int) -> None:
    """A member of etcd is killed or stopped, a server is, or one of the six ways between them fails."""
    if etcd_server.binary() is None:
        pytest.skip("no etcd binary runs here")
    chance = random.Random(seed)
    etcd = etcd_server.EtcdCluster(tmp_path, members=3)
    try:
        etcd.start()
        async with relays(etcd.addresses * 2) as between:
            machines = [
                Machine(tmp_path / f"data-{number}", "--store", f"etcd://{','.join(r.address for r in own)}/seamark")
                for number, own in enumerate((between[:3], between[3:]))
            ]
            lasting: list[Fault] = [
                stopped(lambda: [machine.pid for machine in machines]),
                stopped(lambda: [member.pid for member in etcd.members]),
                *(fault for relay in between for fault in (relay.dropping, relay.holding, relay.delaying)),
            ]
            once = [killed(machines), member_killed(etcd)] * len(between)
            faults = repeated([*once, *(for_a_while(fault, *WHILE) for fault in lasting)])
            async with processes(machines, chance) as site:
                check(await run(site, seed, operations=OPERATIONS, faults=faults), seed)
    finally:
        etcd.stop()
