"""The engine against the kernel, in a network namespace of its own."""

import asyncio
import shutil
import socket
import subprocess

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from namespaces import alone
from route_worlds import AROUND, endpoint, put, service, services, slice, slices, table

from seamark.linux.netlink import Message, NetlinkError, attributes, pairs, text
from seamark.proxy.engine import Unsupported, Update
from seamark.proxy.nftables import engine as engine_module
from seamark.proxy.nftables import layout
from seamark.proxy.nftables import ruleset as r
from seamark.proxy.nftables.engine import NftablesEngine, remove_tables
from seamark.proxy.nftables.kernel import Kernel
from seamark.rules.objects.service import Service

WEB = [
    service(
        ip=["10.96.0.1", "fd00:96::1"], type="NodePort", ports=[{"port": 80, "protocol": "TCP", "nodePort": 30080}]
    ),
    slice("four", endpoint("10.244.1.1"), endpoint("10.244.2.1", "node-b")),
    slice("six", endpoint("fd00:10:244::1"), family="IPv6"),
    service("sticky", ip="10.96.0.2", sessionAffinity="ClientIP"),
    slice("s", endpoint("10.244.1.1"), endpoint("10.244.1.2"), of="sticky"),
]
MORE = slice("four", endpoint("10.244.1.1"), endpoint("10.244.2.1", "node-b"), endpoint("10.244.1.3"))


async def written(of, engine=None):
    """An engine that has carried out everything in a table."""
    engine = engine or NftablesEngine()
    await engine.start()
    await engine.apply(everything(of))
    return engine


def everything(of):
    return Update({key: of.routes(key) for key in of}, of.surroundings, everything=True)


def differing(engine):
    """What the kernel has differently from what the engine wants.

    Chains for numbers of endpoints that no Service has any more do not count: they stay until the next start.
    """
    found = r.difference(layout.TABLE, engine.kernel.read(), engine._goal())
    return [
        each
        for each in found
        if not (each.kind in (r.DELETE_CHAIN, r.DELETE_RULE) and any(way in each.body for way in (b"to-", b"local-")))
    ]


async def changed(engine, of, each):
    touched = put(of, each)
    await engine.apply(Update({key: of.routes(key) for key in touched}, of.surroundings))


@alone
async def test_what_is_written_is_what_is_wanted():
    engine = await written(table(*WEB))
    assert differing(engine) == []
    assert engine.rules > 10
    await engine.close()


@alone
async def test_a_change_touches_only_what_it_is_about():
    of = table(*WEB)
    engine = await written(of)
    sent = []
    carry_out = engine.kernel.carry_out
    engine.kernel.carry_out = lambda messages: (sent.extend(messages), carry_out(messages))
    await changed(engine, of, slice("four", endpoint("10.244.1.1"), endpoint("10.244.2.2", "node-b")))
    assert differing(engine) == []
    assert {message.family for message in sent} == {2}
    assert {message.kind for message in sent} == {r.DELETE_ELEMENTS, r.NEW_ELEMENTS}
    assert sum(len(list(pairs(attributes(message.body)[3]))) for message in sent) == 6  # each way, and the hairpin
    await engine.close()


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.one_of(services, slices, st.tuples(st.just("gone"), st.one_of(services, slices))), max_size=15))
def test_change_by_change_equals_everything_at_once(history):
    @alone
    async def run():
        of = table()
        engine = await written(of)
        for event in history:
            if isinstance(event, tuple):
                meta = event[1].metadata
                remove = of.remove_service if isinstance(event[1], Service) else of.remove_slice
                touched = remove(meta.namespace, meta.name)
            else:
                touched = put(of, event)
            await engine.apply(Update({key: of.routes(key) for key in touched}, of.surroundings))
        assert differing(engine) == []
        await engine.close()

    run()


@alone
async def test_a_restart_takes_over_without_touching_anything():
    of = table(*WEB)
    first = await written(of)
    before = first.kernel.generation()
    await first.close()
    second = await written(of)
    assert second.kernel.generation() == before
    await second.close()


@alone
async def test_what_changed_while_it_was_away_is_made_good():
    of = table(*WEB)
    await (await written(of)).close()
    put(of, MORE)
    of.remove_service("default", "sticky")
    engine = await written(of)
    assert differing(engine) == []
    assert not [name for _, name in engine.kernel.read().chains if name.startswith("affinity")]
    await engine.close()


def _key(table_name, name):
    return text(1, table_name) + text(2, name)


@pytest.mark.parametrize(
    "edit",
    [
        [r.delete_table(layout.TABLE, 2)],
        [Message(r.DELETE_RULE, 2, _key(layout.TABLE, "prerouting"))],
        [Message(r.DELETE_ELEMENTS, 2, _key(layout.TABLE, "services"))],
        [Message(r.DELETE_ELEMENTS, 10, _key(layout.TABLE, "pods"))],
        [Message(r.NEW_CHAIN, 2, text(1, layout.TABLE) + text(3, "stranger"), 0x400)],
        [
            r.delete_table(layout.TABLE, 10),
            *r.difference(layout.TABLE, r.Ruleset(), r.Ruleset({10}, {(10, "services"): r.SetSpec((r.MARK,))})),
        ],
    ],
    ids=["table gone", "rules gone", "elements gone", "ranges gone", "a chain more", "another type"],
)
@alone
async def test_what_strangers_change_is_repaired(edit):
    engine = await written(table(*WEB))
    stranger = Kernel("other")
    stranger.carry_out(edit)
    assert differing(engine)
    await engine.apply(Update({}, AROUND))
    assert differing(engine) == []
    generation = engine.kernel.generation()
    await engine.apply(Update({}, AROUND))
    assert engine.kernel.generation() == generation
    stranger.close()
    await engine.close()


@alone
async def test_tables_of_others_stay():
    others = Kernel("other")
    others.carry_out(r.difference("other", r.Ruleset(), r.Ruleset({2}, chains={(2, "theirs"): r.Chain()})))
    engine = await written(table(*WEB))
    await engine.close()
    assert remove_tables()
    assert not remove_tables()
    assert others.read().chains == {(2, "theirs"): r.Chain()}
    others.close()


@alone
async def test_a_refused_change_leaves_everything_as_it_was_and_is_made_good_later():
    of = table(*WEB)
    engine = await written(of)
    before = engine.kernel.read()
    carry_out = engine.kernel.carry_out
    bad = Message(r.DELETE_SET, 2, _key(layout.TABLE, "no-such-set"))
    engine.kernel.carry_out = lambda messages: carry_out([*messages, bad])
    with pytest.raises(NetlinkError, match="No such file"):
        await changed(engine, of, MORE)
    assert engine.kernel.read() == before
    engine.kernel.carry_out = carry_out
    await engine.apply(Update({"default/web": of.routes("default/web")}, AROUND))
    assert differing(engine) == []
    await engine.close()


@alone
async def test_elements_that_somebody_removed_do_not_stop_changes():
    of = table(*WEB)
    engine = await written(of)
    engine.kernel.carry_out([Message(r.DELETE_ELEMENTS, 2, _key(layout.TABLE, "endpoints"))])
    shorter = slice("four", endpoint("10.244.1.1"))
    with pytest.raises(NetlinkError):
        await changed(engine, of, shorter)
    await engine.apply(Update({"default/web": of.routes("default/web")}, AROUND))
    assert differing(engine) == []
    await engine.close()


@alone
async def test_other_settings_change_the_rules():
    engine = await written(table(*WEB))
    everywhere = msgspec.structs.replace(
        AROUND, masquerade_all=True, node_port_addresses=("0.0.0.0/0", "::/0"), service_cidrs=("10.96.0.0/16",)
    )
    await engine.apply(Update({}, everywhere))
    assert differing(engine) == []
    unknown = msgspec.structs.replace(AROUND, cluster_cidrs=())
    await engine.apply(Update({}, unknown))
    assert differing(engine) == []
    await engine.close()


@alone
async def test_ten_thousand_flaps_leave_nothing_behind():
    of = table(*WEB)
    engine = await written(of)
    size = len(engine.kernel.read())
    there, gone = slice("four", endpoint("10.244.1.1")), slice("four")
    for flap in range(10_000):
        await changed(engine, of, gone if flap % 2 else there)
    await changed(engine, of, WEB[1])
    assert differing(engine) == []
    assert len(engine.kernel.read()) - size <= 4  # the chains for one endpoint
    await engine.close()


@pytest.mark.skipif(shutil.which("nft") is None, reason="there is no nft on this machine")
@alone
async def test_nft_can_print_the_rules():
    engine = await written(table(*WEB))
    done = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "10.96.0.1 . tcp . 80 : goto to-2" in done.stdout
    await engine.close()


@pytest.mark.parametrize(("number", "words"), [(1, "CAP_NET_ADMIN"), (93, "no nftables"), (12, "cannot be used")])
async def test_what_is_missing_is_named(number, words, monkeypatch):
    def refused(*_):
        raise OSError(number, "no")

    monkeypatch.setattr(engine_module, "Kernel", refused)
    with pytest.raises(Unsupported, match=words):
        await NftablesEngine().start()
    with pytest.raises(Unsupported, match=words):
        remove_tables()


# --- packets ---------------------------------------------------------------------------------------


def listening(address, kind):
    server = socket.socket(socket.AF_INET, kind)
    server.bind((address, 8080))
    server.settimeout(5)
    if kind == socket.SOCK_STREAM:
        server.listen()
    return server


def network():
    """This machine alone: Pods' addresses of its own, and a way to everywhere that leads back."""
    for command in ("link set lo up", "addr add 10.244.1.1/32 dev lo", "addr add 10.244.1.2/32 dev lo"):
        subprocess.run(["ip", *command.split()], check=True)
    subprocess.run(["ip", "route", "add", "10.96.0.0/16", "dev", "lo"], check=True)


async def moved(client, server):
    """Returns once a flow has reached this server."""
    server.setblocking(False)
    while True:
        client.send(b"moved")
        try:
            assert server.recv(10) == b"moved"
        except BlockingIOError:
            await asyncio.sleep(0.01)
        else:
            server.settimeout(5)
            return


needs_ip = pytest.mark.skipif(shutil.which("ip") is None, reason="there is no ip on this machine")


@needs_ip
@alone
async def test_a_connection_reaches_its_endpoint_and_is_refused_without():
    network()
    of = table(service(), slice("s", endpoint("10.244.1.1")))
    engine = await written(of)
    with listening("10.244.1.1", socket.SOCK_STREAM) as server, socket.socket() as client:
        client.settimeout(5)
        client.connect(("10.96.0.1", 80))
        assert server.accept()[1]
    await changed(engine, of, slice("s"))
    with socket.socket() as client:
        client.settimeout(5)
        with pytest.raises(ConnectionRefusedError):
            client.connect(("10.96.0.1", 80))
    await engine.close()


@needs_ip
@alone
async def test_a_udp_flow_moves_when_its_endpoint_goes():
    network()
    ports = [{"name": "", "port": 8080, "protocol": "UDP"}]
    of = table(service(ports=[{"port": 80, "protocol": "UDP"}]), slice("s", endpoint("10.244.1.1"), ports=ports))
    engine = await written(of)
    with (
        listening("10.244.1.1", socket.SOCK_DGRAM) as first,
        listening("10.244.1.2", socket.SOCK_DGRAM) as second,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        client.connect(("10.96.0.1", 80))
        client.send(b"one")
        assert first.recv(10) == b"one"
        await changed(engine, of, slice("s", endpoint("10.244.1.2"), ports=ports))
        await moved(client, second)
        of.remove_service("default", "web")
        await engine.apply(Update({"default/web": None}, AROUND))
        client.send(b"goes on")
        while (received := second.recv(10)) != b"goes on":
            assert received == b"moved"
    await engine.close()


@needs_ip
@alone
async def test_flows_to_endpoints_that_went_while_it_was_away_move_at_the_start():
    network()
    ports = [{"name": "", "port": 8080, "protocol": "UDP"}]
    udp = service(ports=[{"port": 80, "protocol": "UDP"}])
    await (await written(table(udp, slice("s", endpoint("10.244.1.1"), ports=ports)))).close()
    with (
        listening("10.244.1.1", socket.SOCK_DGRAM) as first,
        listening("10.244.1.2", socket.SOCK_DGRAM) as second,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client,
    ):
        client.connect(("10.96.0.1", 80))
        client.send(b"one")
        assert first.recv(10) == b"one"
        engine = await written(table(udp, slice("s", endpoint("10.244.1.2"), ports=ports)))
        await moved(client, second)
    await engine.close()
