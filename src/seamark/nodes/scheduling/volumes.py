"""Which nodes a Pod's volumes can be used on, and which volumes its waiting claims take there.  Pure.

A claim whose class waits for the first Pod gets its volume only when the Pod's node is known: the smallest free one
that the node can use, else one that is made for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from seamark.rules.objects.node import Node
from seamark.rules.objects.storage import Claim, StorageClass, Volume
from seamark.rules.placement import NodeTerm, node_terms
from seamark.rules.volumes import SELECTED_NODE, best

NO_PROVISIONER = "kubernetes.io/no-provisioner"
OUT_OF_REACH = "node(s) didn't match PersistentVolume's node affinity"
NONE_TO_BIND = "node(s) didn't find available persistent volumes to bind"

Plan = list[tuple[Claim, Volume | None]]  # the volume that a claim takes; None: one is made for it


class Waiting(msgspec.Struct, frozen=True):
    """A claim that waits for its first Pod."""

    claim: Claim
    storage_class: StorageClass

    def provided_on(self, node: Node) -> bool:
        """Whether a volume can be made for it that the node can use."""
        chosen = self.claim.metadata.annotations.get(SELECTED_NODE)
        if self.storage_class.provisioner == NO_PROVISIONER or chosen not in (None, node.name):
            return False
        terms = self.storage_class.allowed_topologies
        return not terms or any(_matches(term.get("matchLabelExpressions") or (), node) for term in terms)


class PodVolumes:
    """The volumes of one Pod."""

    def __init__(self, bound: Sequence[Volume], waiting: Sequence[Waiting], volumes: Sequence[Volume]) -> None:
        self._ties: list[tuple[NodeTerm, ...]] = [
            node_terms(volume.spec.node_affinity["required"]) for volume in bound if volume.tied
        ]
        self._waiting = waiting
        classes = {each.claim.storage_class for each in waiting}
        self._free = [volume for volume in volumes if volume.storage_class in classes]

    def refuses(self, node: Node) -> str:
        """Why the Pod's volumes cannot be used on the node; empty if they can."""
        if not all(any(term.matches(node) for term in terms) for terms in self._ties):
            return OUT_OF_REACH
        return NONE_TO_BIND if self._waiting and self.plan(node) is None else ""

    def plan(self, node: Node) -> Plan | None:
        """What the waiting claims take on the node; None if one of them gets nothing there."""
        free, plan = list(self._free), Plan()
        for each in self._waiting:
            volume = best(each.claim, free, node=node)
            if volume is not None:
                free.remove(volume)
            elif not each.provided_on(node):
                return None
            plan.append((each.claim, volume))
        return plan


def _matches(expressions: Sequence[dict[str, list[str]]], node: Node) -> bool:
    labels = node.metadata.labels
    return all(labels.get(str(each.get("key", ""))) in (each.get("values") or ()) for each in expressions)
