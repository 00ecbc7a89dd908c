"""Is there an order of all operations on one key that explains every answer?

Each operation must take effect at one moment between its beginning and its end; a write without an answer may take
effect at any later moment, or never.  The key is a register that is absent, or holds a version; versions only grow.

The search is Wing and Gong's with a memory of what was tried.  Versions make it short: they tell the order of all
writes whose version a client saw, so that only writes without an answer and deletions leave a choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple


class Step(NamedTuple):
    """One operation on the key, as far as the order is concerned.

    ``version`` is the one a write made or a read saw (0: never seen, or absent).  ``needs`` is what must be true just
    before: ``absent``, ``present``, ``changed`` (not at ``expected``) or nothing.
    """

    begin: int
    end: int
    kind: Literal["write", "delete", "read", "refused"]
    version: int = 0
    expected: int = 0
    needs: str = ""
    optional: bool = False
    number: int = 0  # the operation it is made from; 0: one that is not in the history


class State(NamedTuple):
    present: bool = False
    version: int = 0  # 0 while present: a version that no client saw
    highest: int = 0


def after(step: Step, state: State) -> State | None:
    """The state once the step has taken effect; None if it cannot take effect here."""
    if step.kind == "read":
        fits = state.present and state.version == step.version if step.version else not state.present
        return state if fits else None
    current = state.present and state.version == step.expected
    if step.needs == "changed":
        return state if not current else None
    if (step.needs == "absent" and state.present) or (step.needs == "present" and not state.present):
        return None
    if step.kind == "refused":
        return state
    if step.expected and not current:
        return None
    if step.kind == "delete":
        return State(False, 0, state.highest) if state.present else None
    if not step.version:
        return State(True, 0, state.highest)
    return State(True, step.version, step.version) if step.version > state.highest else None


def stuck(steps: Sequence[Step]) -> Sequence[Step] | None:
    """None if an order exists; otherwise the steps left over where the search got furthest."""
    steps = sorted(steps)
    required = sum(1 << i for i, step in enumerate(steps) if not step.optional)
    tried: set[tuple[int, State]] = set()
    open_: list[tuple[int, State]] = [((1 << len(steps)) - 1, State())]
    best = required
    while open_:
        remaining, state = open_.pop()
        remaining, candidates = _without_reads(steps, remaining, state)
        left = remaining & required
        if not left:
            return None
        if (remaining, state) in tried:
            continue
        tried.add((remaining, state))
        if left.bit_count() < best.bit_count():
            best = left
        lowest = min((steps[i].version for i in _bits(left) if steps[i].version), default=0)
        alike: set[tuple[object, ...]] = set()
        for i in sorted(candidates, key=lambda i: not steps[i].optional):
            # The last one pushed is tried first: steps that must happen come before those that may.
            step, following = steps[i], after(steps[i], state)
            if following is None or following == state or step.version > lowest > 0:
                continue  # it cannot be, or is in vain, or something older is still to be written or read
            if step.optional:
                # Of steps that may happen at any later time and do the same, it is enough to try one.
                if (does := step[2:-1]) in alike:
                    continue
                alike.add(does)
            open_.append((remaining & ~(1 << i), following))
    return [steps[i] for i in _bits(best)]


def _without_reads(steps: Sequence[Step], remaining: int, state: State) -> tuple[int, list[int]]:
    """Let everything happen that changes nothing and fits the state; with what can happen next after that.

    A step can be next if no other that must happen ended before it began.
    """
    while True:
        deadline = min((steps[i].end for i in _bits(remaining) if not steps[i].optional), default=0)
        candidates = []
        for i in _bits(remaining):
            if steps[i].begin > deadline:
                break
            candidates.append(i)
        fitting = sum(1 << i for i in candidates if after(steps[i], state) == state and steps[i].kind in READS)
        if not fitting:
            return remaining, candidates
        remaining &= ~fitting


READS = ("read", "refused")


def _bits(mask: int) -> Sequence[int]:
    found = []
    while mask:
        lowest = mask & -mask
        found.append(lowest.bit_length() - 1)
        mask ^= lowest
    return found
