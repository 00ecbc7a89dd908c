"""Reads JSON that users put inside other texts: in a token, an annotation, the name of a step of a path.

A text may be wrong in several ways, and the parser tells each by another exception, of which some are no ``ValueError``:
it is not JSON, it is not UTF-8, it is nested too deep.  Here all of them are one.
"""

from __future__ import annotations

from typing import Any

import msgspec

from seamark.kinds.language.scalars import check_depth


class Unreadable(ValueError):
    """The text is no JSON that can be worked with."""


def read(text: str | bytes, type: Any = Any) -> Any:
    """The value of a text, not deeper than functions that call themselves can go; raises :class:`Unreadable`."""
    try:
        value = msgspec.json.decode(text, type=type)
        check_depth(value)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Unreadable(str(error)) from error
    return value
