"""Where new endpoints go among a Service's slices, with as few writes as possible (pure).

Every written slice goes to every watcher in the cluster, so slices are not rebalanced: endpoints stay where they are,
slices that change anyway are filled up, and only then is an unchanged slice touched or a new one made.

Kubernetes begins a new slice as soon as what is left does not fit into an old one, and has gaps wherever Pods came in
batches.  Here the fullest slice is filled up first, one write more in a hundred endpoints: a Service that only grows
has as few slices as can be, however its Pods came.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping

import msgspec

from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.slices.matching import Identity

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
    waiting = iter(sorted(missing.items(), key=_rank) if len(missing) > 1 else missing.items())
    left = len(missing)
    # The fullest first, so that half-empty slices have a chance to become empty.
    for name in sorted(result, key=lambda name: (-len(result[name]), name)):
        left -= _fill(result[name], waiting, limit)
    new: list[Content] = []
    if not left:
        return Placement(result, new)
    with_room = {name: len(each) for name, each in unchanged.items() if name not in result and len(each) < limit}
    filled_up = False
    while left:
        best = _best_fit(left, with_room, limit) if left < limit else None
        if best is None and left < limit and not filled_up:
            best, filled_up = _fullest(with_room), True
        if best is not None:
            del with_room[best]
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


def _best_fit(count: int, sizes: Mapping[str, int], limit: int) -> str | None:
    """The slice that all of them fit into most tightly; None if there is none."""
    fitting = [(limit - count - size, name) for name, size in sizes.items() if size + count <= limit]
    return min(fitting)[1] if fitting else None


def _fullest(sizes: Mapping[str, int]) -> str | None:
    return min(sizes, key=lambda name: (-sizes[name], name), default=None)


def _rank(entry: tuple[Identity, Endpoint]) -> tuple[list[bytes], Identity]:
    """Addresses in the order they are usually given out, so that Pods that came together stay together."""
    identity = entry[0]
    return [_packed(address) for address in identity[0]], identity


def _packed(address: str) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.inet_pton(family, address)
    except OSError:
        return address.encode()  # not one of a Pod: any order will do
