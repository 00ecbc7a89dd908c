"""``seamark config``: the settings that a command would use, or a reference of all settings."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.settings import ENVIRONMENT, SCOPES, add_settings, given_by

EXAMPLES = """\
seamark config                               # what `seamark up` would use here
seamark config --nodes 5 > seamark.toml      # the same with another setting, as a file
seamark up --config seamark.toml
seamark config dns --ttl 30                  # the same for `seamark dns`
seamark config --reference                   # every setting, its default, flag and variable
"""


def parser(verb: str = "up") -> argparse.ArgumentParser:
    """The parser, with the flags of one command."""
    made = verb_parser(
        "config",
        "Print the configuration that defaults, file, environment and flags make for a command (default up), as\n"
        "TOML that can be used as a file.  The flags are those of the command: see `seamark config COMMAND --help`.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    made.add_argument("verb", metavar="COMMAND", nargs="?", choices=tuple(SCOPES), default="up", help=", ".join(SCOPES))
    add_settings(made, verb)
    add_switch(made, "--reference", help="every setting there is, as Markdown, instead")
    return made


def main(arguments: list[str]) -> int:
    verb = next((word for word in arguments[:1] if word in SCOPES), "up")
    options = parser(verb).parse_args(arguments)
    if options.verb != verb:
        raise Failure(f"the command comes first: seamark config {options.verb} …", 2)
    if options.reference:
        from seamark.cli.reference import reference

        print(reference(), end="")
    else:
        print(effective(given_by(options, verb), verb), end="")
    return 0


def effective(given: Mapping[str, Any], verb: str = "up") -> str:
    """The settings of a command as TOML.  Those that follow from others are comments, so that they go on following."""
    import msgspec

    from seamark.cli.toml_text import toml_text, toml_value
    from seamark.config import ConfigError, derived, find, settings, settled

    scope = SCOPES[verb]
    try:
        config = settled(given, own_cluster=scope.own_cluster)
    except ConfigError as error:
        raise Failure(str(error), 2) from error
    following = {name for name in derived(config, own_cluster=scope.own_cluster) if find(given, name) is None}
    builtins = msgspec.to_builtins(config)
    values: dict[str, Any] = {}
    notes = {}
    for setting in settings():
        if not scope.uses(setting):
            continue
        *path, name = setting.name.split(".")
        table = values
        for part in path:
            table = table.setdefault(part, {})
        if setting.name in following:
            notes[setting.name] = toml_value(find(builtins, setting.name))
        else:
            table[name] = find(builtins, setting.name)
    if "store" in values and not config.store:
        notes["store"] = config.store_url
    return toml_text(values, notes)
