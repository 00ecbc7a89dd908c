"""An environment with all of Kubernetes' libraries."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from seamark.cel import Environment
from seamark.cel.types import Type
from seamark.kinds.expressions import formats, quantities


@cache
def _base() -> Environment:
    return Environment({}, overloads=[*quantities.FUNCTIONS, *formats.FUNCTIONS])


def environment(variables: Mapping[str, Type]) -> Environment:
    """What expressions of Kubernetes can use, with these variables."""
    return _base().with_variables(variables)
