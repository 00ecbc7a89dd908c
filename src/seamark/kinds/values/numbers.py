"""Whole numbers in texts.  Python refuses to read more than 4,300 digits, and users may write as many as they like."""

from __future__ import annotations

import re

LARGEST = 2**63 - 1

_number = re.compile(r"([+-]?)0*([0-9]{1,19})", re.ASCII)


def int64(text: str) -> int | None:
    """The number in a text as Go reads it; None if it is not a number or needs more than 64 bits."""
    found = _number.fullmatch(text)
    if found is None:
        return None
    number = int(found[1] + found[2])
    return number if -LARGEST - 1 <= number <= LARGEST else None
