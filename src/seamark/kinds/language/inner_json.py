"""Reads JSON that users put inside other texts: in a token, an annotation, the name of a step of a path.

A text may be no JSON, no UTF-8, or nested too deep.  The parser tells each by another exception, and some of these are
no ``ValueError``.  Here all of them are one.
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
