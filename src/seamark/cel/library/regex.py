"""Patterns: ``matches``, ``find`` and ``findAll``.

They are matched by RE2 (the package ``google-re2``), as Kubernetes matches them in Go: the time is linear in the text,
whatever the pattern.  Python's own ``re`` tries alternatives one after the other, and a pattern such as ``(a+)+$``
takes it years, which no count of cost would stop.  RE2's words for a mistake in a pattern are translated to Go's.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import re2  # type: ignore[import-untyped]  # it has no types

from seamark.cel.errors import EvaluationError
from seamark.cel.types import overload
from seamark.haste import STEPS_AT_ONCE, rest, spend

_MISTAKES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
STEPS_PER_INSTRUCTION = 80
STEPS_PER_MISTAKE = 5_000_000
_BARE = ("trailing \\",)  # Go shows no part of the pattern with these


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    return options


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The pattern, ready to match; :class:`EvaluationError` with Go's words if it is none."""
    # Only repetitions with a number and classes of letters make a short pattern large.
    spend(STEPS_AT_ONCE if "{" in pattern or "\\p" in pattern else STEPS_AT_ONCE // 20)
    try:
        found = re2.compile(pattern, options=_options())
        rest(found.programsize * STEPS_PER_INSTRUCTION)
        return found
    except re2.error as error:
        rest(STEPS_PER_MISTAKE)  # one that is too large is compiled for a while
        raise EvaluationError(f"error parsing regexp: {_mistake(pattern, error)}") from None


def _mistake(pattern: str, error: Exception) -> str:
    text = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error.args[0])
    word, _, part = text.partition(": ")
    said = _MISTAKES.get(word, word)
    if word in _BARE:
        return f"{said}: ``"
    return f"{said}: `{part or pattern}`"


@lru_cache(maxsize=4096)
def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether the pattern is found in a text; raises as :func:`compiled`.

    A set of one pattern answers several times as fast as a search that says where.  A set that runs out of memory finds
    nothing, so what it does not find is searched for.  A pattern can be too large for a set.
    """
    searched = compiled(pattern)
    quick = re2.Set.SearchSet(_options())
    quick.Add(pattern)
    try:
        quick.Compile()
    except re2.error:
        return lambda text: searched.search(text) is not None
    return lambda text: bool(quick.Match(text)) or searched.search(text) is not None


def _matches(text: str, pattern: str) -> bool:
    return matcher(pattern)(text)


def _find(text: str, pattern: str) -> str:
    found = compiled(pattern).search(text)
    return "" if found is None else found.group(0)


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found: list[str] = []
    for match in compiled(pattern).finditer(text):
        if 0 <= limit <= len(found):
            break
        found.append(match.group(0))
    return found


FUNCTIONS = [
    overload("string.matches(string) -> bool", _matches),
    overload("matches(string, string) -> bool", _matches),
    overload("string.find(string) -> string", _find),
    overload("string.findAll(string) -> list<string>", _find_all),
    overload("string.findAll(string, int) -> list<string>", _find_all),
]
