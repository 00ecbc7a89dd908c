"""Numbers that may be percentages: ``maxSurge: 25%`` of so many replicas."""

from __future__ import annotations

from typing import Literal

Share = int | str


def resolve(share: Share, whole: int, *, rounding: Literal["up", "down"]) -> int:
    """The number meant, out of ``whole``.  The API server has seen to it that a text is digits and a percent sign."""
    if isinstance(share, int):
        return share
    hundredths = int(share.removesuffix("%")) * whole
    return -(-hundredths // 100) if rounding == "up" else hundredths // 100
