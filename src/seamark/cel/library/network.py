"""IP addresses and networks, as Go's ``netip`` reads them: no zones, no leading zeros, no IPv4 inside of IPv6."""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import ClassVar

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.cel.values import Opaque

_bits = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


class IP(Opaque):
    """An address."""

    type_name: ClassVar[str] = "net.IP"

    def __init__(self, address: IPv4Address | IPv6Address) -> None:
        self.address = address
        self.size = address.max_prefixlen // 8

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IP) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)


class CIDR(Opaque):
    """An address with the length of its network's prefix."""

    type_name: ClassVar[str] = "net.CIDR"

    def __init__(self, address: IPv4Address | IPv6Address, bits: int) -> None:
        self.address = address
        self.bits = bits
        self.size = address.max_prefixlen // 8

    @property
    def network(self) -> IPv4Network | IPv6Network:
        return ip_network((self.address, self.bits), strict=False)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CIDR) and (self.address, self.bits) == (other.address, other.bits)

    def __hash__(self) -> int:
        return hash((self.address, self.bits))


def _address(text: str) -> IPv4Address | IPv6Address:
    """The address; ``ValueError`` with Go's words."""
    try:
        return ip_address(text)
    except ValueError:
        raise ValueError(f'ParseAddr("{text}"): {_mistake(text)}') from None


def _mistake(text: str) -> str:
    if ":" in text or "." not in text:
        return "unable to parse IP" if ":" not in text else _mistake_in_six(text)
    fields = text.split(".")
    for field in fields:
        if not field.isascii() or not field.isdigit():
            return (
                "unexpected character (at " + f'"{text[text.index(field) :]}")'
                if field
                else "IPv4 field must have at least one digit"
            )
        if len(field) > 1 and field.startswith("0"):
            return "IPv4 field has octet with leading zero"
        if int(field) > 255:
            return "IPv4 field has value >255"
    return "IPv4 address too short" if len(fields) < 4 else "IPv4 address too long"


def _mistake_in_six(text: str) -> str:
    groups = text.split(":")
    if any(len(group) > 4 for group in groups):
        return "each group must have 4 or fewer digits"
    return "address string too short" if "::" not in text and len(groups) < 8 else "unable to parse IP"


def _checked(text: str) -> IPv4Address | IPv6Address:
    try:
        address = _address(text)
    except ValueError as error:
        raise EvaluationError(f'IP Address "{text}" parse error during conversion from string: {error}') from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise EvaluationError(f'IP address "{text}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise EvaluationError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return address


def _ip(text: str) -> IP:
    return IP(_checked(text))


def _is_ip(text: str) -> bool:
    try:
        _checked(text)
    except EvaluationError:
        return False
    return True


_CIDR_ERROR = "network address parse error during conversion from string: "


def _cidr(text: str) -> CIDR:
    start, slash, bits = text.rpartition("/")
    mistake = ""
    if not slash:
        mistake = "no '/'"
    else:
        try:
            address = _address(start)
            if isinstance(address, IPv6Address) and address.scope_id is not None:
                mistake = "IPv6 zones cannot be present in a prefix"
            elif not _bits.fullmatch(bits):
                mistake = f'bad bits after slash: "{bits}"'
            elif int(bits) > address.max_prefixlen:
                mistake = "prefix length out of range"
        except ValueError as error:
            mistake = str(error)
    if mistake:
        raise EvaluationError(f'{_CIDR_ERROR}{_CIDR_ERROR}netip.ParsePrefix("{text}"): {mistake}')
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f'{_CIDR_ERROR}IPv4-mapped IPv6 address "{text}" is not allowed')
    return CIDR(address, int(bits))


def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except EvaluationError:
        return False
    return True


def _canonical(text: str) -> bool:
    return str(_checked(text)) == text


def _contains_ip(outer: CIDR, inner: IP) -> bool:
    return inner.address.version == outer.address.version and inner.address in outer.network


def _contains_cidr(outer: CIDR, inner: CIDR) -> bool:
    return (
        inner.address.version == outer.address.version
        and inner.bits >= outer.bits
        and inner.network.network_address in outer.network
    )


def _is_global_unicast(ip: IP) -> bool:
    address = ip.address
    broadcast = isinstance(address, IPv4Address) and address == IPv4Address("255.255.255.255")
    others = address.is_unspecified or address.is_loopback or address.is_multicast or _is_local(ip)
    return not (broadcast or others)


def _is_local(ip: IP) -> bool:
    return ip.address.is_link_local


def _is_local_multicast(ip: IP) -> bool:
    local = "224.0.0.0/24" if ip.address.version == 4 else "ff02::/16"
    return ip.address in ip_network(local)


FUNCTIONS = [
    overload("isIP(string) -> bool", _is_ip),
    overload("ip(string) -> net.IP", _ip),
    overload("ip.isCanonical(string) -> bool", _canonical, name="ip.isCanonical"),
    overload("string(net.IP) -> string", lambda ip: str(ip.address)),
    overload("net.IP.family() -> int", lambda ip: ip.address.version),
    overload("net.IP.isUnspecified() -> bool", lambda ip: ip.address.is_unspecified),
    overload("net.IP.isLoopback() -> bool", lambda ip: ip.address.is_loopback),
    overload("net.IP.isLinkLocalMulticast() -> bool", _is_local_multicast),
    overload("net.IP.isLinkLocalUnicast() -> bool", _is_local),
    overload("net.IP.isGlobalUnicast() -> bool", _is_global_unicast),
    overload("isCIDR(string) -> bool", _is_cidr),
    overload("cidr(string) -> net.CIDR", _cidr),
    overload("string(net.CIDR) -> string", lambda cidr: f"{cidr.address}/{cidr.bits}"),
    overload("net.CIDR.containsIP(net.IP) -> bool", _contains_ip),
    overload("net.CIDR.containsIP(string) -> bool", lambda cidr, text: _contains_ip(cidr, _ip(text))),
    overload("net.CIDR.containsCIDR(net.CIDR) -> bool", _contains_cidr),
    overload("net.CIDR.containsCIDR(string) -> bool", lambda cidr, text: _contains_cidr(cidr, _cidr(text))),
    overload("net.CIDR.ip() -> net.IP", lambda cidr: IP(cidr.address)),
    overload("net.CIDR.masked() -> net.CIDR", lambda cidr: CIDR(cidr.network.network_address, cidr.bits)),
    overload("net.CIDR.prefixLength() -> int", lambda cidr: cidr.bits),
]
