"""The configuration: defaults, a TOML file, ``SEAMARK_…`` variables and flags meet here, for every command.

Each component declares its own section (:mod:`seamark.settings`) and is handed that section only; :class:`Config` puts
them together.  Everything is checked when it is read, and an unknown key is refused, so that a typo cannot silently
mean the default.
"""

import copy
import os
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec

from seamark.api.settings import DEFAULT_TOKENS, ApiSettings, ServiceNetwork, TokenSettings
from seamark.controllers.housekeeping.loadbalancer_pool import EXAMPLE_POOL, LOOPBACK_POOL
from seamark.controllers.settings import DiscoverySettings, ElectionSettings, SurroundingsSettings
from seamark.dns.config import REVERSE_ZONES, DnsConfig
from seamark.kinds.values.hosts import bracketed
from seamark.nodes.running.settings import PodSettings
from seamark.nodes.simulated.settings import NodeSettings
from seamark.presence import default_data_dir
from seamark.proxy.settings import ProxySettings
from seamark.proxy.userspace.settings import UserspaceSettings
from seamark.settings import Section, setting
from seamark.store.opening import STORES, store_scheme

OWN_LEASE = "seamark-controllers"  # of API servers that share a store; `seamark controllers` has another

LONGEST_DOMAIN = 180  # characters; names of Services and Pods have to fit in front of it

Profile = Literal["full", "plain"]

_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*\.?")


class ConfigError(Exception):
    """A setting is wrong; one line: where, which, and what is expected."""


class ClusterSettings(Section, frozen=True):
    """The cluster that `seamark controllers`, `dns`, `proxy` and `resolve` work for."""

    kubeconfig: Annotated[
        str,
        setting(
            "The kubeconfig; empty: as kubectl finds it, else that of the Pod we run in, else that of `seamark up`.",
            "--kubeconfig FILE",
        ),
    ] = ""
    context: Annotated[str, setting("The context in it; empty: the current one.", "--context CONTEXT")] = ""


class LogSettings(Section, frozen=True):
    """How much is logged, in which form, and where."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"],
        setting("How much to log; `-v` is `info`, `-vv` is `debug`.", "--log-level LEVEL"),
    ] = "warning"
    format: Annotated[
        Literal["text", "json"],
        setting("`text` for people, `json` for machines: one object per line.", "--log-format FORMAT"),
    ] = "text"
    file: Annotated[
        str,
        setting("Where to log; empty: stderr. The file may be moved away at any time.", "--log-file FILE"),
    ] = ""


class Config(Section, frozen=True):
    """All sections together.  Made by :func:`settled`, which fills in settings that follow from others."""

    data_dir: Annotated[
        str,
        setting("Where certificates, the kubeconfig and the SQLite store live.", "--data-dir DIR"),
    ] = ""
    store: Annotated[
        str,
        setting(
            "Where objects live: `sqlite:///FILE`, `memory:` or `etcd://HOST:PORT,…/PREFIX`; empty: `store.db` in the "
            "data directory.",
            "--store URL",
        ),
    ] = ""
    ephemeral: Annotated[
        bool,
        setting("Keep objects in memory only, unless a store is named; certificates are kept.", "--ephemeral"),
    ] = False
    profile: Annotated[
        Profile,
        setting(
            "What the cluster has: `full` what clusters usually have (RBAC, ServiceAccounts, `kube-root-ca.crt`), "
            "`plain` the API alone, with all rights for the admin.",
            "--profile PROFILE",
        ),
    ] = "full"
    cluster_domain: Annotated[str, setting("The zone of cluster DNS.", "--cluster-domain ZONE")] = "cluster.local"
    dns_host: Annotated[str, setting("The address DNS listens on.", "--dns-host HOST")] = "127.0.0.1"
    dns_port: Annotated[
        int, setting("The port DNS listens on, UDP and TCP; 0 takes a free one.", "--dns-port PORT")
    ] = 1053
    cluster: ClusterSettings = ClusterSettings()
    api: ApiSettings = ApiSettings()
    tokens: TokenSettings = DEFAULT_TOKENS
    network: ServiceNetwork = ServiceNetwork()
    dns: DnsConfig = DnsConfig()
    nodes: NodeSettings = NodeSettings()
    pods: PodSettings = PodSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    surroundings: SurroundingsSettings = SurroundingsSettings()
    election: ElectionSettings = ElectionSettings()
    proxy: ProxySettings = ProxySettings()
    userspace: UserspaceSettings = UserspaceSettings()
    log: LogSettings = LogSettings()

    def __post_init__(self) -> None:
        if not 0 <= self.dns_port <= 65535:
            raise ValueError(f"dns_port {self.dns_port}: a port is between 0 and 65535")
        if len(self.cluster_domain) > LONGEST_DOMAIN or not _DOMAIN.fullmatch(self.cluster_domain):
            raise ValueError(f"cluster_domain {self.cluster_domain}: not a domain name, such as cluster.local")
        if self.api.workers > 1 and self.pods.run:
            raise ValueError("api.workers: more than one cannot serve Pods that run as processes; use --workers 1")
        if store_scheme(self.store) not in STORES:
            shown = self.store.partition("?")[0]  # the options may hold a password
            raise ValueError(f"store {shown}: of no known kind; sqlite:///FILE, memory: or etcd://HOST:PORT/PREFIX")

    @property
    def store_url(self) -> str:
        """The store asked for, or the file in the data directory."""
        if self.store:
            return self.store
        return "memory:" if self.ephemeral else f"sqlite://{Path(self.data_dir).absolute()}/store.db"


# --- every setting there is ------------------------------------------------------------------------


class Setting(msgspec.Struct, frozen=True):
    """One field of a section, by its dotted name in the file."""

    name: str
    type: Any
    default: Any
    about: str
    flag: str  # --nodes, or empty
    metavar: str  # N, or empty
    read: Callable[[Sequence[str]], Any] | None

    @property
    def variable(self) -> str:
        return f"SEAMARK_{self.flag.removeprefix('--').replace('-', '_').upper()}" if self.flag else ""

    def value(self, words: Sequence[str]) -> Any:
        """The value that the words behind the flag, or the text of the variable, mean; else ``ValueError``."""
        if self.read is not None:
            return self.read(words)
        if get_origin(self.type) is tuple:
            parts = [part.strip() for word in words for part in word.split(",") if part.strip()]
            return [] if parts == ["none"] else parts
        try:
            return msgspec.convert(words[-1], self.type, strict=False)
        except msgspec.ValidationError:
            raise ValueError(f"{_expected(self.type)} is needed") from None


def _expected(type: Any) -> str:
    if get_origin(type) is Literal:
        return f"one of {', '.join(get_args(type))}"
    return {int: "a number", float: "a number", bool: "true or false"}.get(type, "another value")


@cache
def settings() -> Sequence[Setting]:
    """All settings, in the order of the file."""
    return tuple(_settings_of(Config))


def _settings_of(section: type[Section], prefix: str = "") -> Iterator[Setting]:
    for field in msgspec.structs.fields(section):
        name = f"{prefix}{field.name}"
        if get_origin(field.type) is not Annotated:
            yield from _settings_of(field.type, f"{name}.")
            continue
        type, meta = get_args(field.type)
        flag, _, metavar = meta.extra["flag"].partition(" ")
        yield Setting(name, type, field.default, meta.description, flag, metavar, meta.extra["read"])


# --- from the sources to a Config ------------------------------------------------------------------


def gathered(
    flags: Mapping[str, Sequence[str] | None], environ: Mapping[str, str] = os.environ, *, file: str | None = None
) -> dict[str, Any]:
    """What the file, then the environment, then flags say, as nested values; later ones win.

    ``flags`` are the settings that a command offers as flags, by name, with the words given or None.  Only their
    variables are read.
    """
    path = file or environ.get("SEAMARK_CONFIG")
    given = _read(Path(path)) if path else {}
    for each in settings():
        if each.name not in flags:
            continue
        words, source = flags[each.name], f"{each.flag} {' '.join(flags[each.name] or ())}"
        if words is None and each.variable in environ:
            words, source = [environ[each.variable]], f"{each.variable}={environ[each.variable]}"
        if words is not None:
            try:
                _put(given, each.name, each.value(words))
            except ValueError as error:
                raise ConfigError(f"{source}: {error}") from error
    return given


def settled(given: Mapping[str, Any], *, own_cluster: bool = True) -> Config:
    """A typed configuration.  Settings that were not given and depend on others follow from those."""
    config = _typed(given)
    complete = copy.deepcopy(dict(given))
    for name, value in derived(config, own_cluster=own_cluster).items():
        if find(given, name) is None:
            _put(complete, name, value)
    return _typed(complete)


def derived(config: Config, *, own_cluster: bool) -> dict[str, Any]:
    """The settings that follow from others, unless they are given.

    With a cluster of our own (``seamark up``), DNS listens where the top of the file says and knows the Pods.  The
    profile says what namespaces get.  Without nodes there is no cloud, so Services get no addresses from a pool
    and claims no simulated volumes.  Where the cluster serves load-balancer addresses on loopback, the pool is there.
    """
    full = config.profile == "full"
    values = {
        "data_dir": default_data_dir(),
        "dns.zone.zones": (config.cluster_domain, *REVERSE_ZONES),
        "surroundings.namespace_contents": full,
        "surroundings.root_certificates": full,
        "surroundings.load_balancer_pool": _pool(config, own_cluster=own_cluster),
        "surroundings.storage_class": "standard" if full and config.nodes.count else "",
    }
    issuer = f"https://kubernetes.default.svc.{config.cluster_domain.rstrip('.')}"
    issuers = (issuer,) if config.tokens.issuers == DEFAULT_TOKENS.issuers else config.tokens.issuers
    values |= {"tokens.issuers": issuers, "tokens.audiences": issuers}
    if own_cluster:
        values |= {
            "dns.listen": (f"{bracketed(config.dns_host)}:{config.dns_port}",),
            "dns.zone.pods": "verified",
            "election.name": OWN_LEASE,
        }
    return values


def _pool(config: Config, *, own_cluster: bool) -> tuple[str, ...]:
    if not config.nodes.count:
        return ()
    served = own_cluster and config.userspace.enabled and sys.platform == "linux"
    return LOOPBACK_POOL if served else EXAMPLE_POOL


def find(values: Mapping[str, Any], name: str) -> Any:
    """The value of a dotted name in nested values; None if it is not there."""
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return None
        found = found[part]
    return found


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    *path, last = name.split(".")
    for part in path:
        values = values.setdefault(part, {})
    values[last] = value


def _read(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error
    try:
        _typed(values)  # here, so that the file is named for what is wrong in it
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error
    return values


def _typed(values: Mapping[str, Any]) -> Config:
    try:
        return msgspec.convert(values, Config, strict=False)
    except msgspec.ValidationError as error:
        raise ConfigError(_explained(str(error))) from error


def _explained(message: str) -> str:
    """msgspec's message, ``Expected `int`, got `str` - at `$.api.port` ``, with the table and the key in front."""
    message, _, where = message.partition(" - at `$")
    where = where.strip(".`")
    known = {each.name: each for each in settings()}
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message)
    if unknown:
        table = f"{where}." if where else ""
        import difflib

        siblings = [name.removeprefix(table).partition(".")[0] for name in known if name.startswith(table)]
        like = difflib.get_close_matches(unknown[1], siblings, n=1)
        hint = f"; did you mean {like[0]}?" if like else ""
        return f"{_place(where)}there is no setting {unknown[1]}{hint}"
    name = where.partition("[")[0]
    table, _, key = name.rpartition(".") if name in known else (name, "", "")
    if key and message.startswith("Invalid enum value"):
        choices = known[name].type if get_origin(known[name].type) is Literal else get_args(known[name].type)[0]
        message = f"{message.removeprefix('Invalid enum value ')} is not {_expected(choices)}"
    return f"{_place(table)}{f'{key}: ' if key else ''}{message}"


def _place(table: str) -> str:
    return f"[{table}] " if table else ""
