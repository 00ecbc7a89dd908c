"""UDP flows through the forwarder, over real sockets."""

import asyncio
import socket
from contextlib import asynccontextmanager

from backends import Fixed, udp_client, udp_server

from seamark.proxy.userspace.udp import UdpForwarder, bind_udp
from turns import until
from virtual_time import VirtualClock


@asynccontextmanager
async def forwarding(picker, *, most=100, clock=None):
    forwarder = UdpForwarder(most=most, **({"clock": clock} if clock else {}))
    sock = bind_udp("127.0.0.1", 0)
    try:
        yield forwarder, forwarder.listen(sock, picker), sock.getsockname()
    finally:
        forwarder.close()


async def test_a_flow_stays_with_its_backend_and_clients_are_told_apart():
    async with (
        udp_server("a") as a,
        udp_server("b") as b,
        forwarding(Fixed(a.address)) as (forwarder, listener, at),
        udp_client(at) as one,
        udp_client(at) as two,
    ):
        assert await one.ask(b"1") == b"a:1"
        listener.picker = Fixed(b.address)
        assert await two.ask(b"2") == b"b:2"
        assert await one.ask(b"3") == b"a:3"
        assert len(forwarder.flows) == 2


async def test_a_flow_moves_when_its_backend_is_gone():
    async with (
        udp_server("a") as a,
        udp_server("b") as b,
        forwarding(Fixed(a.address)) as (_, listener, at),
        udp_client(at) as client,
    ):
        assert await client.ask(b"1") == b"a:1"
        listener.picker = Fixed(b.address)
        listener.end_flows(lambda target: target == a.address)
        assert await client.ask(b"2") == b"b:2"


async def test_silence_ends_a_flow_and_closes_its_socket():
    clock = VirtualClock()
    async with (
        udp_server("a") as a,
        forwarding(Fixed(a.address), clock=clock) as (forwarder, _, at),
        udp_client(at) as client,
    ):
        await client.ask(b"1")
        (key,) = forwarder.flows
        sock = forwarder.flows.heard(key).sock
        clock.pass_without_tasks(115)
        assert len(forwarder.flows) == 1
        clock.pass_without_tasks(15)
        assert len(forwarder.flows) == 0
        assert sock.fileno() == -1
        assert clock.next_due() is None  # nothing to look after, no timer
        assert await client.ask(b"2") == b"a:2"


async def test_a_flood_of_flows_takes_no_more_than_its_share():
    """Neither descriptors nor entries grow, and a conversation that is under way goes on."""
    async with (
        udp_server("a") as a,
        udp_server("sink", answers=False) as sink,
        forwarding(Fixed(a.address), most=50) as (forwarder, listener, at),
        udp_client(at) as client,
    ):
        assert await client.ask(b"1") == b"a:1"
        listener.picker = Fixed(sink.address)
        for number in range(2000):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooding:
                flooding.sendto(b"x%d" % number, at)
            if number % 50 == 0:
                await asyncio.sleep(0)
        await until(lambda: forwarder.displaced.value > 500)
        assert len(forwarder.flows) == 50
        assert len(listener._keys) == 50
        assert await client.ask(b"2") == b"a:2"


async def test_a_backend_that_refuses_loses_its_flow():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as dead:
        dead.bind(("127.0.0.1", 0))
        address = dead.getsockname()
    async with udp_server("b") as b, forwarding(Fixed(address)) as (forwarder, listener, at), udp_client(at) as client:
        client.transport.sendto(b"1")
        await until(lambda: listener.picker.asked and not len(forwarder.flows))
        listener.picker = Fixed(b.address)
        assert await client.ask(b"2") == b"b:2"


async def test_datagrams_for_nobody_are_counted_and_forgotten():
    async with forwarding(Fixed(otherwise="drop")) as (forwarder, _, at), udp_client(at) as client:
        client.transport.sendto(b"1")
        await until(lambda: forwarder.lost.value == 1)
        assert len(forwarder.flows) == 0


async def test_a_large_datagram_passes_whole():
    async with udp_server("a") as a, forwarding(Fixed(a.address)) as (_, _, at), udp_client(at) as client:
        assert len(await client.ask(b"x" * 60_000)) == 60_002


async def test_a_closed_listener_ends_its_flows_and_refuses():
    async with (
        udp_server("a") as a,
        forwarding(Fixed(a.address)) as (forwarder, listener, at),
        udp_client(at) as client,
    ):
        assert await client.ask(b"1") == b"a:1"
        listener.close()
        assert len(forwarder.flows) == 0
        assert isinstance(await client.ask(b"2"), ConnectionRefusedError)
