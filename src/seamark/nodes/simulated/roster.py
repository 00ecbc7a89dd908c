"""The simulated nodes that exist, with the addresses of their Pods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seamark.kinds.wellknown import HOW_PODS_ARE
from seamark.nodes.simulated.addresses import Addresses
from seamark.rules.objects.node import Node


class Member:
    """One simulated node.

    ``switched_on`` unless a user has stopped it; ``running`` if its Node is also considered alive: a kubelet without
    working heartbeats could not write anything else either.
    """

    __slots__ = ("addresses", "host_ips", "how_pods_are", "name", "pod_cidrs", "running", "switched_on", "uid")

    def __init__(self, node: Node, host_ips: tuple[str, ...]) -> None:
        self.name = node.name
        self.uid = node.metadata.uid
        self.host_ips = host_ips
        self.pod_cidrs = node.spec.pod_cidrs
        self.addresses = Addresses(node.spec.pod_cidrs)
        self.hear(node)

    def hear(self, node: Node) -> None:
        self.how_pods_are = node.metadata.labels.get(HOW_PODS_ARE, "")
        self.switched_on = not node.stopped
        self.running = self.switched_on and node.ready


class Roster:
    """The simulated nodes by name.  A Node counts once it is marked as simulated and completed."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def get(self, name: str) -> Member | None:
        return self._members.get(name)

    def members(self) -> Sequence[Member]:
        return list(self._members.values())

    def put(self, node: Node) -> tuple[Member | None, bool]:
        """Take in a Node; returns its member, if it is one, and whether that was added, replaced or removed."""
        host_ips = tuple(a.address for a in node.status.addresses if a.type == "InternalIP")
        if not node.simulated or not host_ips or not node.spec.pod_cidrs:
            return None, self._members.pop(node.name, None) is not None
        known = self._members.get(node.name)
        if known is not None and known.uid == node.metadata.uid and known.pod_cidrs == node.spec.pod_cidrs:
            known.hear(node)
            known.host_ips = host_ips
            return known, False
        member = self._members[node.name] = Member(node, host_ips)
        return member, True

    def remove(self, name: str) -> None:
        self._members.pop(name, None)

    def retain(self, names: Iterable[str]) -> None:
        """Remove all other members."""
        self._members = {name: self._members[name] for name in names if name in self._members}
