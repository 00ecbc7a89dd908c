"""The slices of one Service, family and set of ports: what they hold and what they should.

Only differences are looked at.  An endpoint is *open* while the slices do not hold it exactly once and exactly as
wanted; the plan edits the slices with open endpoints and leaves all others alone, so its cost is that of the change.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import is_

import msgspec

from seamark.rules.objects.endpointslice import Endpoint
from seamark.rules.slices.matching import Identity, same_endpoint
from seamark.rules.slices.packing import Content, place


class GroupPlan(msgspec.Struct, frozen=True):
    """Contents of slices to write by name, of slices to make, and the names of those to remove."""

    changed: dict[str, Content]
    new: list[Content]
    removed: list[str]


class Group:
    """Endpoints wanted and endpoints held, compared as they come in."""

    def __init__(self, *, ignore_hints: bool) -> None:
        self.wanted: Content = {}
        self.slices: dict[str, Content] = {}
        self._ignore_hints = ignore_hints
        self._homes: dict[Identity, tuple[str, ...]] = {}
        self._open: set[Identity] = set()
        self._repeating: set[str] = set()

    @property
    def idle(self) -> bool:
        """Nothing is wanted and nothing held: the group can be forgotten."""
        return not self.wanted and not self.slices

    def want(self, identity: Identity, endpoint: Endpoint) -> None:
        self.wanted[identity] = endpoint
        self._review(identity)

    def unwant(self, identity: Identity) -> None:
        del self.wanted[identity]
        self._review(identity)

    def hold(self, name: str, content: Content, *, repeats: bool = False) -> None:
        """A slice holds this now; ``repeats`` says that it lists some endpoint twice."""
        before = self.slices.get(name, {})
        self.slices[name] = content
        if repeats:
            self._repeating.add(name)
        else:
            self._repeating.discard(name)
        if _same_keys(before, content):
            # Our own edit come true: only what it replaced is another object, and nothing need be compared or hashed.
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
        """A slice is gone."""
        self._repeating.discard(name)
        for identity in self.slices.pop(name):
            self._leave(identity, name)

    def plan(self, *, outdated: Collection[str], limit: int, claimed: bool = True) -> GroupPlan:
        """How to get from held to wanted; ``outdated`` slices are written even if their endpoints are right.

        A slice that becomes empty goes, one that is empty stays, unless no Pod offers these ports: ``claimed`` says
        that one does, be it without an address of this family.
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
            # A limit that was lowered, or a slice somebody else has filled: what is written anyway is put right.
            while len(content) > limit:
                identity, endpoint = content.popitem()
                missing[identity] = endpoint
        removed = sorted(name for name, content in edited.items() if not content and self.slices[name])
        kept = {name: content for name, content in edited.items() if content or not self.slices[name]}
        unchanged = self.slices if missing else {}
        untouched = {name: content for name, content in unchanged.items() if name not in edited}
        placement = place(missing, changed=kept, unchanged=untouched, limit=limit)
        return GroupPlan(placement.changed, placement.new, removed)

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
        """Decide whether the endpoint is open."""
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
    """Whether these hold the very same keys in the same order, as a copy does in which only values were replaced."""
    return len(one) == len(other) and all(map(is_, one, other))
