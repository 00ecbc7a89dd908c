"""Ends UDP flows to endpoints that are gone.

The kernel decides once where a flow goes, and leads it there as long as packets come.  So when an endpoint leaves, the
entries of its flows are removed, and their next packets are decided anew.  Flows of a Service that is deleted go on,
and so do those of a node port without any endpoint, as with kube-proxy.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
import time

from seamark.linux.netlink import (
    CONNTRACK,
    Message,
    Netlink,
    NetlinkError,
    attribute,
    attributes,
    nested,
    number,
)
from seamark.proxy.engine import Update
from seamark.rules.routing.model import Kind, Route
from seamark.rules.routing.surroundings import Surroundings

log = logging.getLogger(__name__)

_GET, _DELETE = 1, 2
_ORIGINAL, _REPLY, _ZONE, _FILTER = 1, 2, 18, 25
_UDP = socket.IPPROTO_UDP
_BY_ADDRESS, _BY_PROTOCOL, _BY_PORT = 1 << 1, 1 << 3, 1 << 5  # what a filter compares
_FAMILIES = {"IPv4": socket.AF_INET, "IPv6": socket.AF_INET6}

_REST = 10  # how many times longer than a search takes of a core nothing is searched for

Place = tuple[int, str, int]  # family, address (empty for a node port) and port
Target = tuple[str, int]


class Flows:
    """The UDP flows of this machine.

    The kernel finds flows by walking through the table of all connections, which takes longer than any change of ours.
    So it is asked in a thread, and after each time not again for a while; what becomes doubtful meanwhile is looked for
    together.
    """

    def __init__(self, opened: socket.socket | None = None) -> None:
        self._opened = opened  # a socket of another network namespace than this process's
        self._netlink: Netlink | None = None
        self._serving: dict[str, dict[Place, frozenset[Target]]] = {}  # by Service
        self._doubtful: dict[Place, frozenset[Target]] = {}  # places that may have flows to other endpoints than these
        self._around: Surroundings | None = None
        self._working: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()

    def start(self) -> None:
        self._netlink = Netlink(self._opened)
        self._working = asyncio.create_task(self._work(self._netlink), name="udp flows")

    async def close(self) -> None:
        if self._working is not None:
            self._working.cancel()
            await asyncio.gather(self._working, return_exceptions=True)
            self._working = None
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None

    def changed(self, update: Update) -> None:
        """Take in an update that was carried out, and have the flows ended that lead to endpoints no longer serving."""
        self._around = update.surroundings
        if update.everything:
            self._serving.clear()
        for key, routes in update.routes.items():
            before = self._serving.pop(key, {})
            udp = [route for route in routes.routes if route.protocol == "UDP"] if routes is not None else []
            after = {place: serving for route in udp for place, serving in _places(route)}
            if after:
                self._serving[key] = after
            for place in before.keys() - after.keys():
                self._doubtful.pop(place, None)
            for place, serving in after.items():
                if place in self._doubtful or place not in before or not before[place] <= serving:
                    self._doubtful[place] = serving
        if self._doubtful:
            self._wake.set()

    async def _work(self, netlink: Netlink) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            doubtful, self._doubtful = self._doubtful, {}
            try:
                assert self._around is not None
                spent = await asyncio.to_thread(_end, netlink, doubtful, self._around)
            except NetlinkError as error:
                log.warning("UDP flows to former endpoints cannot be ended: %s", error)
            else:
                await asyncio.sleep(_REST * spent)


def _end(netlink: Netlink, doubtful: dict[Place, frozenset[Target]], around: Surroundings) -> float:
    """End the flows to these places that lead to other endpoints than these.

    Returns how many seconds of a core it took.  On a busy machine most of the time passes until there is a core, and
    that is no reason to let flows go to former endpoints for longer.
    """
    began = time.thread_time()
    single = next(iter(doubtful)) if len(doubtful) == 1 else None
    for family in {place[0] for place in doubtful}:
        query = Message(_GET, family, _filter(single) if single else b"")
        stale = [flow for flow in netlink.dump(CONNTRACK, query) if _stale(flow, family, doubtful, around)]
        for flow in stale:
            parts = attributes(flow)
            body = nested(_ORIGINAL, parts[_ORIGINAL])
            if _ZONE in parts:
                body += attribute(_ZONE, parts[_ZONE])
            try:
                netlink.request(CONNTRACK, Message(_DELETE, family, body))
            except NetlinkError as error:
                if error.number != errno.ENOENT:
                    raise
    return time.thread_time() - began


def _places(route: Route) -> list[tuple[Place, frozenset[Target]]]:
    """The places of a UDP route, each with all endpoints that serve, chosen or not."""
    known = [*route.cluster.backends, *(left.backend for left in route.cluster.left_out)]
    serving = frozenset((each.address, each.port) for each in known if each.serving)
    family = _FAMILIES[route.family]
    return [
        ((family, frontend.address, frontend.port), serving)
        for frontend in route.frontends
        if serving or frontend.kind is not Kind.NODE_PORT
    ]


def _filter(place: Place) -> bytes:
    """Ask the kernel for flows to this place only; a kernel before 5.8 tells of all of them."""
    family, address, port = place
    flags = _BY_PROTOCOL | _BY_PORT
    protocol = nested(2, attribute(1, bytes([_UDP])), attribute(3, port.to_bytes(2)))
    where = b""
    if address:
        flags |= _BY_ADDRESS
        packed = socket.inet_pton(family, address)
        where = nested(1, attribute(2 if family == socket.AF_INET else 4, packed))
    compared = attribute(1, flags.to_bytes(4, "little"))
    return nested(_ORIGINAL, where, protocol) + nested(_FILTER, compared, number(2, 0))


def _stale(flow: bytes, family: int, doubtful: dict[Place, frozenset[Target]], around: Surroundings) -> bool:
    parts = attributes(flow)
    original, reply = attributes(parts[_ORIGINAL]), attributes(parts[_REPLY])
    protocol = attributes(original[2])
    if protocol[1][0] != _UDP:
        return False
    address, port = _address(attributes(original[1])[2 if family == socket.AF_INET else 4]), _port(protocol[3])
    serving = doubtful.get((family, address, port))
    if serving is None and around.serves_node_ports(address):
        serving = doubtful.get((family, "", port))
    if serving is None:
        return False
    answering = _address(attributes(reply[1])[1 if family == socket.AF_INET else 3])
    return (answering, _port(attributes(reply[2])[2])) not in serving


def _address(packed: bytes) -> str:
    return str(ipaddress.ip_address(packed))


def _port(packed: bytes) -> int:
    return int.from_bytes(packed)
