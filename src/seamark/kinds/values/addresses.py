"""Reads and prints IP addresses and CIDRs as Go does, with Kubernetes' messages about bad ones.

There are three degrees of strictness:

- *sloppy*: leading zeros are skipped (``010.0.0.1`` is ``10.0.0.1``), and IPv4 may be written as IPv6
  (``::ffff:10.0.0.1``).  Stored values are read like this.
- *legacy*: older fields of the API reject new values with such zeros or mappings, but accept any spelling of IPv6.
- *canonical*: newer fields accept only the spelling in which an address is printed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton
from typing import Literal

import msgspec

from seamark.kinds.values.fields import Errors, invalid, show
from seamark.remembering import remembered

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Family = Literal["IPv4", "IPv6"]

_digits = re.compile(r"[0-9]+", re.ASCII)
_hex = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_MAPPED_BITS = 96  # IPv4-mapped IPv6 addresses are in ::ffff:0:0/96
_EMBEDDED = bytes(10)  # the first bytes of all IPv6 addresses that may embed an IPv4 address
_UNFIT_IPV4 = (b"\x7f", b"\xa9\xfe", b"\xe0\x00\x00")  # loopback, link-local, link-local multicast
_BROADCAST = IPv4Address("255.255.255.255")
_LONGEST = 64  # no address is longer; longer texts are not kept in the caches below


class Parsed(msgspec.Struct, frozen=True):
    """A parsed address.  If it was IPv4-``mapped``, ``address`` is the IPv4 address."""

    address: Address
    mapped: bool = False
    padded: bool = False  # has leading zeros, which only a sloppy reader accepts
    unfit: tuple[str, ...] = ()  # reasons why it cannot be an endpoint's address


class ParsedNetwork(msgspec.Struct, frozen=True):
    """A parsed CIDR: the address as written, and the network that contains it."""

    address: Address
    network: Network
    mapped: bool = False
    padded: bool = False


# --- reading ---------------------------------------------------------------------------------------


def _small(text: str) -> int:
    """A decimal number of up to three digits after any zeros; 999 if it is larger or not a number."""
    digits = text.lstrip("0")
    return int(digits or "0") if len(digits) <= 3 and _digits.fullmatch(text) else 999


def _read_ipv4(text: str) -> tuple[IPv4Address, bool] | None:
    parts = text.split(".")
    octets = [_small(part) for part in parts]
    if len(octets) != 4 or max(octets) > 255:
        return None
    return IPv4Address(bytes(octets)), any(len(part) > 1 and part[0] == "0" for part in parts)


def _read_ipv6(text: str) -> tuple[IPv6Address, bool] | None:
    groups = text.split(":")
    padded = False
    if "." in groups[-1]:
        tail = _read_ipv4(groups[-1])
        if tail is None:
            return None
        number, padded = int(tail[0]), tail[1]
        groups[-1:] = [f"{number >> 16:x}", f"{number & 0xFFFF:x}"]
    for i, group in enumerate(groups):
        if group:
            if not _hex.fullmatch(group):
                return None
            # IPv6 allows four digits; only a sloppy reader skips further leading zeros.
            padded = padded or len(group) > 4
            groups[i] = group.lstrip("0") or "0"
    try:
        return IPv6Address(":".join(groups)), padded
    except ValueError:
        return None


def _read(text: str) -> tuple[Address, bool] | None:
    """The address, and whether it is padded; the first dot or colon decides the family."""
    for char in text:
        if char == ".":
            return _read_ipv4(text)
        if char == ":":
            return _read_ipv6(text)
    return None


def plain(text: str) -> Family | None:
    """The family of an address that is written exactly as it would be printed; None for any other text.

    Most addresses are written like that, and the C library checks it much faster than the readers above.
    """
    return _plain(text) if len(text) <= _LONGEST else None


@remembered(8192)
def _plain(text: str) -> Family | None:
    family, number = ("IPv6", AF_INET6) if ":" in text else ("IPv4", AF_INET)
    try:
        packed = inet_pton(number, text)
    except (OSError, ValueError):
        return None
    # Go prints ::1.2.3.4 and ::ffff:1.2.3.4 differently from the C library.
    if number == AF_INET6 and packed.startswith(_EMBEDDED):
        return None
    return family if inet_ntop(number, packed) == text else None  # type: ignore[return-value]  # one of the two above


def printed(number: int, version: int) -> str:
    """The canonical text (RFC 5952) of the address with this number."""
    if version == 4:
        return inet_ntop(AF_INET, number.to_bytes(4, "big"))
    packed = number.to_bytes(16, "big")
    return str(IPv6Address(packed)) if packed.startswith(_EMBEDDED) else inet_ntop(AF_INET6, packed)


def parse(text: str) -> Parsed | None:
    """Read an address sloppily; None if the text is not an address."""
    return _parse(text) if len(text) <= _LONGEST else None


@remembered(8192)
def _parse(text: str) -> Parsed | None:
    found = _read(text)
    if found is None:
        return None
    address, padded = found
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    address = mapped or address
    return Parsed(address, mapped=mapped is not None, padded=padded, unfit=_unfit(address, text))


def _unfit(address: Address, text: str) -> tuple[str, ...]:
    sentences = []
    if address.is_unspecified:
        sentences.append(f"may not be unspecified ({text})")
    if address.is_loopback:
        sentences.append("may not be in the loopback range (127.0.0.0/8, ::1/128)")
    if address.is_link_local:
        sentences.append("may not be in the link-local range (169.254.0.0/16, fe80::/10)")
    if _is_link_local_multicast(address):
        sentences.append("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)")
    return tuple(sentences)


def is_global_unicast(text: str) -> bool:
    """Whether a text is the address of one host beyond this machine and its links, as Go judges it."""
    found = parse(text)
    if found is None:
        return False
    address = found.address
    special = address.is_unspecified or address.is_loopback or address.is_link_local or address.is_multicast
    return not special and address != _BROADCAST


def _is_link_local_multicast(address: Address) -> bool:
    octets = address.packed
    if address.version == 4:
        return octets[:3] == b"\xe0\x00\x00"
    return octets[0] == 0xFF and octets[1] & 0x0F == 0x02


def parse_network(text: str) -> ParsedNetwork | None:
    """Read a CIDR sloppily; None if the text is not a CIDR."""
    return _parse_network(text) if len(text) <= _LONGEST else None


@remembered(1024)
def _parse_network(text: str) -> ParsedNetwork | None:
    before, slash, after = text.partition("/")
    found = _read(before)
    if found is None or not slash:
        return None
    address, padded = found
    bits = _small(after)
    if bits > address.max_prefixlen:
        return None
    padded = padded or (len(after) > 1 and after[0] == "0")
    if isinstance(address, IPv4Address):
        return ParsedNetwork(address, IPv4Network((address, bits), strict=False), padded=padded)
    mapped = address.ipv4_mapped
    if mapped is None:
        return ParsedNetwork(address, IPv6Network((address, bits), strict=False), padded=padded)
    network: Network
    if bits >= _MAPPED_BITS:
        network = IPv4Network((mapped, bits - _MAPPED_BITS), strict=False)
    else:
        network = IPv6Network((address, bits), strict=False)
    return ParsedNetwork(mapped, network, mapped=True, padded=padded)


def family(text: str) -> Family | None:
    """The family of an address; None if the text is not an address."""
    if (found := plain(text)) is not None:
        return found
    parsed = parse(text)
    return None if parsed is None else _family(parsed.address)


def network_family(text: str) -> Family | None:
    """The family of a CIDR; None if the text is not a CIDR."""
    parsed = parse_network(text)
    return None if parsed is None else _family(parsed.network)


def _family(value: Address | Network) -> Family:
    return "IPv4" if value.version == 4 else "IPv6"


def both_families(texts: Iterable[str]) -> bool:
    """Whether these addresses (or CIDRs) include both IPv4 and IPv6."""
    return {family(text.partition("/")[0]) for text in texts} >= {"IPv4", "IPv6"}


def canonical(text: str) -> str:
    """The canonical text (RFC 5952) of an address; the text itself if it is not an address."""
    if plain(text):
        return text
    parsed = parse(text)
    return text if parsed is None else str(parsed.address)


def flawless(text: str) -> Family | None:
    """The family of an address that passes every check: canonical, and possible as an endpoint; else None."""
    return _flawless(text) if len(text) <= _LONGEST else None


@remembered(8192)
def _flawless(text: str) -> Family | None:
    if (found := plain(text)) is not None:
        packed = inet_pton(AF_INET if found == "IPv4" else AF_INET6, text)
        return None if _is_unfit(packed) else found
    parsed = parse(text)
    if parsed is None or parsed.unfit or str(parsed.address) != text:
        return None
    return _family(parsed.address)


def _is_unfit(packed: bytes) -> bool:
    """Whether :func:`_unfit` would say anything of this address.  None of the IPv6 addresses here begins with zeros."""
    if len(packed) == 4:
        return packed.startswith(_UNFIT_IPV4) or not any(packed)
    return (packed[0] == 0xFE and packed[1] & 0xC0 == 0x80) or (packed[0] == 0xFF and packed[1] & 0x0F == 0x02)


# --- mistakes --------------------------------------------------------------------------------------


def ip_mistakes(text: str) -> tuple[str, ...]:
    """What is wrong with an address in an older field; empty if nothing."""
    if plain(text):
        return ()
    parsed = parse(text)
    if parsed is None:
        return ("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",)
    if parsed.padded:
        return ("must not have leading 0s",)
    if parsed.mapped:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


def canonical_ip_mistakes(text: str) -> tuple[str, ...]:
    """What is wrong with an address in a newer field; empty if nothing."""
    printed = canonical(text)
    return ip_mistakes(text) or (() if printed == text else (f"must be in canonical form ({show(printed)})",))


def cidr_mistakes(text: str) -> tuple[str, ...]:
    """What is wrong with a CIDR in an older field; empty if nothing."""
    parsed = parse_network(text)
    if parsed is None:
        return ("must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",)
    if parsed.padded:
        return ("must not have leading 0s in IP or prefix length",)
    if parsed.mapped:
        return ("must not have an IPv4-mapped IPv6 address",)
    if parsed.address != parsed.network.network_address:
        return ("must not have bits set beyond the prefix length",)
    return ()


def canonical_cidr_mistakes(text: str) -> tuple[str, ...]:
    """What is wrong with a CIDR in a newer field; empty if nothing."""
    mistakes = cidr_mistakes(text)
    parsed = parse_network(text)
    if mistakes or parsed is None or str(parsed.network) == text:
        return mistakes
    return (f"must be in canonical form ({show(str(parsed.network))})",)


def endpoint_ip_mistakes(text: str) -> tuple[str, ...]:
    """Why this address cannot be an endpoint's; empty if it can."""
    parsed = parse(text)
    return ("must be a valid IP address",) if parsed is None else parsed.unfit


def refuse_ip(path: str, value: str, accepted: Collection[str] = ()) -> Errors:
    """Errors about an address in an older field; values in ``accepted`` were there before and may stay."""
    return [] if value in accepted else [invalid(path, value, sentence) for sentence in ip_mistakes(value)]


def refuse_cidr(path: str, value: str, accepted: Collection[str] = ()) -> Errors:
    """Errors about a CIDR in an older field; values in ``accepted`` were there before and may stay."""
    return [] if value in accepted else [invalid(path, value, sentence) for sentence in cidr_mistakes(value)]


def refuse_endpoint_ip(path: str, value: str) -> Errors:
    return [invalid(path, value, sentence) for sentence in endpoint_ip_mistakes(value)]


# --- warnings --------------------------------------------------------------------------------------


def ip_warnings(path: str, value: str) -> list[str]:
    """Warnings about an address that is accepted but not written in the usual way."""
    parsed = None if plain(value) else parse(value)
    if parsed is None:
        return []
    printed = str(parsed.address)
    if parsed.padded or parsed.mapped:
        return [
            f"{path}: non-standard IP address {show(value)} will be considered invalid in a future Kubernetes release: "
            f"use {show(printed)}"
        ]
    if parsed.address.version == 6 and printed != value:
        return [f"{path}: IPv6 address {show(value)} should be in RFC 5952 canonical format ({show(printed)})"]
    return []


def cidr_warnings(path: str, value: str) -> list[str]:
    """Warnings about a CIDR that is accepted but not written in the usual way."""
    parsed = parse_network(value)
    if parsed is None:
        return []
    printed = str(parsed.network)
    warnings = []
    if parsed.address != parsed.network.network_address:
        single = f"{parsed.address}/{128 if parsed.mapped else parsed.network.max_prefixlen}"
        warnings.append(
            f"{path}: CIDR value {show(value)} is ambiguous in this context (should be {show(printed)} or "
            f"{show(single)}?)"
        )
    if parsed.padded or parsed.mapped:
        warnings.append(
            f"{path}: non-standard CIDR value {show(value)} will be considered invalid in a future Kubernetes release: "
            f"use {show(printed)}"
        )
    if not warnings and parsed.network.version == 6 and printed != value:
        warnings.append(
            f"{path}: IPv6 CIDR value {show(value)} should be in RFC 5952 canonical format ({show(printed)})"
        )
    return warnings
