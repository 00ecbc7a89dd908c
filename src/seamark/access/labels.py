"""Inverted indexes of labels: which objects does this selector mean, and which selectors mean this object?

Both are kept per namespace and change by change: the cost of one change depends on its labels, never on how many
objects or selectors there are.  They know equality selectors only (``{"app": "web"}``, a Service's); selectors in full
are :mod:`seamark.kinds.values.selectors`.  An empty selector means every object: leave out those that mean none.

Mappings handed in are kept, not copied, and must not change afterwards.
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
    """From a selector to the objects it means."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Objects[K]] = {}

    def put(self, namespace: str, key: K, labels: Mapping[str, str]) -> None:
        """An object is new or has these labels now."""
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
        """An object is gone; one that never was is gone already."""
        here = self._namespaces.get(namespace)
        if here is None:
            return
        for pair in here.labels.pop(key, _NONE).items():
            _discard(here.by_pair, pair, key)
        if not here.labels:
            del self._namespaces[namespace]

    def select(self, namespace: str, selector: Mapping[str, str]) -> set[K]:
        """The objects with all these labels; a set of the caller's own."""
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
        # Intersecting whole sets, smallest first, stays inside the interpreter's C: filtering the smallest set pair by
        # pair in Python loses to a plain scan as soon as a selector is broad.
        sets.sort(key=len)
        return sets[0].intersection(*sets[1:])

    def count(self, namespace: str, pair: Pair) -> int:
        """How many objects have this one label."""
        here = self._namespaces.get(namespace)
        return len(here.by_pair.get(pair, ())) if here else 0


class _Selectors(Generic[K]):
    """One namespace's selectors.

    ``uses`` counts the selectors a pair occurs in; ``filed`` has each selector under one of its pairs only, and
    ``review`` is the size at which such a pile is looked through again for selectors that now have a rarer pair.
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
    """From an object's labels to the selectors that mean it.

    A selector is filed under its rarest pair, so that ``app=web`` or ``env=prod``, which half the selectors share,
    do not make every one of them a candidate for every object.
    """

    def __init__(self) -> None:
        self._namespaces: dict[str, _Selectors[K]] = {}

    def put(self, namespace: str, key: K, selector: Mapping[str, str]) -> None:
        """A selector is new or reads like this now."""
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
        """A selector is gone; one that never was is gone already."""
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
        """The selectors that mean an object with these labels; a set of the caller's own."""
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
        """Refile a grown pile: each selector was put where it was rarest then, and times change.

        The next review comes at twice the size that remains, so a selector is reviewed a constant number of times per
        selector filed, however they arrive.
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
    """Take a key out of one set, and the set away with its last key."""
    keys = sets[pair]
    keys.discard(key)
    if not keys:
        del sets[pair]
