"""Inverted indexes: the objects that a selector matches, and the selectors that match an object.

Both are kept per namespace and updated per change: the cost of a change depends on its labels, not on the number of
objects or selectors.  They support equality selectors only (``{"app": "web"}``, as in a Service); full selectors are in
:mod:`seamark.kinds.values.selectors`.  An empty selector matches every object: do not put selectors that match none.
Mappings passed in are kept, not copied, and must not change afterwards.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Pair = tuple[str, str]

_NONE: Mapping[str, str] = {}


class _Objects(Generic[K]):
    """One namespace's objects."""

    __slots__ = ("by_pair", "labels")

    def __init__(self) -> None:
        self.labels: dict[K, Mapping[str, str]] = {}
        self.by_pair: dict[Pair, set[K]] = {}


class ObjectsByLabels(Generic[K]):
    """Finds the objects that a selector matches."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Objects[K]] = {}

    def put(self, namespace: str, key: K, labels: Mapping[str, str]) -> None:
        """Add an object, or update its labels."""
        here = self._namespaces.get(namespace)
        if here is None:
            here = self._namespaces[namespace] = _Objects()
        before = here.labels.get(key, _NONE)
        here.labels[key] = labels
        if before == labels:
            return
        if before:
            for pair in before.items() - labels.items():
                _discard(here.by_pair, pair, key)
        for pair in labels.items() - before.items():
            here.by_pair.setdefault(pair, set()).add(key)

    def remove(self, namespace: str, key: K) -> None:
        """Remove an object; no error if it is not there."""
        here = self._namespaces.get(namespace)
        if here is None:
            return
        for pair in here.labels.pop(key, _NONE).items():
            _discard(here.by_pair, pair, key)
        if not here.labels:
            del self._namespaces[namespace]

    def select(self, namespace: str, selector: Mapping[str, str]) -> set[K]:
        """The objects with all these labels, as a new set."""
        here = self._namespaces.get(namespace)
        if here is None:
            return set()
        if not selector:
            return set(here.labels)
        sets = []
        for pair in selector.items():
            found = here.by_pair.get(pair)
            if found is None:
                return set()
            sets.append(found)
        # Set intersection, smallest set first, runs in C.  Filtering the smallest set in Python would be slower than
        # a plain scan for broad selectors.
        sets.sort(key=len)
        return sets[0].intersection(*sets[1:])

    def count(self, namespace: str, pair: Pair) -> int:
        """How many objects have this label."""
        here = self._namespaces.get(namespace)
        return len(here.by_pair.get(pair, ())) if here else 0


class _Selectors(Generic[K]):
    """One namespace's selectors.

    ``uses`` counts the selectors that contain a pair.  ``filed`` lists each selector under one of its pairs only; such
    a list is called a pile.  When a pile reaches its size in ``review``, its selectors that have a rarer pair by now
    are moved.
    """

    __slots__ = ("everything", "filed", "filed_under", "review", "selectors", "uses")

    def __init__(self) -> None:
        self.selectors: dict[K, Mapping[str, str]] = {}
        self.uses: dict[Pair, int] = {}
        self.filed: dict[Pair, set[K]] = {}
        self.filed_under: dict[K, Pair] = {}
        self.review: dict[Pair, int] = {}
        self.everything: set[K] = set()


_FIRST_REVIEW = 8


class SelectorsByLabels(Generic[K]):
    """Finds the selectors that match an object's labels.

    A selector is filed under its rarest pair.  Otherwise a pair such as ``env=prod``, which half of the selectors may
    contain, would make all of them candidates for every object with that label.
    """

    def __init__(self) -> None:
        self._namespaces: dict[str, _Selectors[K]] = {}

    def put(self, namespace: str, key: K, selector: Mapping[str, str]) -> None:
        """Add or replace a selector."""
        here = self._namespaces.get(namespace)
        if here is None:
            here = self._namespaces[namespace] = _Selectors()
        before = here.selectors.get(key)
        if before == selector:
            return
        if before is not None:
            self._forget(here, key, before)
        here.selectors[key] = selector
        if not selector:
            here.everything.add(key)
            return
        for pair in selector.items():
            here.uses[pair] = here.uses.get(pair, 0) + 1
        pile = self._file(here, key, selector)
        if len(here.filed[pile]) >= here.review.get(pile, _FIRST_REVIEW):
            self._review(here, pile)

    def remove(self, namespace: str, key: K) -> None:
        """Remove a selector; no error if it is not there."""
        here = self._namespaces.get(namespace)
        if here is None:
            return
        before = here.selectors.pop(key, None)
        if before is None:
            return
        self._forget(here, key, before)
        if not here.selectors:
            del self._namespaces[namespace]

    def matching(self, namespace: str, labels: Mapping[str, str]) -> set[K]:
        """The selectors that match an object with these labels, as a new set."""
        here = self._namespaces.get(namespace)
        if here is None:
            return set()
        found = set(here.everything)
        filed, selectors, pairs = here.filed, here.selectors, labels.items()
        for pair in pairs:
            pile = filed.get(pair)
            if pile is None:
                continue
            for key in pile:
                selector = selectors[key]
                if len(selector) == 1 or selector.items() <= pairs:
                    found.add(key)
        return found

    @staticmethod
    def _file(here: _Selectors[K], key: K, selector: Mapping[str, str]) -> Pair:
        uses = here.uses
        pair = min(selector.items(), key=uses.__getitem__) if len(selector) > 1 else next(iter(selector.items()))
        here.filed.setdefault(pair, set()).add(key)
        here.filed_under[key] = pair
        return pair

    def _review(self, here: _Selectors[K], pile: Pair) -> None:
        """File the selectors of a grown pile again, because another pair of theirs may be the rarest one now.

        The next review comes at twice the remaining size, so reviews cost a constant amount per selector added.
        """
        for key in list(here.filed[pile]):
            selector = here.selectors[key]
            if len(selector) > 1:
                here.filed[pile].discard(key)
                self._file(here, key, selector)
        remaining = len(here.filed[pile])
        if remaining:
            here.review[pile] = max(_FIRST_REVIEW, 2 * remaining)
        else:
            del here.filed[pile]
            here.review.pop(pile, None)

    @staticmethod
    def _forget(here: _Selectors[K], key: K, selector: Mapping[str, str]) -> None:
        if not selector:
            here.everything.discard(key)
            return
        for pair in selector.items():
            if here.uses[pair] == 1:
                del here.uses[pair]
            else:
                here.uses[pair] -= 1
        pile = here.filed_under.pop(key)
        _discard(here.filed, pile, key)
        if pile not in here.filed:
            here.review.pop(pile, None)


def _discard(sets: dict[Pair, set[K]], pair: Pair, key: K) -> None:
    """Remove a key from the set of ``pair``, and the set itself if it is empty then."""
    keys = sets[pair]
    keys.discard(key)
    if not keys:
        del sets[pair]
