"""Where new endpoints go among a Service's slices, with as few writes as possible (pure).

Every written slice goes to every watcher in the cluster, so slices are not rebalanced: endpoints stay where they are,
slices that change anyway are filled up, and only then is an unchanged slice touched or a new one made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from seamark.controllers.views import Endpoint, Identity

Content = dict[Identity, Endpoint]


class Placement(msgspec.Struct, frozen=True):
    """Contents of changed slices by name, and of new ones."""

    changed: dict[str, Content]
    new: list[Content]


def place(
    missing: Content, *, changed: Mapping[str, Content], unchanged: Mapping[str, Content], limit: int
) -> Placement:
    """Put every missing endpoint somewhere.

    ``changed`` are slices that will be written in any case and ``unchanged`` the others, all of the same ports; neither
    is modified.  The outcome depends on what is given, not on its order.
    """
    if not missing:
        return Placement(dict(changed), [])
    result = {name: dict(content) for name, content in changed.items()}
    waiting = iter(sorted(missing.items()))
    left = len(missing)
    # The fullest first, so that half-empty slices have a chance to become empty.
    for name in sorted(result, key=lambda name: (-len(result[name]), name)):
        left -= _fill(result[name], waiting, limit)
    new: list[Content] = []
    while left:
        best = _best_fit(left, (item for item in unchanged.items() if item[0] not in result), limit)
        if best is not None:
            content = result[best] = dict(unchanged[best])
        else:
            content = {}
            new.append(content)
        left -= _fill(content, waiting, limit)
    return Placement(result, new)


def _fill(content: Content, waiting: Iterable[tuple[Identity, Endpoint]], limit: int) -> int:
    """Move endpoints in until the slice is full; says how many."""
    before = len(content)
    if before < limit:
        for identity, endpoint in waiting:
            content[identity] = endpoint
            if len(content) >= limit:
                break
    return len(content) - before


def _best_fit(count: int, candidates: Iterable[tuple[str, Content]], limit: int) -> str | None:
    """The slice that all of them fit into most tightly; None if there is none, or they fill a new one anyway."""
    if count >= limit:
        return None
    fitting = [(limit - count - len(content), name) for name, content in candidates if len(content) + count <= limit]
    return min(fitting)[1] if fitting else None
