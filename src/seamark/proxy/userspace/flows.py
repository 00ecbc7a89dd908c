"""The UDP flows under way: how many there may be, and when one has ended (pure but for the time)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from seamark.clock import Clock

F = TypeVar("F")

# The kernel's own times for UDP, nf_conntrack_udp_timeout and nf_conntrack_udp_timeout_stream.
UNANSWERED_SECONDS = 30.0
ANSWERED_SECONDS = 120.0


class FlowTable(Generic[F]):
    """Flows by key, each list with the one that was silent longest first.

    UDP has no end, so a flow ends by silence.  When the table is full, a new flow takes the place of one that no
    backend has answered yet, as in the kernel's connection tracking: a flood of datagrams displaces only itself.  Only
    if all are answered, the one that was silent longest goes.
    """

    def __init__(self, most: int, *, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._unanswered: dict[Hashable, tuple[F, float]] = {}
        self._answered: dict[Hashable, tuple[F, float]] = {}
        self._patience = ((self._unanswered, UNANSWERED_SECONDS), (self._answered, ANSWERED_SECONDS))

    def __len__(self) -> int:
        return len(self._unanswered) + len(self._answered)

    def __iter__(self) -> Iterator[Hashable]:
        yield from self._unanswered
        yield from self._answered

    def heard(self, key: Hashable) -> F | None:
        """The flow of a datagram from a client; None if it is a new one."""
        for flows in (self._answered, self._unanswered):
            if found := flows.pop(key, None):
                flows[key] = found[0], self._clock.monotonic()
                return found[0]
        return None

    def answered(self, key: Hashable) -> None:
        """A backend answered."""
        found = self._answered.pop(key, None) or self._unanswered.pop(key, None)
        if found is not None:
            self._answered[key] = found[0], self._clock.monotonic()

    def add(self, key: Hashable, flow: F) -> F | None:
        """A new flow; returns the one that it displaces, if any."""
        displaced = None
        if len(self) >= self._most:
            flows = self._unanswered or self._answered
            displaced, _ = flows.pop(next(iter(flows)))
        self._unanswered[key] = flow, self._clock.monotonic()
        return displaced

    def remove(self, key: Hashable) -> F | None:
        found = self._answered.pop(key, None) or self._unanswered.pop(key, None)
        return None if found is None else found[0]

    def expired(self) -> list[F]:
        """Remove and return the flows that were silent for too long."""
        now = self._clock.monotonic()
        ended: list[F] = []
        for flows, patience in self._patience:
            while flows:
                key = next(iter(flows))
                if flows[key][1] > now - patience:
                    break
                ended.append(flows.pop(key)[0])
        return ended
