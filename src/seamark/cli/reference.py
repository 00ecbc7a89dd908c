"""``docs/configuration.md``, made from the settings: a table for each section of the file."""

from __future__ import annotations

from seamark.cli.settings import DEFAULTS, SCOPES
from seamark.cli.toml_text import toml_value
from seamark.config import Setting, settings

HEAD = """\
# Configuration

<!-- Written by `seamark config --reference`; do not edit. -->

Every setting of `seamark up`, `apiserver`, `controllers`, `dns` and `resolve`. Its value comes from its default, the
TOML file named by `--config` (or `SEAMARK_CONFIG`), its environment variable, or its flag; later ones win. Each table
says which commands know its flags and variables; everything else is for the file, and one file may serve all commands.
An unknown setting is refused. In a variable, the entries of a list are separated by commas.

`seamark config COMMAND` prints what all of it adds up to, as a file that can be used as it is.
"""


def reference() -> str:
    """The whole document."""
    by_section: dict[str, list[Setting]] = {}
    for setting in settings():
        by_section.setdefault(setting.name.rpartition(".")[0], []).append(setting)
    lines = [HEAD]
    for section, members in by_section.items():
        lines += [f"## `[{section}]`" if section else "## The top of the file", ""]
        lines += [f"{_for_whom(members)}", "", "| setting | default | flag | environment | |", "|---|---|---|---|---|"]
        lines += [*map(_row, members), ""]
    return "\n".join(lines).rstrip() + "\n"


def _for_whom(members: list[Setting]) -> str:
    offering = [verb for verb, scope in SCOPES.items() if any(map(scope.offers, members))]
    using = [verb for verb, scope in SCOPES.items() if any(map(scope.uses, members))]
    flags = f"; flags and variables of {_verbs(offering)}" if offering else ""
    return f"Used by {_verbs(using)}{flags}."


def _verbs(verbs: list[str]) -> str:
    return ", ".join(f"`{verb}`" for verb in verbs)


def _row(setting: Setting) -> str:
    default = DEFAULTS.get(setting.name) or f"`{toml_value(setting.default)}`"
    flag = f"`{setting.flag}`" if setting.flag else ""
    variable = f"`{setting.variable}`" if setting.flag else ""
    cells = [f"`{setting.name.rpartition('.')[2]}`", default, flag, variable, setting.about]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
