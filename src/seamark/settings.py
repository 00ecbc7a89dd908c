"""How a component declares its settings: as a frozen struct, with a sentence and maybe a flag for each field.

    class LogSettings(Section, frozen=True):
        file: Annotated[str, setting("Where to write the log.", "--log-file FILE")] = ""

Command-line flags, environment variables and ``docs/configuration.md`` are made from these fields, see
:mod:`seamark.config`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any

import msgspec


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of one component; ``__post_init__`` raises ``ValueError`` for values that make no sense."""


def setting(about: str, flag: str = "", read: Callable[[Sequence[str]], Any] | None = None) -> msgspec.Meta:
    """What a field is about, in one sentence, and the flag that sets it, such as ``--nodes N``.

    ``read`` makes the value from the words given behind the flag, if that needs more than the field's type.
    """
    return msgspec.Meta(description=about, extra={"flag": flag, "read": read})


def parse_listen(text: str) -> list[tuple[str, int]]:
    """Where to listen: ``127.0.0.1:53``, ``[::1]:53``, or ``:53`` for every address of both families."""
    host, _, port = text.rpartition(":")
    try:
        number = int(port)
        if not 0 <= number < 65536:
            raise ValueError(port)
        if not host:
            return [("0.0.0.0", number), ("::", number)]
        return [(str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))), number)]
    except ValueError:
        raise ValueError(f"cannot listen on {text!r}: write HOST:PORT, [HOST]:PORT or :PORT, HOST an address") from None
