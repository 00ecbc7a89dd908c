"""What differs between two values, for messages about changes that are not allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from seamark.kinds.values.fields import show


def difference(before: Any, after: Any) -> str:
    """One line per change: ``- path: old`` and ``+ path: new``."""
    return "".join(f"{line}\n" for line in _lines(before, after, ""))


def _lines(before: Any, after: Any, path: str) -> Iterator[str]:
    if before == after:
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            yield from _lines(before.get(key), after.get(key), f"{path}.{key}" if path else key)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (was, now) in enumerate(zip(before, after, strict=True)):
            yield from _lines(was, now, f"{path}[{i}]")
    else:
        if before is not None:
            yield f"- {path}: {show(before)}"
        if after is not None:
            yield f"+ {path}: {show(after)}"
