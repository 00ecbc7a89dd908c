"""What can be set: nested frozen structs, each component is handed its own section only."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network

import msgspec

SMALLEST_RANGE = 8  # addresses
SHORTEST_IPV6_PREFIX = 64


class ServiceNetwork(msgspec.Struct, frozen=True):
    """Where cluster IPs and node ports come from.  The first range's family is the default."""

    ranges: tuple[str, ...] = ("10.96.0.0/16", "fd00:96::/112")
    node_ports: tuple[int, int] = (30000, 32767)


def check_service_network(network: ServiceNetwork) -> None:
    """Raise one clear line if Services could not live on this."""
    if not 1 <= len(network.ranges) <= 2:
        raise ValueError(f"service ranges: one, or one of each IP family, is needed, not {len(network.ranges)}")
    families = set()
    for text in network.ranges:
        parsed = _network(text)
        if parsed.version == 6 and parsed.prefixlen < SHORTEST_IPV6_PREFIX:
            raise ValueError(
                f"service range {text}: too large, an IPv6 prefix must have {SHORTEST_IPV6_PREFIX} bits or more"
            )
        if parsed.num_addresses < SMALLEST_RANGE:
            raise ValueError(f"service range {text}: too small, at least {SMALLEST_RANGE} addresses are needed")
        if parsed.version in families:
            raise ValueError(f"service range {text}: there is already a range of IPv{parsed.version}")
        families.add(parsed.version)
    first, last = network.node_ports
    if not 1 <= first <= last <= 65535:
        raise ValueError(f"node ports {first}-{last}: must lie between 1 and 65535, the lower number first")


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"service range {text}: {error}") from None
    try:
        check_service_network(config.network)
    except ValueError as error:
        raise ConfigError(str(error)) from None


def check_service_network(network: ServiceNetwork) -> None:
    """Raise ``ValueError``, one clear line, if Services could not live on this."""
    if not 1 <= len(network.ranges) <= 2:
        raise ValueError(f"service ranges: one, or one of each IP family, is needed, not {len(network.ranges)}")
    families = set()
    for text in network.ranges:
        parsed = _network(text)
        if parsed.version == 6 and parsed.prefixlen < SHORTEST_IPV6_PREFIX:
            raise ValueError(
                f"service range {text}: too large, an IPv6 prefix must have {SHORTEST_IPV6_PREFIX} bits or more"
            )
        if parsed.num_addresses < SMALLEST_RANGE:
            raise ValueError(f"service range {text}: too small, at least {SMALLEST_RANGE} addresses are needed")
        if parsed.version in families:
            raise ValueError(f"service range {text}: there is already a range of IPv{parsed.version}")
        families.add(parsed.version)
    first, last = network.node_ports
    if not 1 <= first <= last <= 65535:
        raise ValueError(f"node ports {first}-{last}: must lie between 1 and 65535, the lower number first")


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise ValueError(f"service range {text}: {error}") from None
