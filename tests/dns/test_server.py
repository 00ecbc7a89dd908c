"""The server as a whole: before it knows, while it knows, and when it has lost sight of the API."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import Any

import dns.asyncquery
import dns.message
import dns.rcode
import dns.rdataclass
import pytest
from asking import query_packet
from scripted_upstream import ScriptedUpstream
from watched_cluster import WatchedCluster, endpoint, service, slice_of

from failing_handlers import fail_once, failures
from seamark.dns.config import ZoneConfig
from seamark.dns.server import DnsServer, ListenError, bind
from seamark.dns.sockets import mmsg
from seamark.dns.zone.records import Type
from seamark.kinds.resource import ENDPOINT_SLICES


async def ask(server: DnsServer, name: str, kind: str = "A", *, address: int = 0, **query: Any) -> dns.message.Message:
    host, port = server.addresses[address][:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return await dns.asyncquery.udp(dns.message.make_query(name, kind, **query), host, port=port)


def data(message: dns.message.Message) -> list[str]:
    return sorted(item.to_text() for rrset in message.answer for item in rrset)


async def until_told(cluster: WatchedCluster) -> None:
    while cluster.behind:
        await asyncio.sleep(0)
    for _ in range(3):
        await asyncio.sleep(0)


async def status(server: DnsServer, path: str, method: str = "GET") -> tuple[int, str]:
    reader, writer = await asyncio.open_connection(*server.status.address)
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
    writer.close()
    return int(head.split()[1]), body


async def test_servfail_until_the_state_is_known(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    cluster.lose()
    async with serve(sync=False, sync_patience=0.0, status="127.0.0.1:0") as server:
        await server.listening.wait()
        for name in ("web.default.svc.cluster.local", "nope.default.svc.cluster.local", "1.0.96.10.in-addr.arpa"):
            assert (await ask(server, name)).rcode() == dns.rcode.SERVFAIL
        assert (await status(server, "/ready"))[0] == 503
        assert (await status(server, "/health"))[0] == 200
        assert "seamark_dns_synced 0\n" in (await status(server, "/metrics"))[1]


async def test_queries_wait_for_a_state_that_comes_soon(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    async with serve(sync=False, sync_patience=60.0) as server:
        assert data(await ask(server, "web.default.svc.cluster.local")) == ["10.96.0.1"]


async def test_a_lost_api_changes_no_answer(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    async with serve(status="127.0.0.1:0") as server:
        await until_told(cluster)
        assert await status(server, "/ready") == (200, "OK\n")
        cluster.lose()
        while not server.feed.lag:
            await asyncio.sleep(0.001)
        assert data(await ask(server, "web.default.svc.cluster.local")) == ["10.96.0.1"]
        code, text = await status(server, "/ready")
        assert code == 200
        assert "out of sight" in text
        lag = next(
            line
            for line in (await status(server, "/metrics"))[1].splitlines()
            if line.startswith("seamark_dns_api_lag")
        )
        assert float(lag.split()[1]) > 0


async def test_readiness_can_follow_the_api(serve: Any, cluster: WatchedCluster) -> None:
    async with serve(ready_policy="connected", lost_after=0.0, status="127.0.0.1:0") as server:
        cluster.lose()
        while not server.feed.lag:
            await asyncio.sleep(0.001)
        assert (await status(server, "/ready"))[0] == 503


async def test_changes_arrive(serve: Any, cluster: WatchedCluster) -> None:
    async with serve() as server:
        name = "hl.default.svc.cluster.local"
        assert (await ask(server, name)).rcode() == dns.rcode.NXDOMAIN
        cluster.put(service("hl", "None"))
        cluster.put(slice_of("hl", endpoint("10.1.0.1", "a"), endpoint("10.1.0.2", "b")))
        await until_told(cluster)
        assert data(await ask(server, name)) == ["10.1.0.1", "10.1.0.2"]
        cluster.put(slice_of("hl", endpoint("10.1.0.1", "a"), endpoint("10.1.0.2", "b", ready=False)))
        await until_told(cluster)
        assert data(await ask(server, name)) == ["10.1.0.1"]
        assert (await ask(server, f"b.{name}")).rcode() == dns.rcode.NXDOMAIN
        cluster.remove("Service", "default", "hl")
        await until_told(cluster)
        assert (await ask(server, name)).rcode() == dns.rcode.NXDOMAIN


@pytest.mark.parametrize(
    ("method", "change"),
    [
        ("_move_service", lambda cluster: cluster.put(service("web", "10.96.0.2"))),
        ("_replace_slice", lambda cluster: cluster.put(slice_of("hl", endpoint("10.1.0.2", "b")))),
        ("_move_service", lambda cluster: cluster.remove("Service", "default", "gone")),
    ],
)
async def test_a_change_that_could_not_be_taken_in_is_made_up_for(
    serve: Any, cluster: WatchedCluster, method: str, change: Any
) -> None:
    cluster.put(service("web", "10.96.0.1"))
    cluster.put(service("gone", "10.96.0.3"))
    cluster.put(service("hl", "None"))
    cluster.put(slice_of("hl", endpoint("10.1.0.1", "a")))
    names = [f"{name}.default.svc.cluster.local" for name in ("web", "gone", "hl", "a.hl", "b.hl")]
    async with serve() as server:
        for name in names * 2:  # asked twice, so that the answers are kept
            await ask(server, name)
        fail_once(server.zone, method)
        change(cluster)
        await until_told(cluster)
        await asyncio.sleep(0.01)
        assert failures(server.registry) == {"dns": 1}
        async with serve() as fresh:
            for name in names:
                assert data(await ask(server, name)) == data(await ask(fresh, name))


async def test_a_cluster_without_slices(serve: Any, cluster: WatchedCluster) -> None:
    cluster.missing.add(ENDPOINT_SLICES)
    cluster.put(service("hl", "None"))
    subsets = [{"addresses": [{"ip": "10.1.0.1"}], "ports": [{"name": "http", "port": 80}]}]
    cluster.put({"kind": "Endpoints", "metadata": {"name": "hl", "namespace": "default"}, "subsets": subsets})
    async with serve() as server:
        assert data(await ask(server, "hl.default.svc.cluster.local")) == ["10.1.0.1"]


async def test_only_what_the_labels_choose(serve: Any, cluster: WatchedCluster) -> None:
    chosen = service("a", "10.96.0.1")
    chosen["metadata"]["labels"] = {"dns": "yes"}
    cluster.put(chosen)
    cluster.put(service("b", "10.96.0.2"))
    async with serve(zone=ZoneConfig(labels="dns=yes")) as server:
        assert data(await ask(server, "a.default.svc.cluster.local")) == ["10.96.0.1"]
        assert (await ask(server, "b.default.svc.cluster.local")).rcode() == dns.rcode.NXDOMAIN


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "[::]:0"])
@pytest.mark.parametrize("batches", [True, False])
async def test_every_kind_of_socket(
    serve: Any, cluster: WatchedCluster, listen: str, batches: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if batches and not mmsg.available:
        pytest.skip("no recvmmsg here")
    monkeypatch.setattr(mmsg, "available", batches)
    cluster.put(service("web", "10.96.0.1"))
    cluster.put(service("hl", "None"))
    cluster.put(slice_of("hl", *(endpoint(f"10.1.{n // 200}.{n % 200 + 1}") for n in range(600))))
    upstream = ScriptedUpstream()
    upstream.records["www.example.com.", "A"] = ["300 192.0.2.1"]
    async with (
        upstream.running(),
        serve(listen=(listen,), forward=upstream.forward()) as server,
    ):
        for _ in range(2):
            assert data(await ask(server, "web.default.svc.cluster.local")) == ["10.96.0.1"]
            assert (await ask(server, "nope.default.svc.cluster.local")).rcode() == dns.rcode.NXDOMAIN
            assert data(await ask(server, "www.example.com")) == ["192.0.2.1"]
            assert len(data(await ask(server, "hl.default.svc.cluster.local", payload=65000))) == 600


@pytest.mark.skipif(not mmsg.available, reason="no recvmmsg here")
async def test_replies_leave_from_where_the_query_arrived(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    async with serve(listen=("0.0.0.0:0",)) as server:
        port = server.addresses[0][1]
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for host in ("127.0.0.1", "127.0.0.2", "127.1.2.3"):
            # Routing alone would let every reply leave from 127.0.0.1.
            for _ in range(2):
                client.sendto(query_packet("web.default.svc.cluster.local", Type.A), (host, port))
                _, sender = await asyncio.to_thread(client.recvfrom, 512)
                assert sender == (host, port)
        client.close()


async def test_more_queries_at_once_than_one_batch(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    async with serve() as server:
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        client.setblocking(False)
        client.connect(server.addresses[0])
        for ident in range(200):
            name = "web" if ident % 3 else f"n{ident}"
            client.send(query_packet(f"{name}.default.svc.cluster.local", Type.A, ident=ident))
            if ident % 50 == 0:
                client.send(b"no query")
        loop = asyncio.get_running_loop()
        seen = {}
        while len(seen) < 200:
            reply = await loop.sock_recv(client, 512)
            seen[int.from_bytes(reply[:2], "big")] = reply[3] & 15
        assert seen == {ident: 0 if ident % 3 else 3 for ident in range(200)}
        assert "seamark_dns_dropped_total 4\n" in server.metrics()
        client.close()


async def test_static_records_win(serve: Any, cluster: WatchedCluster) -> None:
    cluster.put(service("web", "10.96.0.1"))
    hosts = ("# ours", "192.0.2.1 gate.example.com web.default.svc.cluster.local", "fd00::1 gate.example.com", "")
    async with serve(hosts=hosts) as server:
        assert data(await ask(server, "web.default.svc.cluster.local")) == ["192.0.2.1"]
        assert data(await ask(server, "GATE.example.com", "AAAA")) == ["fd00::1"]
        assert data(await ask(server, "1.2.0.192.in-addr.arpa", "PTR")) == ["gate.example.com."]
        nothing = await ask(server, "gate.example.com", "TXT")
        assert (nothing.rcode(), nothing.answer) == (dns.rcode.NOERROR, [])
        assert (await ask(server, "other.example.com")).rcode() == dns.rcode.REFUSED


@pytest.mark.parametrize("line", ["192.0.2.1", "x y", "192.0.2.1 a..b"])
def test_what_is_no_static_record_is_refused(cluster: WatchedCluster, line: str) -> None:
    from seamark.dns.zone.static import StaticRecords

    with pytest.raises(ValueError, match="static record"):
        StaticRecords([line])


async def test_aliases_are_followed_to_whoever_knows(serve: Any, cluster: WatchedCluster) -> None:
    def external(name: str, target: str) -> dict[str, Any]:
        return service(name, "", type="ExternalName", externalName=target)

    cluster.put(service("web", "10.96.0.1"))
    cluster.put(external("outside", "www.example.com"))
    cluster.put(external("fixed", "gate.example.com"))
    cluster.put(external("neighbour", "web.default.svc.other.zone"))
    upstream = ScriptedUpstream()
    upstream.records["www.example.com.", "A"] = ["300 192.0.2.1"]
    zone = ZoneConfig(zones=("cluster.local", "other.zone"))
    async with upstream.running():
        forward = upstream.forward()
        async with serve(zone=zone, forward=forward, hosts=("192.0.2.9 gate.example.com",)) as server:
            for name, found in (("outside", "192.0.2.1"), ("fixed", "192.0.2.9"), ("neighbour", "10.96.0.1")):
                assert found in data(await ask(server, f"{name}.default.svc.cluster.local"))


@pytest.mark.parametrize("klass", ["CH", "HS", "ANY"])
async def test_other_classes_are_for_those_who_forward(serve: Any, cluster: WatchedCluster, klass: str) -> None:
    """As in CoreDNS: refused, unless a resolver upstream may know; then the cluster's names have no class."""
    cluster.put(service("web", "10.96.0.1"))
    upstream = ScriptedUpstream()
    upstream.records["version.bind.", "A"] = ["300 192.0.2.1"]
    web, nope = "web.default.svc.cluster.local", "nope.default.svc.cluster.local"
    async with upstream.running(), serve(forward=upstream.forward()) as server:
        for _ in range(3):  # the third time it may be a ready answer
            assert data(await ask(server, web, rdclass=klass)) == ["10.96.0.1"]
            negative = await ask(server, nope, rdclass=klass)
            assert negative.rcode() == dns.rcode.NXDOMAIN
            assert dns.rdataclass.to_text(negative.question[0].rdclass) == klass
            assert (await ask(server, web, "AXFR", rdclass=klass)).rcode() == dns.rcode.REFUSED
        for asked in (klass, "IN"):
            reply = await ask(server, "version.bind", rdclass=asked)
            assert data(reply) == ["192.0.2.1"]
            assert dns.rdataclass.to_text(reply.question[0].rdclass) == asked
        assert len(upstream.asked) == 2, "classes are kept apart"
    async with serve() as server:
        for name in (web, nope, "version.bind"):
            assert (await ask(server, name, rdclass=klass)).rcode() == dns.rcode.REFUSED


async def test_names_that_are_unknown_fall_through(serve: Any, cluster: WatchedCluster) -> None:
    upstream = ScriptedUpstream()
    upstream.records["x.cluster.local.", "A"] = ["300 192.0.2.1"]
    async with upstream.running():
        zone, forward = ZoneConfig(fallthrough=(".",)), upstream.forward()
        async with serve(zone=zone, forward=forward) as server:
            assert data(await ask(server, "x.cluster.local")) == ["192.0.2.1"]
        async with serve(zone=zone) as server:
            assert (await ask(server, "x.cluster.local")).rcode() == dns.rcode.SERVFAIL


async def test_the_status_pages(serve: Any) -> None:
    async with serve(status="127.0.0.1:0") as server:
        assert (await status(server, "/livez"))[0] == 200
        assert await status(server, "/readyz?verbose") == (200, "OK\n")
        assert (await status(server, "/nothing"))[0] == 404
        assert (await status(server, "/ready", "POST"))[0] == 405
        assert await status(server, "/ready", "HEAD") == (200, "")
        reader, writer = await asyncio.open_connection(*server.status.address)
        writer.write(b"x" * 100_000)
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def test_an_address_in_use_is_said_so(serve: Any) -> None:
    async with serve() as server:
        host, port = server.addresses[0]
        with pytest.raises(ListenError, match=f"cannot listen on {host}:{port}: Address already in use"):
            bind([f"{host}:{port}"])


@pytest.mark.parametrize("text", ["", "localhost:53", "127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000", "[::1]"])
def test_what_cannot_be_listened_on_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot listen on"):
        bind([text])


async def test_a_mistake_about_one_query_costs_the_others_nothing(
    serve: Any, cluster: WatchedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put(service("web", "10.96.0.1"))
    async with serve() as server:
        respond = server.responder.respond

        def mistaken(packet: bytes, *more: Any, **others: Any) -> Any:
            if b"wrong" in packet:
                raise RuntimeError("on purpose")
            return respond(packet, *more, **others)

        monkeypatch.setattr(server.responder, "respond", mistaken)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(server.addresses[0])
            for name in ("wrong", "web", "wrong", "nope"):
                client.send(query_packet(f"{name}.default.svc.cluster.local", Type.A))
            replies = [await asyncio.to_thread(client.recv, 512) for _ in range(2)]
        assert [reply[3] & 15 for reply in replies] == [0, 3]
        assert "seamark_dns_failures_total 2\n" in server.metrics()
        reader, writer = await asyncio.open_connection(*server.addresses[0])
        packet = query_packet("wrong.default.svc.cluster.local", Type.A)
        writer.write(len(packet).to_bytes(2, "big") + packet)
        assert await reader.read() == b"", "the connection is closed"
        writer.close()
        assert "seamark_dns_failures_total 3\n" in server.metrics()


async def test_a_reply_that_cannot_be_sent_stops_nothing(
    serve: Any, cluster: WatchedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mmsg, "available", False)
    cluster.put(service("web", "10.96.0.1"))
    async with serve() as server:
        listener = server._datagrams[0]

        class Unroutable:
            """The socket of the listener, without a route to the first client."""

            def __init__(self, real: socket.socket) -> None:
                self.real, self.failures = real, [OSError(errno.ENETUNREACH, "no route")]

            def sendto(self, data: bytes, address: Any) -> None:
                if self.failures:
                    raise self.failures.pop()
                self.real.sendto(data, address)

            def __getattr__(self, name: str) -> Any:
                return getattr(self.real, name)

        monkeypatch.setattr(listener, "_sock", Unroutable(listener._sock))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(server.addresses[0])
            for identity in (b"\0\1", b"\0\2"):
                client.send(identity + query_packet("web.default.svc.cluster.local", Type.A)[2:])
            reply = await asyncio.to_thread(client.recv, 512)
        assert reply[:2] == b"\0\2"
        assert "seamark_dns_unsent_total 1\n" in server.metrics()
