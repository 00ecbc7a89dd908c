"""What an object may take from the cluster's ranges: cluster IPs and node ports.

A kind plans (:meth:`Kind.allocate <seamark.kinds.kind.Kind.allocate>`), looking up what is taken but writing nothing.
The API server writes the plan in the object's own transaction, so that nothing has to be undone when a write fails.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

import msgspec

from seamark.kinds.resource import Resource


class Pool(Protocol):
    """The ranges of a cluster, and what is taken of them at this moment."""

    random: random.Random

    @property
    def ranges(self) -> Sequence[str]:
        """The CIDRs the cluster was configured with, at most one of each family."""
        ...

    @property
    def added_ranges(self) -> Sequence[str]:
        """CIDRs that were added while the cluster ran."""
        ...

    @property
    def node_ports(self) -> tuple[int, int]:
        """The first and the last node port."""
        ...

    def has_address(self, address: str) -> bool:
        """Whether somebody has this address, which is in its canonical form."""
        ...

    def has_port(self, port: int) -> bool:
        """Whether somebody has this node port."""
        ...


class Allocation(msgspec.Struct, frozen=True):
    """What a write takes and what it frees; addresses are canonical.

    ``removes`` are other objects (resource, namespace, name) that go with this one unless a finalizer holds them.
    """

    reserve_ips: tuple[str, ...] = ()
    release_ips: tuple[str, ...] = ()
    reserve_ports: tuple[int, ...] = ()
    release_ports: tuple[int, ...] = ()
    removes: tuple[tuple[Resource, str, str], ...] = ()
