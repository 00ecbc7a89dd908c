"""The functions of expressions, one module per library; each lists its overloads as ``FUNCTIONS``.

- ``standard``: operators, conversions, sizes, and what texts can do in every dialect
- ``moments``: timestamps and durations
- ``strings``: more about texts; ``formatting``: ``'%d of %s'.format([1, 'x'])``
- ``lists``: sums, order, positions, parts and flat copies of lists
- ``sets``: lists as sets
- ``optionals``: values that may be missing
- ``regex``: patterns, matched in linear time
- ``network``: IP addresses and networks
- ``url``: URLs
- ``semver``: semantic versions
- ``authorizer``: questions to the cluster's authorizer

Kubernetes' quantities and named formats are with the values that they are about: ``seamark.kinds.expressions``.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from seamark.cel.types import Functions, Overload


@cache
def functions() -> Functions:
    """All overloads by the name of their function."""
    from seamark.cel.library import (
        authorizer,
        formatting,
        lists,
        moments,
        network,
        optionals,
        regex,
        semver,
        sets,
        standard,
        strings,
        url,
    )

    modules = (standard, moments, strings, formatting, lists, sets, optionals, regex, network, url, semver, authorizer)
    return grouped(overload for module in modules for overload in module.FUNCTIONS)


def grouped(overloads: Iterable[Overload], base: Functions | None = None) -> Functions:
    """Overloads by the name of their function, added to those of a base."""
    found: dict[str, list[Overload]] = {name: list(known) for name, known in (base or {}).items()}
    for overload in overloads:
        found.setdefault(overload.function, []).append(overload)
    return found
