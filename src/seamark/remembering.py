"""Remembers what functions say about texts that users send; not about long ones, of which thousands fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Sized
from functools import lru_cache, wraps
from typing import TypeVar

LONGEST = 1024  # characters

T = TypeVar("T", bound=Sized)
R = TypeVar("R")


def remembered(entries: int, *, longest: int = LONGEST) -> Callable[[Callable[[T], R]], Callable[[T], R]]:
    """As ``lru_cache``, for a function of one text: what it says of the last ``entries`` is kept."""

    def decorate(function: Callable[[T], R]) -> Callable[[T], R]:
        kept: Callable[[T], R] = lru_cache(maxsize=entries)(function)  # type: ignore[assignment]

        @wraps(function)
        def recall(text: T) -> R:
            return kept(text) if len(text) <= longest else function(text)

        return recall

    return decorate
