"""The nodes that are ours, with the addresses their Pods have; whoever asks about a Pod's node asks here."""

from __future__ import annotations

from seamark.nodes.simulated.addresses import Addresses
from seamark.rules.objects.node import Node


class Member:
    """One node of ours.

    ``switched_on`` unless somebody has stopped it; ``running`` if it is also thought to be alive: a kubelet that cannot
    get its heartbeats through gets nothing else through either.
    """

    __slots__ = ("addresses", "host_ips", "name", "pod_cidrs", "running", "switched_on", "uid")

    def __init__(self, node: Node, host_ips: tuple[str, ...]) -> None:
        self.name = node.name
        self.uid = node.metadata.uid
        self.host_ips = host_ips
        self.pod_cidrs = node.spec.pod_cidrs
        self.addresses = Addresses(node.spec.pod_cidrs)
        self.hear(node)

    def hear(self, node: Node) -> None:
        self.switched_on = not node.stopped
        self.running = self.switched_on and node.ready


class Roster:
    """Our nodes by name.  A Node is ours if it says so and has what a node needs."""

    def __init__(self) -> None:
        self._members: dict[str, Member] = {}

    def get(self, name: str) -> Member | None:
        return self._members.get(name)

    def put(self, node: Node) -> tuple[Member | None, bool]:
        """A Node is like this now: the member it is, and whether that is another one than before."""
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
