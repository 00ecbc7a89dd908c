"""The settings of rolling updates, and numbers that may be percentages, as in ``maxSurge: 25%``."""

from __future__ import annotations

from typing import Literal

from seamark.kinds.values.numbers import LARGEST, int64
from seamark.rules.objects.metadata import View

Share = int | str


class RollingUpdate(View, frozen=True):
    """The settings of all kinds of workloads; the API server sets the defaults of those that a kind has."""

    max_surge: Share = 0
    max_unavailable: Share = 1
    partition: int = 0


def resolve(share: Share, whole: int, *, rounding: Literal["up", "down"]) -> int:
    """The number itself, or the percentage of ``whole``.  The API server accepts no other text than percentages."""
    if isinstance(share, int):
        return share
    percent = int64(share.removesuffix("%"))
    hundredths = (LARGEST if percent is None else percent) * whole
    return -(-hundredths // 100) if rounding == "up" else hundredths // 100
