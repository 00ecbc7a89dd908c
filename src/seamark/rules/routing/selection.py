"""Which of a port's endpoints get its connections, and why the others do not (pure).

Ready endpoints come first.  Only while there is none do those count that terminate but still serve, so that a rollout
loses no connection.  This is decided for the whole cluster and for this node separately.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seamark.rules.routing.model import Backend, Choice, Empty, LeftOut, Reason

Exclusion = Callable[[Backend], Reason | None]


def for_cluster(backends: Sequence[Backend], node: str, zone: str) -> Choice:
    """For the traffic policy Cluster: all nodes' endpoints, or those that their hints reserve for this node or zone."""
    return _choose(backends, hinted_away(backends, node, zone), "refuse")


def for_node(backends: Sequence[Backend]) -> Choice:
    """For the traffic policy Local.  Hints do not matter.

    With endpoints on other nodes only, a connection is dropped: the client shall try another node.
    """
    usable = any(backend.ready or backend.retiring for backend in backends)
    return _choose(backends, lambda each: None if each.local else Reason.ELSEWHERE, "drop" if usable else "refuse")


def hinted_away(backends: Sequence[Backend], node: str, zone: str) -> Exclusion:
    """Which ready endpoints the hints keep away from here.

    Hints of one kind count if every ready endpoint has one and at least one of them names this node (or its zone);
    hints for nodes come before hints for zones.
    """
    ready = [backend for backend in backends if backend.ready]
    if _complete([backend.for_nodes for backend in ready], node):
        return lambda each: Reason.OTHER_NODE if each.ready and node not in each.for_nodes else None
    if _complete([backend.for_zones for backend in ready], zone):
        return lambda each: Reason.OTHER_ZONE if each.ready and zone not in each.for_zones else None
    return lambda each: None


def _complete(hints: Sequence[tuple[str, ...]], here: str) -> bool:
    return bool(here) and all(hints) and any(here in names for names in hints)


def _choose(backends: Sequence[Backend], excluded: Exclusion, empty: Empty) -> Choice:
    candidates: list[Backend] = []
    left_out: list[LeftOut] = []
    for backend in backends:
        if reason := excluded(backend):
            left_out.append(LeftOut(backend, reason))
        else:
            candidates.append(backend)
    first_choice = any(backend.ready for backend in candidates)
    chosen: list[Backend] = []
    for backend in candidates:
        if backend.ready if first_choice else backend.retiring:
            chosen.append(backend)
        else:
            left_out.append(LeftOut(backend, _flaw(backend)))
    return Choice(tuple(chosen), tuple(left_out), empty)


def _flaw(backend: Backend) -> Reason:
    if not backend.terminating:
        return Reason.NOT_READY
    return Reason.TERMINATING if backend.serving else Reason.STOPPED
