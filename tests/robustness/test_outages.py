"""etcd goes away under load, in every way it can: nothing is lost, repeated or stale, and the load goes on afterwards.

Two API servers share three etcds, one of them with controllers and DNS.  Three rounds of each outage: short ones, and
minutes long ones with many clients by `make soak`, which prints how soon the writers were as fast as before.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import msgspec
import pytest
from crowd import NAMESPACE, Crowd, Line, crowd
from faults import Relay, relays
from seamark_process import Seamark

import etcd_server
from etcd_server import EtcdCluster, Member
from free_ports import free_port


class Size(msgspec.Struct, frozen=True):
    writers: int
    watchers: int
    seconds: float  # etcd is away
    before: float  # seconds of work before that


SHORT = Size(writers=8, watchers=10, seconds=1.5, before=0.3)
FULL = Size(writers=64, watchers=200, seconds=60, before=10)
ROUNDS = 3
RECOVERY_SECONDS = 2  # promised, on a machine that has the cores to itself
FULL_RATE = 0.8  # of the rate before; the rest is the noise of a machine


class Outcome(msgspec.Struct, frozen=True):
    """``recovered``: seconds from etcd's return to the full rate."""

    recovered: float
    measured: str


class Site(msgspec.Struct):
    """Two servers, and what they need."""

    etcd: EtcdCluster
    between: list[Relay]
    servers: list[Seamark]
    dns_port: int


@asynccontextmanager
async def site(directory: Path) -> AsyncIterator[Site]:
    if etcd_server.binary() is None:
        pytest.skip("no etcd binary runs here")
    etcd = EtcdCluster(directory, members=3)
    servers: list[Seamark] = []
    try:
        etcd.start()
        async with relays(etcd.addresses) as between:
            port = free_port()
            common = ("--plain-http", "--store", f"etcd://{','.join(relay.address for relay in between)}/outages")
            try:
                start = partial(asyncio.to_thread, Seamark)
                servers.append(await start(directory / "up", *common, "--dns-port", str(port), verb="up"))
                servers.append(await start(directory / "apiserver", *common))
                yield Site(etcd, between, servers, port)
            finally:
                for server in servers:
                    server.kill()
    finally:
        etcd.stop()


# --- how etcd goes away; each returns what brings it back -------------------------------------------

Back = Callable[[], Awaitable[None]]


async def _healthy(site: Site) -> None:
    for member in site.etcd.members:
        await asyncio.to_thread(site.etcd.wait_until_healthy, member)


async def killed(site: Site) -> Back:
    for member in site.etcd.members:
        member.kill()

    async def back() -> None:
        for member in site.etcd.members:
            member.start()
        await _healthy(site)

    return back


async def stopped(site: Site) -> Back:
    for member in site.etcd.members:
        member.freeze()

    async def back() -> None:
        for member in site.etcd.members:
            member.thaw()
        await _healthy(site)

    return back


async def partitioned(site: Site) -> Back:
    for relay in site.between:
        relay.hold()

    async def back() -> None:
        for relay in site.between:
            relay.release()

    return back


async def leader_moved(site: Site) -> Back:
    """The leader stops, and the two others elect one of themselves."""
    leader: Member = await asyncio.to_thread(site.etcd.leader)
    leader.freeze()

    async def back() -> None:
        leader.thaw()
        await _healthy(site)

    return back


WAYS = (killed, stopped, partitioned, leader_moved)


# --- one outage ----------------------------------------------------------------------------------------


async def outage(at: Site, clients: Crowd, take_away: Callable[[Site], Awaitable[Back]], size: Size) -> Outcome:
    """Take etcd away from the clients, and give it back; returns what was measured."""
    await clients.until_more(5 * size.writers)
    begun = time.monotonic()
    await clients.until(begun + size.before)
    rate = clients.rate(begun, time.monotonic())
    refused, answered, made = clients.refused.total(), sum(n.answered for n in clients.names), len(clients.acknowledged)
    back = await take_away(at)
    gone = time.monotonic()
    await clients.until(gone + size.seconds)
    if take_away is leader_moved:
        await clients.until_more(1)  # two of three are enough
    refused, made = clients.refused.total() - refused, len(clients.acknowledged) - made
    answered = sum(names.answered for names in clients.names) - answered
    assert answered > 0
    for server in at.servers:
        line = Line(server)
        assert (await line.ask("GET", "/livez"))[0] == 200
        line.close()
    await back()
    returned = time.monotonic()
    await clients.until_more(5 * size.writers)
    await clients.until(returned + size.before)
    # Other work on the machine makes the clients slower or faster meanwhile, so the lower rate is the one to reach.
    after = clients.rate(returned + size.before / 2, time.monotonic())
    recovered = clients.recovered(returned, FULL_RATE * min(rate, after))
    measured = (
        f"{rate:.0f} writes/s before and {after:.0f} after, {made} done and {refused} requests refused in "
        f"{size.seconds:.0f} s, {answered} DNS queries answered, at full rate {recovered:.2f} s after etcd's return"
    )
    return Outcome(recovered, measured)


async def test_etcd_goes_away_in_every_way(tmp_path: Path) -> None:
    async with (
        site(tmp_path) as at,
        crowd(at.servers, writers=SHORT.writers, watchers=SHORT.watchers, dns_port=at.dns_port) as clients,
    ):
        for take_away in WAYS * ROUNDS:
            await outage(at, clients, take_away, SHORT)
        assert await clients.finish() > 0


@pytest.mark.soak
@pytest.mark.parametrize("take_away", WAYS)
async def test_etcd_goes_away_for_a_minute_under_load(
    tmp_path: Path, take_away: Callable[[Site], Awaitable[Back]], capsys: pytest.CaptureFixture[str]
) -> None:
    async with site(tmp_path) as at:
        for number in range(ROUNDS):
            async with crowd(at.servers, writers=FULL.writers, watchers=FULL.watchers, dns_port=at.dns_port) as clients:
                outcome = await outage(at, clients, take_away, FULL)
                seen = await clients.finish()
            with capsys.disabled():
                again = max(watcher.reconnects for watcher in clients.watchers)
                print(f"\n{take_away.__name__} {number}: {outcome.measured}; {seen} changes seen, {again} reconnects")
            assert outcome.recovered < RECOVERY_SECONDS, outcome
            line = Line(at.servers[0])
            await line.ask("DELETE", f"/api/v1/namespaces/{NAMESPACE}")
            while (await line.ask("GET", f"/api/v1/namespaces/{NAMESPACE}"))[0] != 404:
                await asyncio.sleep(0.1)
            line.close()
