"""Which Pods run as processes, where this machine can run them: as the Pod asks, else as its node is, else as set.

It is decided when a Pod comes to its node, and holds for as long as it is there.
"""

from __future__ import annotations

from seamark.kinds.wellknown import HOW_PODS_ARE
from seamark.nodes.simulated.roster import Member
from seamark.rules.objects.pod import Pod

PROCESSES, SIMULATED = "processes", "simulated"


class Choice:
    """``usual`` is how Pods are if neither they nor their nodes say it."""

    def __init__(self, usual: str) -> None:
        self._usual = usual
        self._runs: dict[str, bool] = {}  # by uid

    def joins(self, member: Member) -> bool:
        """Whether the node has a network before a Pod asks for it."""
        return (member.how_pods_are or self._usual) == PROCESSES

    def runs(self, pod: Pod, member: Member) -> bool:
        uid = pod.metadata.uid
        if (known := self._runs.get(uid)) is None:
            asked = pod.metadata.annotations.get(HOW_PODS_ARE)
            how = asked if asked in (PROCESSES, SIMULATED) else member.how_pods_are or self._usual
            known = self._runs[uid] = how == PROCESSES
        return known

    def forget(self, uid: str) -> None:
        self._runs.pop(uid, None)
