"""Objects of a kind as a server would store them, and the sentences with which it refuses the others."""

from __future__ import annotations

from typing import Any

import pytest
from kind_rules import change, create, sentences
from merge_patch import merged

from seamark.errors import Invalid, Object
from seamark.kinds.kind import Kind


def made(kind: Kind, **more: Any) -> Object:
    """The object ``x`` with these fields."""
    return create(kind, {"metadata": {"name": "x", **more.pop("metadata", {})}, **more})


def refusals(kind: Kind, **more: Any) -> list[str]:
    """What is wrong with the object ``x`` with these fields."""
    with pytest.raises(Invalid) as refused:
        made(kind, **more)
    return sentences(refused.value)


def patched(kind: Kind, old: Object, patch: Object, subresource: str = "") -> Object:
    """The object after a merge patch."""
    return change(kind, old, merged(old, patch), subresource)


def change_refusals(kind: Kind, old: Object, patch: Object, subresource: str = "") -> list[str]:
    """What is wrong with a merge patch."""
    with pytest.raises(Invalid) as refused:
        patched(kind, old, patch, subresource)
    return sentences(refused.value)
