"""The userspace engine: routes in, sockets and connections out."""

import asyncio
import socket
from contextlib import asynccontextmanager

import pytest
from backends import ask, named, tcp_server, udp_client, udp_server
from route_worlds import endpoint, service, slice, table

from free_ports import free_port
from seamark.proxy.engine import Problem, Update
from seamark.proxy.userspace.engine import UserspaceEngine
from seamark.proxy.userspace.places import Place
from seamark.rules.routing.surroundings import Surroundings, ThisNode
from turns import until
from virtual_time import VirtualClock

AROUND = Surroundings(ThisNode("node-a"))


class World:
    """An engine, and the objects that its routes follow from."""

    def __init__(self, engine):
        self.engine = engine
        self.table = table(around=AROUND)
        self.touched = set()

    async def put(self, *objects, everything=False):
        for each in objects:
            put = self.table.put_service if hasattr(each, "spec") else self.table.put_slice
            self.touched |= put(each)
        keys = self.table if everything else self.touched
        await self.engine.apply(Update({key: self.table.routes(key) for key in keys}, AROUND, everything))
        self.touched = set()

    async def remove(self, name):
        self.touched |= self.table.remove_service("default", name)
        await self.put()


@asynccontextmanager
async def engine(**more):
    made = UserspaceEngine(node_ports_at=("127.0.0.1",), take_addresses=False, **more)
    await made.start()
    world = World(made)
    try:
        await world.put(everything=True)
        yield world
    finally:
        await made.close()


def node_port(port, name="web", protocol="TCP", **more):
    ports = [{"port": 80, "protocol": protocol, "nodePort": port}]
    return service(name, type="NodePort", ports=ports, **more)


def leads_to(*addresses, of="web", protocol="TCP", **conditions):
    """Slices, because each of our backends on loopback has a port of its own."""
    return [
        slice(
            f"{of}-{number}",
            endpoint(host, None, **conditions),
            of=of,
            ports=[{"name": "", "port": port, "protocol": protocol}],
        )
        for number, (host, port) in enumerate(addresses)
    ]


async def test_a_node_port_follows_its_service():
    port = free_port()
    async with engine() as world, tcp_server(named("one")) as one, tcp_server(named("two")) as two:
        await world.put(node_port(port))
        with pytest.raises(ConnectionRefusedError):
            await ask(("127.0.0.1", port))
        await world.put(*leads_to(one))
        assert await ask(("127.0.0.1", port)) == "one"
        await world.put(*leads_to(two))
        assert await ask(("127.0.0.1", port)) == "two"
        await world.put(*leads_to(two, one))
        assert {await ask(("127.0.0.1", port)) for _ in range(4)} == {"one", "two"}
        await world.put(*leads_to(one, two, ready=False))
        with pytest.raises(ConnectionRefusedError):
            await ask(("127.0.0.1", port))
        await world.put(*leads_to(one, two))
        await world.remove("web")
        assert world.engine.rules == 0
        with pytest.raises(ConnectionRefusedError):
            await ask(("127.0.0.1", port))


async def test_session_affinity_is_shared_by_the_frontends_of_a_port():
    port = free_port()
    balanced = service(
        type="LoadBalancer",
        sessionAffinity="ClientIP",
        ports=[{"port": port, "protocol": "TCP", "nodePort": port}],
        ingress=[{"ip": "127.0.0.77", "ipMode": "VIP"}],
    )
    async with engine() as world, tcp_server(named("one")) as one, tcp_server(named("two")) as two:
        await world.put(balanced, *leads_to(one, two))
        first = await ask(("127.0.0.1", port))
        assert {await ask(("127.0.0.1", port)) for _ in range(4)} == {first}
        reader, writer = await asyncio.open_connection("127.0.0.77", port, local_addr=("127.0.0.1", 0))
        writer.write(b"?\n")
        assert (await reader.readline()).decode().strip() == first
        writer.close()


async def test_addresses_that_take_rights_are_left_alone():
    async with engine() as world, tcp_server(named("one")) as one:
        await world.put(service(externalIPs=["198.51.100.7"]), *leads_to(one))
        assert world.engine.rules == 0
        assert not world.engine.problems


async def test_backends_at_which_nothing_answers_refuse_at_once():
    port = free_port()
    async with engine(silent=("10.244.0.0/14",)) as world:
        await world.put(node_port(port), *leads_to(("10.244.1.5", 8080)))
        with pytest.raises(ConnectionRefusedError):
            await ask(("127.0.0.1", port))


async def test_a_port_of_another_program_is_told_once_and_tried_again():
    told, clock = [], VirtualClock()
    other = socket.create_server(("127.0.0.1", free_port()))
    port = other.getsockname()[1]
    async with engine(report=told.append, clock=clock) as world, tcp_server(named("one")) as one:
        await world.put(node_port(port), *leads_to(one))
        problem = Problem("default/web", f"nodePort 127.0.0.1:{port}/TCP cannot be served: Address already in use")
        assert told == [problem]
        assert world.engine.problems == {Place("TCP", "127.0.0.1", port): problem}
        clock.pass_without_tasks(30)
        assert len(told) == 1
        other.close()
        clock.pass_without_tasks(5)
        assert not world.engine.problems
        assert told == [problem, None]
        assert await ask(("127.0.0.1", port)) == "one"
        assert clock.next_due() is None or world.engine._retry is None


async def test_a_problem_ends_with_its_service():
    clock = VirtualClock()
    with socket.create_server(("127.0.0.1", free_port())) as other:
        async with engine(clock=clock) as world:
            await world.put(node_port(other.getsockname()[1]), *leads_to(("127.0.0.1", 9)))
            assert world.engine.problems
            await world.remove("web")
            assert not world.engine.problems


async def test_everything_means_that_the_rest_goes():
    ports = [free_port(), free_port()]
    async with engine() as world, tcp_server(named("one")) as one:
        for number, port in enumerate(ports):
            name = f"web-{number}"
            await world.put(node_port(port, name, ip=f"10.96.0.{number + 1}"), *leads_to(one, of=name))
        assert world.engine.rules == 2
        world.table.remove_service("default", "web-0")
        await world.put(everything=True)
        assert world.engine.rules == 1
        assert await ask(("127.0.0.1", ports[1])) == "one"


async def test_udp_flows_move_when_their_backend_no_longer_serves():
    port = free_port()
    async with engine() as world, udp_server("a") as a, udp_server("b") as b:
        await world.put(node_port(port, protocol="UDP"), *leads_to(a.address, protocol="UDP"))
        async with udp_client(("127.0.0.1", port)) as client:
            assert await client.ask(b"1") == b"a:1"
            unready = {"ready": False, "serving": True, "terminating": True}
            await world.put(
                slice("web-0", endpoint("127.0.0.1", None, **unready), ports=_udp(a)),
                slice("web-1", endpoint("127.0.0.1", None), ports=_udp(b)),
            )
            assert await client.ask(b"2") == b"a:2"  # it serves until it ends
            await world.put(slice("web-0", ports=_udp(a)))
            assert await client.ask(b"3") == b"b:3"


def _udp(backend):
    return [{"name": "", "port": backend.address[1], "protocol": "UDP"}]


async def test_ten_thousand_endpoint_flaps_leave_nothing_behind_and_disturb_no_connection():
    port = free_port()
    async with engine() as world, tcp_server(named("one")) as one, tcp_server(named("two")) as two:
        await world.put(node_port(port), *leads_to(one))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in range(10_000):
            (changed,) = leads_to(one if number % 2 else two, ready=number % 3 != 0)
            await world.put(changed)
            if number % 1000 == 0:
                writer.write(b"?\n")
                assert await reader.readline() == b"one\n"
        await world.put(*leads_to(two))
        assert await ask(("127.0.0.1", port)) == "two"
        assert world.engine.rules == 1
        assert len(world.engine._balancers) == 1
        writer.close()
        await until(lambda: not world.engine._tcp.links)


async def test_rolling_replacement_of_all_backends_loses_no_request():
    """Clients keep asking on their connections and on new ones while every backend is replaced, one after the other."""
    port, asked = free_port(), 0
    rolling = True

    async def client():
        nonlocal asked
        while rolling:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(5):
                writer.write(b"?\n")
                answer = await reader.readline()
                assert answer.startswith(b"backend-"), "a request was lost"
                asked += 1
            writer.close()

    async with engine() as world:
        generations = [[tcp_server(named(f"backend-{g}-{n}")) for n in range(3)] for g in range(5)]
        running = [(each, await each.__aenter__()) for each in generations[0]]
        await world.put(node_port(port), *leads_to(*(address for _, address in running)))
        clients = [asyncio.create_task(client()) for _ in range(20)]
        for generation in generations[1:]:
            for each in generation:
                running.append((each, await each.__aenter__()))
                leaving, gone = running.pop(0)
                await world.put(*leads_to(*(address for _, address in running)))
                await until(lambda gone=gone: not _connected(world, gone))  # the old one drains, then it ends
                await leaving.__aexit__(None, None, None)
        rolling = False
        await asyncio.gather(*clients)
        for each, _ in running:
            await each.__aexit__(None, None, None)
    assert asked > 100


def _connected(world, address):
    links = world.engine._tcp.links
    return any(link.back is not None and link.back.sock.getpeername() == address for link in links if _open(link))


def _open(link):
    try:
        link.back.sock.getpeername()
    except (OSError, AttributeError):
        return False
    return True
