"""What CoreDNS was recorded to answer, asked of the responder without a socket.  Forwarding is tested over sockets."""

from __future__ import annotations

from typing import Any

import pytest
import recorded_cluster
from recorded_cluster import RecordedCluster, packet_of, replay, zone_config

from seamark.dns.measures import Measures
from seamark.dns.ready import ReadyAnswers
from seamark.dns.responder import Responder
from seamark.dns.zone.answers import Authority
from seamark.metrics import Registry


def _responder(cluster: RecordedCluster, doc: dict[str, Any]) -> Responder:
    config, zone = zone_config(doc), cluster.zone()
    return Responder(
        Authority(zone, config),
        ready=(
            ReadyAnswers(zone, entries=1000, octets=1 << 20),
            ReadyAnswers(zone, entries=1000, octets=1 << 20),
        ),
        measures=Measures(Registry()),
        synced=lambda: True,
        falls_through=config.falls_through,
    )


def _needs_upstream(question: dict[str, Any]) -> bool:
    """Whether another server answered, or added where an alias leads to."""
    expect = question["expect"]
    owners = [record.split(" ")[0].lower() for record in expect.get("answer") or ()]
    return "ra" in expect.get("flags", ()) or any(owner.endswith(".test.") for owner in owners)


def _cases() -> list[Any]:
    return [
        pytest.param(path, question, id=f"{path.stem}:{question['id']}")
        for path in recorded_cluster.FILES
        for question in recorded_cluster.load(path)["questions"]
        if not _needs_upstream(question)
    ]


@pytest.fixture(scope="module")
def served() -> dict[Any, tuple[Responder, Any]]:
    """A responder and the table of addresses for each file."""
    found = {}
    for path in recorded_cluster.FILES:
        doc = recorded_cluster.load(path)
        cluster = RecordedCluster(doc)
        found[path] = (_responder(cluster, doc), cluster.places())
    return found


@pytest.mark.parametrize(("path", "question"), _cases())
def test_reply_is_the_recorded_one(path: Any, question: dict[str, Any], served: Any) -> None:
    responder, places = served[path]
    packet = packet_of(question, places)
    datagram = question.get("transport") != "tcp"
    for _ in range(3):  # the third time it may come from the ready answers
        reply = _ask(responder, packet, datagram)
        got = {"silence": True} if reply is None else replay.read_reply(reply, places)
        assert replay.compare(question, question["expect"], got) == []


def _ask(responder: Responder, packet: bytes, datagram: bool) -> bytes | None:
    transport = responder.udp if datagram else responder.tcp
    entry = transport.ready.plain.get(packet[2:])
    if entry is not None:
        return packet[:2] + entry.forms[0]
    reply = responder.respond(packet, transport)
    assert reply is None or isinstance(reply, bytes)
    return reply
