"""Network interfaces, their addresses, and routes, in the network namespace that a netlink socket belongs to."""

from __future__ import annotations

import socket
import struct
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from seamark.linux.netlink import CREATE, ROUTING, Netlink, attribute, nested, text

Address = IPv4Address | IPv6Address

_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, change
_ADDRESS = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, index
_ROUTE = struct.Struct("=BBBBBBBBI")  # family, lengths, tos, table, protocol, scope, type, flags
_UP = 1
_EXCLUSIVE, _REPLACE = 0x200, 0x100
_NEW_LINK, _DELETE_LINK, _GET_LINK, _NEW_ADDRESS, _NEW_ROUTE, _DELETE_ROUTE = 16, 17, 18, 20, 24, 25
_IFLA_NAME, _IFLA_MASTER, _IFLA_INFO, _IFLA_NAMESPACE = 3, 10, 18, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL, _IFA_FLAGS = 1, 2, 8
_NO_DUPLICATE_CHECK = 0x02  # an IPv6 address is usable at once
_RTA_DESTINATION, _RTA_INTERFACE, _RTA_GATEWAY, _RTA_SOURCE = 1, 4, 5, 7
_MAIN_TABLE, _STATIC, _UNIVERSE, _ON_LINK, _UNICAST, _UNREACHABLE = 254, 4, 0, 253, 1, 7


class Links:
    """The interfaces and routes of one network namespace."""

    def __init__(self, opened: socket.socket | None = None) -> None:
        self._netlink = Netlink(opened, family=ROUTING)
        self._index: dict[str, int] = {}

    def close(self) -> None:
        self._netlink.close()

    # --- interfaces --------------------------------------------------------------------------------

    def add_pair(self, name: str, peer: str, namespace: int) -> None:
        """A virtual cable: one end here, the other in the network namespace of this open file."""
        other = _LINK.pack(0, 0, 0, 0, 0) + text(_IFLA_NAME, peer) + _number(_IFLA_NAMESPACE, namespace)
        self._add(name, "veth", nested(_INFO_DATA, attribute(_VETH_PEER, other)))

    def add_bridge(self, name: str) -> None:
        self._add(name, "bridge")

    def _add(self, name: str, kind: str, data: bytes = b"") -> None:
        body = _LINK.pack(0, 0, 0, 0, 0) + text(_IFLA_NAME, name)
        body += nested(_IFLA_INFO, attribute(_INFO_KIND, kind.encode()), data)
        self._netlink.ask(_NEW_LINK, CREATE | _EXCLUSIVE, body)

    def up(self, name: str, *, bridge: str = "") -> None:
        """Switch an interface on, as a port of a bridge if one is named."""
        body = _LINK.pack(0, 0, self.index(name), _UP, _UP)
        if bridge:
            body += _number(_IFLA_MASTER, self.index(bridge))
        self._netlink.ask(_NEW_LINK, 0, body)

    def down(self, name: str) -> None:
        self._netlink.ask(_NEW_LINK, 0, _LINK.pack(0, 0, self.index(name), 0, _UP))

    def delete(self, name: str) -> None:
        """Remove an interface, and with it the other end of its cable, its addresses and its routes."""
        self._netlink.ask(_DELETE_LINK, 0, _LINK.pack(0, 0, self.index(name), 0, 0))
        self._index.pop(name, None)

    def index(self, name: str) -> int:
        found = self._index.get(name)
        if found is None:
            (answer,) = self._netlink.ask(_GET_LINK, 0, _LINK.pack(0, 0, 0, 0, 0) + text(_IFLA_NAME, name))
            found = self._index[name] = int(_LINK.unpack_from(answer)[2])
        return found

    # --- addresses and routes ----------------------------------------------------------------------

    def add_address(self, name: str, address: str, length: int | None = None) -> None:
        """An address with the length of its network; without a length it is alone in its network."""
        parsed = ip_address(address)
        packed = attribute(_IFA_LOCAL, parsed.packed) + attribute(_IFA_ADDRESS, parsed.packed)
        if parsed.version == 6:
            packed += _number(_IFA_FLAGS, _NO_DUPLICATE_CHECK)
        size = parsed.max_prefixlen if length is None else length
        body = _ADDRESS.pack(_family(parsed), size, 0, 0, self.index(name)) + packed
        self._netlink.ask(_NEW_ADDRESS, CREATE | _REPLACE, body)

    def add_route(self, network: str, *, over: str = "", by: str = "", source: str = "") -> None:
        """To this network over an interface, by a neighbour, with this address as the sender's."""
        self._netlink.ask(_NEW_ROUTE, CREATE | _REPLACE, self._route(network, over, by, source))

    def refuse_route(self, network: str) -> None:
        """Tell senders that nothing in this network can be reached, unless another route is more precise."""
        self._netlink.ask(_NEW_ROUTE, CREATE | _REPLACE, self._route(network, "", "", "", _UNREACHABLE))

    def delete_route(self, network: str) -> None:
        self._netlink.ask(_DELETE_ROUTE, 0, self._route(network, "", "", ""))

    def _route(self, network: str, over: str, by: str, source: str, kind: int = _UNICAST) -> bytes:
        parsed = ip_network(network)
        scope = _ON_LINK if over and not by and parsed.version == 4 else _UNIVERSE
        family = _family(parsed.network_address)
        body = _ROUTE.pack(family, parsed.prefixlen, 0, 0, _MAIN_TABLE, _STATIC, scope, kind, 0)
        body += attribute(_RTA_DESTINATION, parsed.network_address.packed)
        if over:
            body += _number(_RTA_INTERFACE, self.index(over))
        if by:
            body += attribute(_RTA_GATEWAY, ip_address(by).packed)
        if source:
            body += attribute(_RTA_SOURCE, ip_address(source).packed)
        return body


def _family(address: Address) -> int:
    return int(socket.AF_INET if address.version == 4 else socket.AF_INET6)


def _number(kind: int, value: int) -> bytes:
    """Numbers about interfaces are in the machine's order, unlike netfilter's."""
    return attribute(kind, struct.pack("=I", value))
