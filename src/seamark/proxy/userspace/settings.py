"""The settings of the userspace engine."""

from __future__ import annotations

from typing import Annotated

from seamark.settings import Section, setting


class UserspaceSettings(Section, frozen=True):
    """How much the userspace engine takes on.  Times are in seconds."""

    connections: Annotated[
        int,
        setting(
            "TCP connections open at once; more wait until one ends. 0: as many as the limit on open files allows."
        ),
    ] = 0
    flows: Annotated[
        int, setting("UDP flows at once; a new one takes the place of one that no backend has answered.")
    ] = 4096
    dial_seconds: Annotated[
        float, setting("Seconds for which a backend may keep a new connection waiting before another one is tried.")
    ] = 2.0

    def __post_init__(self) -> None:
        if self.connections < 0 or self.flows < 1 or self.dial_seconds <= 0:
            raise ValueError("connections may not be negative; flows and dial_seconds must be positive")
