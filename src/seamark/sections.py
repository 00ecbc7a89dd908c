"""The components' own sections of the configuration, each checked by its component's rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from seamark.config import Config, ConfigError

if TYPE_CHECKING:
    from seamark.controllers.discovery.discovery import DiscoverySettings
    from seamark.controllers.housekeeping.surroundings import SurroundingsSettings
    from seamark.dns.config import DnsConfig
    from seamark.nodes.simulated.settings import NodeSettings

T = TypeVar("T")


def dns(config: Config) -> DnsConfig:
    """DNS for this cluster: where ``dns_host`` and ``dns_port`` say and for its zone, unless the section says more."""
    from seamark.dns.config import REVERSE_ZONES, DnsConfig
    from seamark.dns.sockets.addresses import parse_listen

    host = f"[{config.dns_host}]" if ":" in config.dns_host else config.dns_host
    zone = {"zones": [config.cluster_domain, *REVERSE_ZONES], "pods": "verified"}
    # Names outside the cluster are asked of the host's own resolvers, as `seamark dns` and CoreDNS do.
    forward = {"routes": [{"zone": ".", "to": ["/etc/resolv.conf"]}]}
    section = {"listen": [f"{host}:{config.dns_port}"], "zone": zone, "forward": forward, **config.dns}
    if isinstance(section["zone"], dict):
        section["zone"] = {**zone, **section["zone"]}
    converted = _converted(section, DnsConfig, "dns")
    try:
        for text in converted.listen:
            parse_listen(text)
    except ValueError as error:
        raise ConfigError(f"bad setting in [dns]: {error}") from error
    return converted


def nodes(config: Config) -> NodeSettings:
    from seamark.nodes.simulated.settings import NodeSettings, check

    settings = _converted(config.nodes, NodeSettings, "nodes")
    try:
        check(settings)
    except ValueError as error:
        raise ConfigError(f"bad setting in [nodes]: {error}") from error
    return settings


def discovery(config: Config) -> DiscoverySettings:
    from seamark.controllers.discovery.discovery import DiscoverySettings

    return _converted(config.discovery, DiscoverySettings, "discovery")


def surroundings(config: Config) -> SurroundingsSettings:
    from seamark.controllers.housekeeping.surroundings import SurroundingsSettings

    section = config.surroundings
    if not nodes(config).count:
        # A cluster without nodes of its own is a bare control plane: what only Pods and clouds need is left to
        # whoever brings them, unless it was asked for.
        section = {"root_certificates": False, "load_balancer_pool": (), **section}
    return _converted(section, SurroundingsSettings, "surroundings")


def _converted(raw: dict[str, Any], type: type[T], name: str) -> T:
    try:
        return msgspec.convert(raw, type, strict=False)
    except (msgspec.ValidationError, ValueError) as error:
        raise ConfigError(f"bad setting in [{name}]: {error}") from error


# Each section by its name in the file.
SECTIONS: Mapping[str, Callable[[Config], msgspec.Struct]] = {
    "dns": dns,
    "nodes": nodes,
    "discovery": discovery,
    "surroundings": surroundings,
}
