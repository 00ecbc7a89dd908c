"""The settings of the userspace engine."""

from __future__ import annotations

from typing import Annotated

from seamark.kinds.values.addresses import parse
from seamark.settings import Section, setting


class UserspaceSettings(Section, frozen=True):
    """Services reached through the userspace engine: whether and where, and how much it takes on."""

    enabled: Annotated[
        bool,
        setting(
            "Let `seamark up` serve node ports, and load-balancer addresses that are loopback addresses, on this "
            "machine.",
            "--node-ports",
        ),
    ] = True
    node_ports_at: Annotated[tuple[str, ...], setting("The addresses on which `seamark up` serves node ports.")] = (
        "127.0.0.1",
        "::1",
    )
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
        for address in self.node_ports_at:
            if parse(address) is None:
                raise ValueError(f"node_ports_at: {address} is not an IP address")
        if self.connections < 0 or self.flows < 1 or self.dial_seconds <= 0:
            raise ValueError("connections may not be negative; flows and dial_seconds must be positive")
