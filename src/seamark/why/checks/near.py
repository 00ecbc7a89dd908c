"""Near misses: labels that a selector almost matches, ranked by how little would have to change.

This module only says what differs between two texts, and by how much.  What was meant only a person can say, so reports
call a near miss "closest", not "wrong".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum
from functools import lru_cache

import msgspec

from seamark.why.world import INSTANCE_LABELS, Shape

SHOWN = 5  # more near misses than these do not help
_WORDS = re.compile(r"[-_./]+")
_DIGITS = re.compile(r"\d+")


class DifferenceKind(Enum):
    """What differs between a pair of the selector and the labels."""

    SPELLING = "spelling"  # the value, by case, separators or a letter or two
    KEY_SPELLING = "spelling of the key"
    OTHER_KEY = "key"  # the value is there, under another key
    RELATED = "related value"  # one value is a part of the other
    VALUE = "value"
    MISSING = "missing"
    INSTANCE = "instance"  # a label that changes with every rollout


_COST: Mapping[DifferenceKind, float] = {
    DifferenceKind.SPELLING: 1.0,
    DifferenceKind.KEY_SPELLING: 1.2,
    DifferenceKind.INSTANCE: 1.3,
    DifferenceKind.OTHER_KEY: 1.5,
    DifferenceKind.RELATED: 2.0,
    DifferenceKind.MISSING: 3.0,
    DifferenceKind.VALUE: 3.0,
}
# Labels that name the application: another value there is another application.
_IDENTITY = frozenset(("app", "name", "run", "k8s-app", "app.kubernetes.io/name", "app.kubernetes.io/instance"))
FAR = 3.0  # from this cost on, Pods that match in another namespace are closer
# These make a near miss by themselves; with the others, the rest of the selector must match.
_TELLING = frozenset(
    (DifferenceKind.SPELLING, DifferenceKind.KEY_SPELLING, DifferenceKind.OTHER_KEY, DifferenceKind.INSTANCE)
)


class Difference(msgspec.Struct, frozen=True):
    """One pair of the selector, and what there is instead; ``letters`` counts edits where spelling is what differs."""

    kind: DifferenceKind
    key: str
    wanted: str
    found_key: str = ""
    found: str | None = None
    letters: int = 0

    @property
    def cost(self) -> float:
        return _COST[self.kind] + 0.1 * self.letters


class NearMiss(msgspec.Struct, frozen=True):
    """Labels a selector almost matches."""

    shape: Shape
    differences: tuple[Difference, ...]
    cost: float

    @property
    def first(self) -> Difference:
        return self.differences[0]

    def corrected(self, selector: Mapping[str, str]) -> dict[str, str | None]:
        """The merge patch that makes the selector match; None takes a key away."""
        patch: dict[str, str | None] = {}
        for difference in self.differences:
            if difference.found_key != difference.key:
                patch[difference.key] = None
            if difference.found_key and difference.found is not None:
                patch[difference.found_key] = difference.found
        return patch


def near_misses(selector: Mapping[str, str], shapes: Iterable[Shape], *, name: str = "") -> list[NearMiss]:
    """The closest of these, the closest first; of two equally close ones, the one called ``name`` comes first."""
    found = [miss for shape in shapes if (miss := near_miss(selector, shape, name=name)) is not None]
    found.sort(key=lambda miss: (miss.cost, not _called(miss.shape, name), -len(miss.shape.pods), _text(miss.shape)))
    return found[:SHOWN]


def near_miss(selector: Mapping[str, str], shape: Shape, *, name: str = "") -> NearMiss | None:
    """How these labels miss the selector; None if they match it or are not close."""
    labels = shape.labels
    wrong = [(key, value) for key, value in selector.items() if labels.get(key) != value]
    # Half the selector or more being different is not near, unless the rest is mere spelling.
    if not wrong or len(wrong) > 2 or _another_application(wrong, shape, name):
        return None
    spare = {key: value for key, value in labels.items() if key not in selector}
    differences = tuple(_difference(key, value, labels, spare) for key, value in wrong)
    close = all(difference.kind in _TELLING for difference in differences)
    related = len(wrong) == 1 and differences[0].kind is DifferenceKind.RELATED
    if not close and not related and not (len(wrong) == 1 < len(selector)):
        return None
    if all(difference.kind is DifferenceKind.INSTANCE for difference in differences) and len(wrong) == len(selector):
        return None  # no other label of the selector matches
    return NearMiss(shape, differences, sum(difference.cost for difference in differences))


def _another_application(wrong: list[tuple[str, str]], shape: Shape, name: str) -> bool:
    """Whether a label says that these Pods are of another application, even if all other labels match."""
    for key, wanted in wrong:
        found = shape.labels.get(key)
        if found is not None and key in _IDENTITY and misspelt(wanted, found) is None and not related(wanted, found):
            return not _called(shape, name)
    return False


def _difference(key: str, wanted: str, labels: Mapping[str, str], spare: Mapping[str, str]) -> Difference:
    if key in INSTANCE_LABELS:
        return Difference(DifferenceKind.INSTANCE, key, wanted)
    found = labels.get(key)
    if found is not None:
        letters = misspelt(wanted, found)
        if letters is not None:
            return Difference(DifferenceKind.SPELLING, key, wanted, key, found, letters)
        kind = DifferenceKind.RELATED if related(wanted, found) else DifferenceKind.VALUE
        return Difference(kind, key, wanted, key, found)
    same_value = [other for other, value in spare.items() if value == wanted]
    for other in same_value:
        if same_key(key, other):
            return Difference(DifferenceKind.KEY_SPELLING, key, wanted, other, wanted, misspelt(key, other) or 0)
    if same_value and not _common(wanted):
        return Difference(DifferenceKind.OTHER_KEY, key, wanted, same_value[0], wanted)
    return Difference(DifferenceKind.MISSING, key, wanted)


# --- texts -----------------------------------------------------------------------------------------


class _Spelling(msgspec.Struct, frozen=True):
    """What a text is compared by, computed once."""

    plain: str  # without case and punctuation
    words: frozenset[str]
    letters: frozenset[str]
    numberless: str


@lru_cache(maxsize=1 << 16)
def _spelt(text: str) -> _Spelling:
    words = [word for word in _WORDS.split(text.casefold()) if word]
    plain = "".join(words)
    return _Spelling(plain, frozenset(words), frozenset(plain), _DIGITS.sub("0", text))


def misspelt(one: str, other: str) -> int | None:
    """How many letters two words differ by, if it can be a typing mistake; None if they are different words."""
    mine, others = _spelt(one), _spelt(other)
    if mine.plain == others.plain:
        return 0
    shorter = min(len(mine.plain), len(others.plain))
    limit = 0 if shorter < 3 else 1 if shorter < 6 else 2
    # Each mistake adds or removes at most two distinct letters.  A different number, as in v1 and v2, is no mistake.
    if len(mine.letters ^ others.letters) > 2 * limit or mine.numberless == others.numberless:
        return None
    return distance(mine.plain, others.plain, limit)


def distance(one: str, other: str, limit: int) -> int | None:
    """Letters to add, drop, change or swap with a neighbour, from one to the other; None if more than ``limit``."""
    if abs(len(one) - len(other)) > limit:
        return None
    start = _shared(one, other)
    one, other = one[start:], other[start:]
    end = _shared(one[::-1], other[::-1])
    one, other = one[: len(one) - end], other[: len(other) - end]
    before_last: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        current = [row]
        for column, other_letter in enumerate(other, 1):
            cost = min(last[column] + 1, current[-1] + 1, last[column - 1] + (letter != other_letter))
            swapped = row > 1 and column > 1 and letter == other[column - 2] and one[row - 2] == other_letter
            if swapped:
                cost = min(cost, before_last[column - 2] + 1)
            current.append(cost)
        if min(current) > limit:
            return None
        before_last, last = last, current
    return last[-1] if last[-1] <= limit else None


def _shared(one: str, other: str) -> int:
    """How many letters two texts begin with in common."""
    for position, (letter, other_letter) in enumerate(zip(one, other, strict=False)):
        if letter != other_letter:
            return position
    return min(len(one), len(other))


def related(one: str, other: str) -> bool:
    """Whether one is a part of the other: ``web`` and ``shop-web``, ``web`` and ``webserver``."""
    mine, others = _spelt(one), _spelt(other)
    if not mine.words or not others.words:
        return False
    short, long = (mine.plain, others.plain) if len(mine.plain) <= len(others.plain) else (others.plain, mine.plain)
    part = len(short) >= 3 and (long.startswith(short) or long.endswith(short))
    return part or mine.words <= others.words or others.words <= mine.words


@lru_cache(maxsize=1 << 12)
def same_key(one: str, other: str) -> bool:
    """Whether two label keys are the same but for a typing mistake or a prefix."""
    plain, other_plain = _spelt(one).plain, _spelt(other).plain
    if distance(plain, other_plain, 1 if min(len(plain), len(other_plain)) < 6 else 2) is not None:
        return True
    name, other_name = one.rpartition("/")[2], other.rpartition("/")[2]
    if ("/" in one) != ("/" in other) and name == other_name:
        return True
    return "/" in one and "/" in other and misspelt(name, other_name) is not None


def _common(value: str) -> bool:
    """Whether the value is so common that finding it under another key says nothing."""
    return value.lower() in ("true", "false", "yes", "no", "") or value.isdigit()


def _called(shape: Shape, name: str) -> bool:
    return bool(name) and (
        name in shape.labels.values() or (shape.workload is not None and shape.workload.metadata.name == name)
    )


def _text(shape: Shape) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(shape.labels.items()))
