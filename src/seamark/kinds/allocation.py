"""Planning of what an object takes from the cluster's ranges: cluster IPs and node ports.

A kind plans (:meth:`Kind.allocate <seamark.kinds.kind.Kind.allocate>`): it looks up what is taken but writes nothing.
The API server writes the plan in the object's own transaction, so that nothing has to be undone when a write fails.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

import msgspec

from seamark.kinds.resource import Resource


class Pool(Protocol):
    """The ranges of a cluster, and which addresses and ports are taken now."""

    random: random.Random

    @property
    def ranges(self) -> Sequence[str]:
        """The CIDRs the cluster was configured with, at most one of each family."""
        ...

    @property
    def open_ranges(self) -> Sequence[str]:
        """The CIDRs that new addresses come from: ranges may be added, and closed, while the cluster runs."""
        ...

    @property
    def node_ports(self) -> tuple[int, int]:
        """The first and the last node port."""
        ...

    def has_address(self, address: str) -> bool:
        """Whether this address, given in its canonical form, is taken."""
        ...

    def has_port(self, port: int) -> bool:
        """Whether this node port is taken."""
        ...


class Allocation(msgspec.Struct, frozen=True):
    """What a write takes and what it frees; addresses are canonical.

    ``removes`` are other objects (resource, namespace, name) that are deleted together with this one, except those with
    finalizers.
    """

    reserve_ips: tuple[str, ...] = ()
    release_ips: tuple[str, ...] = ()
    reserve_ports: tuple[int, ...] = ()
    release_ports: tuple[int, ...] = ()
    removes: tuple[tuple[Resource, str, str], ...] = ()
