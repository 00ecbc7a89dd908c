"""From the flags of a long-running verb to its configuration: options are made from the settings themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from seamark.cli.failure import Failure
from seamark.cli.light_imports import uninterrupted
from seamark.cli.parsing import add_switch

if TYPE_CHECKING:
    from seamark.config import Config, Setting

ENVIRONMENT = {
    "SEAMARK_CONFIG": "the same as --config",
    "SEAMARK_…": "a setting, such as SEAMARK_LOG_LEVEL for --log-level; flags win",
}
LEVELS = ("info", "debug")  # by how often -v is given
# Defaults that are not the same everywhere.
DEFAULTS = {"data_dir": "`$XDG_STATE_HOME/seamark`, or `~/.local/state/seamark`"}


class Scope(NamedTuple):
    """The settings of a verb: sections and single settings by name.

    Those in ``flags`` can be given on the command line and as variables, those in ``more`` only in the file.
    """

    flags: tuple[str, ...]
    more: tuple[str, ...] = ()
    own_cluster: bool = False  # whether the verb runs a cluster of its own

    def offers(self, setting: Setting) -> bool:
        return bool(setting.flag) and _within(setting.name, self.flags)

    def uses(self, setting: Setting) -> bool:
        return _within(setting.name, self.flags + self.more)


def _within(name: str, places: tuple[str, ...]) -> bool:
    return any(name == place or name.startswith(f"{place}.") for place in places)


_SERVER = ("data_dir", "store", "ephemeral", "profile", "cluster_domain", "api", "tokens", "network", "log")
SCOPES = {
    "up": Scope(
        (*_SERVER, "dns_host", "dns_port", "nodes", "pods", "surroundings", "userspace"),
        ("dns", "discovery", "election"),
        own_cluster=True,
    ),
    "apiserver": Scope(_SERVER, ("surroundings", "election"), own_cluster=True),
    "controllers": Scope(("cluster", "discovery", "election", "log")),
    "dns": Scope(("cluster", "dns", "log"), ("cluster_domain",)),
    "proxy": Scope(("cluster", "proxy", "log"), ("userspace",)),
    "resolve": Scope(("cluster", "dns.zone", "dns.forward.routes"), ("cluster_domain", "dns.forward")),
}


def offered(scope: Scope) -> Iterator[Setting]:
    """The settings that a verb offers as flags."""
    with uninterrupted():
        from seamark.config import settings

    return (setting for setting in settings() if scope.offers(setting))


def add_settings(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add the flags of a verb."""
    for setting in offered(SCOPES[verb]):
        _add_setting(parser, setting)
    if _within("log.level", SCOPES[verb].flags):
        parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; twice: say everything")
    if _within("dns.zone.zones", SCOPES[verb].flags):
        add_switch(parser, "--no-reverse", help="do not serve in-addr.arpa and ip6.arpa")
    parser.add_argument("--config", metavar="FILE", help="a TOML file with settings, see `seamark config`")


def _add_setting(parser: argparse.ArgumentParser, setting: Setting) -> None:
    more: dict[str, Any] = {"dest": setting.name, "default": None, "help": _help(setting)}
    if setting.type is bool and not setting.metavar:
        add_switch(parser, setting.flag, negated=bool(setting.default), **more)
    elif get_origin(setting.type) is Literal:
        parser.add_argument(setting.flag, choices=get_args(setting.type), **more)
    elif get_origin(setting.type) is tuple:
        parser.add_argument(setting.flag, metavar=setting.metavar, action="append", **more)
    else:
        parser.add_argument(setting.flag, metavar=setting.metavar, **more)


def _help(setting: Setting) -> str:
    """The sentence about a setting in the style of ``--help``, with the default if it does not say that itself."""
    about = _plain(setting.about).removesuffix(".")
    if about[1:2].islower() or about[1:2] == " ":
        about = about[0].lower() + about[1:]
    if get_origin(setting.type) is tuple and get_args(setting.type)[-1] is Ellipsis:
        about += "; repeatable"
    default = _plain(DEFAULTS.get(setting.name, "")) or setting.default
    if "default" in about or default in ("", (), False):
        return about
    if isinstance(default, tuple):
        default = ("-" if isinstance(default[0], int) else ",").join(map(str, default))
    return f"{about} (default {str(default).lower() if default is True else default})"


def _plain(text: str) -> str:
    return text.replace("`", "").replace("%", "%%")


def given_by(options: argparse.Namespace, verb: str) -> dict[str, Any]:
    """What file, environment and flags say, as nested values."""
    from seamark.config import ConfigError, find, gathered

    flags: dict[str, Any] = {}
    for setting in offered(SCOPES[verb]):
        value = getattr(options, setting.name)
        flags[setting.name] = value if value is None or isinstance(value, list) else [str(value)]
    if flags.get("log.level", ()) is None and options.verbose:
        flags["log.level"] = [LEVELS[min(options.verbose, len(LEVELS)) - 1]]
    try:
        given = gathered(flags, file=options.config)
    except ConfigError as error:
        raise Failure(str(error), 2) from error
    if getattr(options, "no_reverse", False):
        from seamark.dns.config import REVERSE_ZONES

        zone = given.setdefault("dns", {}).setdefault("zone", {})
        named = find(given, "dns.zone.zones") or [given.get("cluster_domain", "cluster.local")]
        zone["zones"] = [each for each in named if each not in REVERSE_ZONES]
    return given


def config_of(options: argparse.Namespace, verb: str) -> Config:
    """The configuration that file, environment and flags make for a verb; ``Failure`` if it is wrong."""
    from seamark.config import ConfigError, settled

    try:
        return settled(given_by(options, verb), own_cluster=SCOPES[verb].own_cluster)
    except ConfigError as error:
        raise Failure(str(error), 2) from error
