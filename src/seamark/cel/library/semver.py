"""Semantic versions: ``1.2.3-rc.1+build``; lenient ones may begin with v, have zeros in front, or fewer numbers."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.cel.values import Opaque

_numeral = re.compile(r"[0-9]+", re.ASCII)
_word = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_lenient = re.compile(r"[vV]?([0-9]+)(?:\.([0-9]+))?(?:\.([0-9]+))?([-+].*)?", re.ASCII | re.DOTALL)


class Semver(Opaque):
    """A version; what is behind the plus sign does not count when versions are compared."""

    type_name: ClassVar[str] = "kubernetes.Semver"

    def __init__(self, text: str) -> None:
        core, _, build = text.partition("+")
        core, dash, before = core.partition("-")
        numbers = core.split(".", 2)
        if len(numbers) < 3:
            raise ValueError("No Major.Minor.Patch elements found")
        for number, name in zip(numbers, ("major", "minor", "patch"), strict=True):
            if not _numeral.fullmatch(number):
                raise ValueError(f'Invalid character(s) found in {name} number "{number}"')
            if len(number) > 1 and number.startswith("0"):
                raise ValueError(f'{name.capitalize()} number must not contain leading zeroes "{number}"')
        self.numbers = tuple(map(int, numbers))
        self.before = tuple(map(_identifier, before.split("."))) if dash else ()
        for part in build.split(".") if "+" in text else ():
            if not part:
                raise ValueError("Build meta data is empty")
            if not _word.fullmatch(part):
                raise ValueError(f'Invalid character(s) found in build meta data "{part}"')

    @property
    def rank(self) -> tuple[Any, ...]:
        """Sorts versions: one without a suffix comes after all that have one, numbers before words."""
        return self.numbers, not self.before, tuple((isinstance(p, str), p) for p in self.before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self.rank == other.rank

    def __hash__(self) -> int:
        return hash(self.rank)


def _identifier(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _numeral.fullmatch(text):
        if len(text) > 1 and text.startswith("0"):
            raise ValueError(f'Numeric PreRelease version must not contain leading zeroes "{text}"')
        return int(text)
    if not _word.fullmatch(text):
        raise ValueError(f'Invalid character(s) found in prerelease "{text}"')
    return text


def _normal(text: str) -> str:
    match = _lenient.fullmatch(text)
    if match is None:
        return text
    return ".".join(str(int(match[i] or 0)) for i in (1, 2, 3)) + (match[4] or "")


def _semver(text: str, lenient: bool = False) -> Semver:
    try:
        return Semver(_normal(text) if lenient else text)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def _is_semver(text: str, lenient: bool = False) -> bool:
    try:
        Semver(_normal(text) if lenient else text)
    except ValueError:
        return False
    return True


def _compare(one: Semver, other: Semver) -> int:
    return (one.rank > other.rank) - (one.rank < other.rank)


_T = "kubernetes.Semver"
FUNCTIONS = [
    overload("isSemver(string) -> bool", _is_semver),
    overload("isSemver(string, bool) -> bool", _is_semver),
    overload(f"semver(string) -> {_T}", _semver),
    overload(f"semver(string, bool) -> {_T}", _semver),
    overload(f"{_T}.major() -> int", lambda version: version.numbers[0]),
    overload(f"{_T}.minor() -> int", lambda version: version.numbers[1]),
    overload(f"{_T}.patch() -> int", lambda version: version.numbers[2]),
    overload(f"{_T}.isGreaterThan({_T}) -> bool", lambda a, b: a.rank > b.rank),
    overload(f"{_T}.isLessThan({_T}) -> bool", lambda a, b: a.rank < b.rank),
    overload(f"{_T}.compareTo({_T}) -> int", _compare),
]
