"""Patterns of schemas, matched as in expressions: by RE2, in time that grows with the text only.

It grows with the pattern too, and ``(a|b)*a(a|b){900}c`` is a large one: a text of a megabyte takes it half a minute,
and ``\\pL{1,300}`` takes a quarter of a second to compile.  So both count as work that may have to be done in a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from seamark.haste import spend


class PatternError(ValueError):
    """A pattern that Go cannot compile; the text is Go's."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Callable[[str], bool]:
    """What says whether the pattern is found in a text; raises :class:`PatternError`."""
    # Loaded for the first pattern only: many servers never see one.
    from seamark.cel.errors import EvaluationError
    from seamark.cel.library.regex import compiled as compiled_pattern
    from seamark.cel.library.regex import matcher

    try:
        found = matcher(pattern)
    except EvaluationError as error:
        raise PatternError(str(error)) from None
    size = compiled_pattern(pattern).programsize

    def matches(text: str) -> bool:
        spend(size * len(text))
        return found(text)

    return matches
