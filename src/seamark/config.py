"""Settings: nested frozen structs; defaults, a TOML file, the environment and flags meet here and nowhere else.

Each component is handed its own section.  An unknown key is refused: a typo must not silently mean the default.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, Literal

import msgspec

SMALLEST_RANGE = 8  # addresses
SHORTEST_IPV6_PREFIX = 64
LONGEST_DOMAIN = 180  # characters; names of Services and Pods have to fit in front of it

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")


class ConfigError(Exception):
    """A setting is wrong; one line: which, where, what to do."""


class ServiceNetwork(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The addresses and node ports that Services get.  The first range's family is the cluster's default."""

    ranges: tuple[str, ...] = ("10.96.0.0/16", "fd00:96::/112")
    node_ports: tuple[int, int] = (30000, 32767)


class ApiSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where the API server listens and whom it knows."""

    host: str = "127.0.0.1"
    port: int = 6443
    plain_http: bool = False
    token_file: str = ""
    advertise: str = ""
    max_in_flight: int = 600


class LogSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is told of the work, in which form, and where: in a file, or on stderr."""

    level: Literal["debug", "info", "warning", "error"] = "warning"
    format: Literal["text", "json"] = "text"
    file: str = ""


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything.  The sections at its end are those of components, which check them themselves."""

    data_dir: str = ""
    store: str = ""
    ephemeral: bool = False
    cluster_domain: str = "cluster.local"
    dns_host: str = "127.0.0.1"
    dns_port: int = 1053
    api: ApiSettings = ApiSettings()
    network: ServiceNetwork = ServiceNetwork()
    log: LogSettings = LogSettings()
    dns: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    discovery: dict[str, Any] = {}
    surroundings: dict[str, Any] = {}

    @property
    def store_url(self) -> str:
        """The store asked for, or the file in the data directory."""
        if self.store:
            return self.store
        return "memory:" if self.ephemeral else f"sqlite://{Path(self.data_dir).absolute()}/store.db"


STORES = ("", "sqlite", "memory", "etcd")


def store_scheme(url: str) -> str:
    """``etcd`` of ``etcd://…``; empty for what is no URL but the path of a file."""
    scheme, colon, _ = url.partition(":")
    return scheme.lower() if colon and "/" not in scheme else ""


def default_data_dir() -> str:
    """Where state lives unless told otherwise: the XDG state directory."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return str(Path(base) / "seamark")


# Flag (as argparse names it) → where it goes.
FLAGS: Mapping[str, tuple[str, ...]] = {
    "data_dir": ("data_dir",),
    "store": ("store",),
    "ephemeral": ("ephemeral",),
    "cluster_domain": ("cluster_domain",),
    "dns_host": ("dns_host",),
    "dns_port": ("dns_port",),
    "nodes": ("nodes", "count"),
    "api_host": ("api", "host"),
    "api_port": ("api", "port"),
    "plain_http": ("api", "plain_http"),
    "token_file": ("api", "token_file"),
    "service_range": ("network", "ranges"),
    "node_port_range": ("network", "node_ports"),
    "load_balancer_pool": ("surroundings", "load_balancer_pool"),
    "namespace_contents": ("surroundings", "namespace_contents"),
    "log_level": ("log", "level"),
    "log_format": ("log", "format"),
    "log_file": ("log", "file"),
}


def from_options(options: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> Config:
    """Defaults, then the file, then ``SEAMARK_…`` variables, then flags; later ones win."""
    raw: dict[str, Any] = {}
    path = options.get("config") or environ.get("SEAMARK_CONFIG")
    if path:
        raw = _read(Path(path))
    for flag, place in FLAGS.items():
        value = options.get(flag)
        if value is None and (text := environ.get(f"SEAMARK_{flag.upper()}")) is not None:
            value = _from_environment(flag, text)
        if value is not None:
            _set(raw, place, _shaped(flag, value))
    raw.setdefault("data_dir", default_data_dir())
    try:
        config = msgspec.convert(raw, Config, strict=False)
    except msgspec.ValidationError as error:
        where = f" in {path}" if path else ""
        raise ConfigError(f"bad setting{where}: {error}") from error
    _check(config)
    return config


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _set(raw: dict[str, Any], place: tuple[str, ...], value: Any) -> None:
    for part in place[:-1]:
        raw = raw.setdefault(part, {})
    raw[place[-1]] = value


_NUMBERS = ("dns_port", "nodes", "api_port")
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


def _from_environment(flag: str, text: str) -> Any:
    """A variable's value; of the wrong kind, it is the variable that is named and not the setting behind it."""
    if flag in _NUMBERS:
        try:
            return int(text)
        except ValueError:
            raise ConfigError(f"SEAMARK_{flag.upper()}={text}: a number is needed") from None
    if flag in ("ephemeral", "plain_http", "namespace_contents"):
        if text.lower() not in _TRUTHS:
            raise ConfigError(f"SEAMARK_{flag.upper()}={text}: true or false is needed")
        return _TRUTHS[text.lower()]
    return text


def _shaped(flag: str, value: Any) -> Any:
    """Flags that are written as one word and mean several."""
    if flag == "load_balancer_pool" and value == "none":
        return ()
    if flag in ("service_range", "load_balancer_pool"):
        return tuple(part.strip() for part in value.split(","))
    if flag == "node_port_range":
        low, dash, high = value.partition("-")
        if not dash or not low.isdigit() or not high.isdigit():
            raise ConfigError(f"--node-port-range {value}: expected LOW-HIGH, for example 30000-32767")
        return (int(low), int(high))
    return value


def _check(config: Config) -> None:
    if config.api.plain_http and config.api.host not in ("127.0.0.1", "::1", "localhost"):
        raise ConfigError("--plain-http is allowed on loopback only; leave it out, or listen on 127.0.0.1")
    for flag, port in (("--api-port", config.api.port), ("--dns-port", config.dns_port)):
        if not 0 <= port <= 65535:
            raise ConfigError(f"{flag} {port}: a port is between 0 and 65535")
    if len(config.cluster_domain) > LONGEST_DOMAIN or not _DOMAIN.fullmatch(config.cluster_domain):
        raise ConfigError(f"--cluster-domain {config.cluster_domain}: not a domain name, such as cluster.local")
    if store_scheme(config.store) not in STORES:
        shown = config.store.partition("?")[0]  # the options may hold a password
        raise ConfigError(f"--store {shown}: of no known kind; sqlite:///FILE, memory: or etcd://HOST:PORT/PREFIX")
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
