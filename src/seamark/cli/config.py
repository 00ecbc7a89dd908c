"""``seamark config``: the settings that would be used, or all there are."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from seamark.cli.failure import Failure
from seamark.cli.parsing import add_switch, verb_parser
from seamark.cli.serving import ENVIRONMENT, add_up_options, config_of

if TYPE_CHECKING:
    from seamark.config import Config

EXAMPLES = """\
seamark config                               # what `seamark up` would use here
seamark config --nodes 5 > seamark.toml      # the same with another setting, as a file
seamark up --config seamark.toml
seamark config --reference                   # every setting, its default, flag and variable
"""


def parser() -> argparse.ArgumentParser:
    made = verb_parser(
        "config",
        "Print the configuration that defaults, file, environment and flags make, as TOML that can be used as a file.",
        examples=EXAMPLES,
        environment=ENVIRONMENT,
    )
    add_up_options(made)
    add_switch(made, "--reference", help="every setting there is, as Markdown, instead")
    return made


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    if options.reference:
        from seamark.cli.reference import reference

        print(reference(), end="")
        return 0
    print(effective(config_of(options)), end="")
    return 0


def effective(config: Config) -> str:
    """All settings as TOML.  What follows from others is a comment, so that changing those still changes it."""
    import msgspec

    from seamark import sections
    from seamark.cli.toml_text import toml_text, toml_value
    from seamark.config import ConfigError

    try:
        parts = {name: section(config) for name, section in sections.SECTIONS.items()}
    except ConfigError as error:
        raise Failure(str(error), 2) from error
    values: dict[str, Any] = {**msgspec.to_builtins(config), **msgspec.to_builtins(parts)}
    notes = {} if config.store else {"store": config.store_url}
    derived = {"dns": ("listen",), "dns.zone": ("zones",)}
    given: dict[str, Any] = {"dns": config.dns, "dns.zone": config.dns.get("zone", {})}
    for section, names in derived.items():
        where = values["dns"] if section == "dns" else values["dns"]["zone"]
        for name in names:
            if name not in given[section]:
                notes[f"{section}.{name}"] = toml_value(where.pop(name))
    return toml_text(values, notes)
