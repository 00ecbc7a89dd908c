"""What CoreDNS was recorded to answer, asked over UDP and TCP, with the upstream resolver of the recordings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import recorded_cluster
from recorded_cluster import RecordedCluster, packet_of, replay, zone_config
from scripted_upstream import forwarding
from watched_cluster import WatchedCluster

from seamark.dns.config import DnsConfig, ForwardConfig
from seamark.dns.server import DnsServer


class RecordedUpstream(replay.Upstream):
    """The replayer's own resolver, without its sockets."""

    def __init__(self, table: dict[str, Any]) -> None:
        self.table = table


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, upstream: RecordedUpstream) -> None:
        self._upstream = upstream

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._transport.sendto(self._upstream.answer(data), addr)


@pytest.mark.parametrize("path", recorded_cluster.FILES, ids=lambda path: path.stem)
async def test_replies_are_the_recorded_ones(path: Path) -> None:
    doc = recorded_cluster.load(path)
    recorded = RecordedCluster(doc)
    cluster = WatchedCluster()
    loop = asyncio.get_running_loop()
    upstream, _ = await loop.create_datagram_endpoint(
        lambda: _Datagrams(RecordedUpstream(doc.get("upstream") or {})), local_addr=("127.0.0.1", 0)
    )
    host, port = upstream.get_extra_info("sockname")
    forward = forwarding(f"{host}:{port}") if doc["config"]["forward"] else ForwardConfig(routes=())
    server = DnsServer(DnsConfig(listen=("127.0.0.1:0",), zone=zone_config(doc), forward=forward), cluster)
    async with server.running():
        await server.synced()
        for obj in recorded.objects:  # after the sync, so that a Pod is seen alive before it is seen terminating
            cluster.put(obj)
        while len(server.zone.services) < len(recorded.services) or cluster.behind:
            await asyncio.sleep(0)
        problems = await asyncio.to_thread(_ask_all, doc, recorded.places(), server.addresses[0])
    upstream.close()
    assert problems == []


def _ask_all(doc: dict[str, Any], places: Any, address: tuple[str, int]) -> list[str]:
    problems = []
    for question in doc["questions"]:
        packet, tcp = packet_of(question, places), question.get("transport") == "tcp"
        reply = replay.exchange(address, packet, tcp, alone="upstream" in doc)
        got = {"silence": True} if reply is None else replay.read_reply(reply, places)
        problems += [f"{question['id']}: {p}" for p in replay.compare(question, question["expect"], got)]
    return problems
