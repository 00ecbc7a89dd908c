"""Patterns of schemas, matched as in expressions: by RE2, in time that grows with the text only."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache


class PatternError(ValueError):
    """A pattern that Go cannot compile; the text is Go's."""


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Callable[[str], bool]:
    """What says whether the pattern is found in a text; raises :class:`PatternError`."""
    # Loaded for the first pattern only: many servers never see one.
    from seamark.cel.errors import EvaluationError
    from seamark.cel.library.regex import matcher

    try:
        return matcher(pattern)
    except EvaluationError as error:
        raise PatternError(str(error)) from None
