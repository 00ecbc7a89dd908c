"""Random clients of two API servers in one process, which share a store and hear of its changes late."""

from __future__ import annotations

import random

import pytest
from in_process import Faltering, JumpingClock, Lagging, Late, relayed, servers
from runs import SEEDS, check, run

from seamark.store.opening import open_store
from seamark.store.relayed import AnnouncedStore, Board


@pytest.mark.parametrize("seed", SEEDS)
async def test_two_servers_are_one_cluster(seed: int) -> None:
    chance, store = random.Random(seed), open_store("memory:")
    async with servers(store, [Lagging(store, chance), Lagging(store, chance)], chance) as site:
        check(await run(site, seed), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_process_and_its_worker_are_one_server(seed: int) -> None:
    """A worker reads from a board how far the store is; each hears of the other's changes late."""
    chance, board = random.Random(seed), Board()
    announced = AnnouncedStore(open_store("memory:"), board)
    async with (
        relayed(announced, board) as worker,
        servers(announced, [Late(announced, chance), Late(worker, chance)], chance) as site,
    ):
        check(await run(site, seed), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_one_server_alone(seed: int) -> None:
    chance, store = random.Random(seed), open_store("memory:")
    async with servers(store, [store], chance) as site:
        check(await run(site, seed), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_commits_whose_outcome_is_not_known(seed: int) -> None:
    chance, store = random.Random(seed), open_store("memory:")
    async with servers(store, [Faltering(store, chance), Faltering(store, chance)], chance) as site:
        check(await run(site, seed), seed)


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_clock_that_jumps(seed: int) -> None:
    chance, store = random.Random(seed), open_store("memory:")
    async with servers(store, [Lagging(store, chance)] * 2, chance, JumpingClock(chance)) as site:
        check(await run(site, seed), seed)
