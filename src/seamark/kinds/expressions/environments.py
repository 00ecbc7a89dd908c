"""An environment with all of Kubernetes' libraries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from seamark.cel import Environment
from seamark.cel.types import Overload, Type
from seamark.kinds.expressions import formats, quantities


@cache
def _base(more: tuple[Overload, ...]) -> Environment:
    return Environment({}, overloads=[*quantities.FUNCTIONS, *formats.FUNCTIONS, *more])


def environment(variables: Mapping[str, Type], *more: Overload) -> Environment:
    """What expressions of Kubernetes can use, with these variables and ``more`` functions."""
    return _base(more).with_variables(variables)
