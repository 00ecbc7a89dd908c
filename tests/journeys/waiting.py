"""How a journey waits: for what it needs, however long a busy machine takes to get there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(ask: Callable[[], T]) -> T:
    """The first true answer.  A test that waits in vain is shown, with the line, by pytest's faulthandler."""
    while not (answer := ask()):
        time.sleep(0.05)
    return answer
