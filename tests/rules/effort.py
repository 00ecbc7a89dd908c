"""How much work a function does, in lines of Python: the same on every machine, unlike the time that it takes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

FEW, MANY = 20, 160  # entries of a list; eight times as many
LINEAR = 16  # times as many lines, if each entry is looked at a few times; the square would be 64


def lines(call: Callable[[], object]) -> int:
    """How many lines it runs, each as often as it is run."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


def grows(prepared: Callable[[int], Callable[[], object]]) -> float:
    """How many times as much work it is with MANY entries as with FEW; what is prepared for them does not count."""
    few, many = prepared(FEW), prepared(MANY)
    few(), many()  # fills caches, and does what is done once only
    return lines(many) / lines(few)
