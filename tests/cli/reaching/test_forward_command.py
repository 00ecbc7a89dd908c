"""``seamark forward`` as its users see it: the table, the names, the changes."""

from __future__ import annotations

import asyncio
import contextlib
import json

import dns.asyncquery
import dns.message
import pytest
from forwarded_cluster import ask, forwarded_cluster

from free_ports import free_port
from seamark import errors
from seamark.cli.failure import Failure
from seamark.cli.reaching import forward
from seamark.kinds.resource import SERVICES
from turns import until

PORT, OTHER = free_port(), free_port()


@contextlib.asynccontextmanager
async def forwarding(world, capsys, *words):
    """The command at work, and a function that returns all it has printed so far."""
    options = forward.parser().parse_args(list(words))
    ended = asyncio.Event()
    work = asyncio.ensure_future(forward._forward(options, world.connection, ended))
    said = {"out": "", "err": ""}

    def printed(stream="out"):
        read = capsys.readouterr()
        said["out"] += read.out
        said["err"] += read.err
        return said[stream]

    try:
        await until(lambda: work.done() or "ready\n" in printed() or '"services"' in printed())
        if work.done():
            work.result()
        yield printed
        ended.set()
        await work
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)


async def web(world):
    await world.pod("web-1")
    await world.service("web", [{"name": "http", "port": PORT}, {"name": "dns", "port": 53, "protocol": "UDP"}])
    await world.endpoints("web", {"10.1.0.1": "web-1"}, [{"name": "http", "port": 8080, "protocol": "TCP"}])


async def test_a_table_then_a_line_for_each_change(capsys):
    async with forwarded_cluster() as world:
        await web(world)
        async with forwarding(world, capsys, "-l", "component!=apiserver", "--dns", "127.0.0.1:0") as printed:
            table = printed().splitlines()
            assert table[0].split() == ["NAME", "ADDRESS", "PORTS"]
            name, address, *ports = table[1].split()
            assert (name, " ".join(ports)) == ("web", f"{PORT}, 53/UDP not forwarded")
            (how,) = [line for line in table if "dig @" in line]
            server, port = how.partition("dig @")[2].split(" -p ")
            asked = dns.message.make_query(how.split()[-1], "A")
            answer = await dns.asyncquery.udp(asked, server, port=int(port.split()[0]))
            assert answer.answer[0][0].address == address
            assert await ask(address, PORT) == b"web-1:hello"
            await world.service("api", [{"port": OTHER}])
            await until(lambda: "+ api" in printed())
            await world.cluster.delete(SERVICES, "web", namespace="default")
            await until(lambda: f"- web  {address}" in printed())


async def test_json_has_everything_after_each_change(capsys):
    async with forwarded_cluster() as world:
        await web(world)
        async with forwarding(world, capsys, "-A", "-o", "json", "--dns", "none") as printed:
            first = json.loads(printed().splitlines()[0])
            assert first["dns"] is None
            assert [service["name"] for service in first["services"]] == ["kubernetes", "web"]
            assert first["services"][1]["ports"][0] | {"host": ""} == {
                "port": PORT,
                "local": PORT,
                "host": "",
                "name": "http",
            }
            await world.cluster.delete(SERVICES, "web", namespace="default")
            await until(lambda: len(printed().splitlines()) == 2)
            assert [each["name"] for each in json.loads(printed().splitlines()[1])["services"]] == ["kubernetes"]


async def test_an_empty_namespace_is_said_to_be_empty(capsys):
    words = ("-n", "empty", "--dns", "127.0.0.1:0")
    async with forwarded_cluster() as world, forwarding(world, capsys, *words) as printed:
        assert "(no Services in empty yet)" in printed()
        assert "web.empty.svc" in printed()


async def test_the_usual_dns_port_may_be_taken_but_one_that_was_asked_for_may_not(capsys, monkeypatch):
    async with forwarded_cluster() as world, forwarding(world, capsys, "--dns", "127.0.0.1:0") as printed:
        taken = printed().partition("dig @127.0.0.1 -p ")[2].split()[0]
        with pytest.raises(Failure, match=f"cannot listen on 127.0.0.1:{taken}"):
            async with forwarding(world, capsys, "--dns", f"127.0.0.1:{taken}"):
                pass
        monkeypatch.setattr(forward, "DNS", f"127.0.0.1:{taken}")
        async with forwarding(world, capsys, "--dns", f"127.0.0.1:{taken}") as again:
            assert "answering DNS on another port" in again("err")


async def test_mistakes_are_one_line(capsys):
    async with forwarded_cluster() as world:
        with pytest.raises(Failure, match="--dns"):
            async with forwarding(world, capsys, "--dns", "nonsense"):
                pass
        with pytest.raises(errors.BadRequest):
            async with forwarding(world, capsys, "-l", "a in b"):
                pass
