"""The slices of one Service that hold the same family and offer the same ports.

Only differences are looked at.  An endpoint is *open* while the slices do not hold it exactly once and exactly as
wanted.  The plan edits the slices with open endpoints and leaves all others alone, so its cost is that of the change.

New endpoints are packed with as few writes as possible, because every written slice is sent to every watcher of the
cluster.  Endpoints stay where they are; slices that change anyway are filled up first; only then is an unchanged slice
edited or a new one made.  Kubernetes starts a new slice as soon as the remaining endpoints do not fit into an old one,
which leaves gaps where Pods came in batches.  Here the fullest slice is filled up first, at the cost of one more write
in a hundred endpoints: a Service that only grows then has as few slices as possible.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Iterable, Mapping
from operator import is_

import msgspec

from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.slices.objects import Content, Identity, same_endpoint


class GroupPlan(msgspec.Struct, frozen=True):
    """The contents of slices to write, by name; the contents of new slices; the names of slices to remove."""

    changed: dict[str, Content]
    new: list[Content]
    removed: list[str]


class Group:
    """The endpoints wanted and the endpoints held, compared as they are noted."""

    def __init__(self, *, ignore_hints: bool) -> None:
        self.wanted: Content = {}
        self.slices: dict[str, Content] = {}
        self._ignore_hints = ignore_hints
        self._homes: dict[Identity, tuple[str, ...]] = {}
        self._open: set[Identity] = set()
        self._repeating: set[str] = set()

    @property
    def idle(self) -> bool:
        """Whether nothing is wanted and nothing held, so that the group can be dropped."""
        return not self.wanted and not self.slices

    def want(self, identity: Identity, endpoint: Endpoint) -> None:
        self.wanted[identity] = endpoint
        self._review(identity)

    def unwant(self, identity: Identity) -> None:
        del self.wanted[identity]
        self._review(identity)

    def hold(self, name: str, content: Content, *, repeats: bool = False) -> None:
        """Note what a slice holds now; ``repeats`` says that it lists an endpoint twice."""
        before = self.slices.get(name, {})
        self.slices[name] = content
        if repeats:
            self._repeating.add(name)
        else:
            self._repeating.discard(name)
        if _same_keys(before, content):
            # This is our own edit, seen by the informer: unchanged endpoints are the very same objects.
            changed = zip(before.values(), content.items(), strict=True)
            for held, (identity, endpoint) in changed:
                if held is not endpoint:
                    self._review(identity)
            return
        for identity in before.keys() - content.keys():
            self._leave(identity, name)
        for identity, endpoint in content.items():
            if identity not in before:
                self._homes[identity] = tuple(sorted((*self._homes.get(identity, ()), name)))
            elif before[identity] == endpoint:
                continue
            self._review(identity)

    def drop(self, name: str) -> None:
        """Note that a slice is gone."""
        self._repeating.discard(name)
        for identity in self.slices.pop(name):
            self._leave(identity, name)

    def plan(self, *, outdated: Collection[str], limit: int, claimed: bool = True) -> GroupPlan:
        """How to get from held to wanted; ``outdated`` slices are written even if their endpoints are right.

        A slice that becomes empty is removed.  One that is empty already stays, unless no Pod offers these ports.
        ``claimed`` says that a Pod does, even if it has no address of this family.
        """
        if not claimed:
            return GroupPlan({}, [], sorted(self.slices))
        edited: dict[str, Content] = {name: dict(self.slices[name]) for name in {*outdated, *self._repeating}}
        missing: Content = {}
        for identity in self._open:
            wanted = self.wanted.get(identity)
            homes = self._homes.get(identity, ())
            if wanted is not None and not homes:
                missing[identity] = wanted
            for position, name in enumerate(homes):
                if wanted is None or position > 0:
                    del self._edit(edited, name)[identity]
                elif not self._same(self.slices[name][identity], wanted):
                    self._edit(edited, name)[identity] = wanted
        for content in edited.values():
            # The limit was lowered, or another writer has overfilled the slice: it is written anyway, so cut it.
            while len(content) > limit:
                identity, endpoint = content.popitem()
                missing[identity] = endpoint
        removed = sorted(name for name, content in edited.items() if not content and self.slices[name])
        kept = {name: content for name, content in edited.items() if content or not self.slices[name]}
        unchanged = self.slices if missing else {}
        untouched = {name: content for name, content in unchanged.items() if name not in edited}
        packing = place(missing, changed=kept, unchanged=untouched, limit=limit)
        return GroupPlan(packing.changed, packing.new, removed)

    def _edit(self, edited: dict[str, Content], name: str) -> Content:
        content = edited.get(name)
        if content is None:
            content = edited[name] = dict(self.slices[name])
        return content

    def _leave(self, identity: Identity, name: str) -> None:
        homes = tuple(home for home in self._homes[identity] if home != name)
        if homes:
            self._homes[identity] = homes
        else:
            del self._homes[identity]
        self._review(identity)

    def _review(self, identity: Identity) -> None:
        """Note whether the endpoint is open."""
        wanted = self.wanted.get(identity)
        homes = self._homes.get(identity, ())
        if wanted is None:
            settled = not homes
        else:
            settled = len(homes) == 1 and self._same(self.slices[homes[0]][identity], wanted)
        if settled:
            self._open.discard(identity)
        else:
            self._open.add(identity)

    def _same(self, held: Endpoint, wanted: Endpoint) -> bool:
        if self._ignore_hints and held.hints is not None:
            held = msgspec.structs.replace(held, hints=None)
        return same_endpoint(held, wanted)


def _same_keys(one: Content, other: Content) -> bool:
    """Whether both hold the very same key objects in the same order, as a copy with replaced values does."""
    return len(one) == len(other) and all(map(is_, one, other))


# --- packing ---------------------------------------------------------------------------------------


class Packing(msgspec.Struct, frozen=True):
    """The contents of changed slices, by name, and of new ones."""

    changed: dict[str, Content]
    new: list[Content]


def place(missing: Content, *, changed: Mapping[str, Content], unchanged: Mapping[str, Content], limit: int) -> Packing:
    """Put every missing endpoint somewhere.

    ``changed`` are the slices that are written in any case, ``unchanged`` all others of the group; neither mapping is
    modified.  The result does not depend on the order of what is given.
    """
    if not missing:
        return Packing(dict(changed), [])
    result = {name: dict(content) for name, content in changed.items()}
    waiting = iter(sorted(missing.items(), key=_rank) if len(missing) > 1 else missing.items())
    left = len(missing)
    # The fullest first, so that half-empty slices can become empty in time.
    for name in sorted(result, key=lambda name: (-len(result[name]), name)):
        left -= _fill(result[name], waiting, limit)
    new: list[Content] = []
    if not left:
        return Packing(result, new)
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
    return Packing(result, new)


def _fill(content: Content, waiting: Iterable[tuple[Identity, Endpoint]], limit: int) -> int:
    """Move endpoints in until the slice is full; returns how many."""
    before = len(content)
    if before < limit:
        for identity, endpoint in waiting:
            content[identity] = endpoint
            if len(content) >= limit:
                break
    return len(content) - before


def _best_fit(count: int, sizes: Mapping[str, int], limit: int) -> str | None:
    """The slice that has the least room left once all of them are in; None if they fit into none."""
    fitting = [(limit - count - size, name) for name, size in sizes.items() if size + count <= limit]
    return min(fitting)[1] if fitting else None


def _fullest(sizes: Mapping[str, int]) -> str | None:
    return min(sizes, key=lambda name: (-sizes[name], name), default=None)


def _rank(entry: tuple[Identity, Endpoint]) -> tuple[list[bytes], Identity]:
    """Numeric order of addresses.  They are usually given out in it, so Pods that came together stay together."""
    identity = entry[0]
    return [_packed(address) for address in identity[0]], identity


def _packed(address: str) -> bytes:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        return socket.inet_pton(family, address)
    except OSError:
        return address.encode()  # not an IP address, so not a Pod's: any order will do
