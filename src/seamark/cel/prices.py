"""What functions charge as they run, by the sizes of what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from seamark.cel import values
from seamark.cel.cost import CHECK_COST, PER_CALL_LIMIT
from seamark.cel.errors import CostError


def _tenths(value: Any, times: int = 1) -> int:
    return -(-values.sized(value) * times // 10) if isinstance(value, str | bytes) else 1


def _walked(*given: Any) -> int:
    return _tenths(given[0])


def _walked_second(*given: Any) -> int:
    return _tenths(given[1])


def _walked_twice(*given: Any) -> int:
    return _tenths(given[0], 2)


def _built(result: Any, *given: Any) -> int:
    return _tenths(result, 2)


def _joined(items: Any, separator: str = "") -> int:
    """Charged before the text is made: a few long texts many times over would not fit into memory."""
    size = sum(map(values.sized, items)) + len(separator) * max(0, len(items) - 1)
    return -(-size * 2 // 10)


def _replaced(text: str, old: str, new: str, limit: int = -1) -> int:
    """Charged before the text is made, for the same reason."""
    times = text.count(old)
    times = times if limit < 0 else min(times, limit)
    return _walked_twice(text) + -(-(len(text) + times * (len(new) - len(old))) // 10)


def _formatted(text: str, given: Any) -> int:
    """Nothing is charged before, but values that are too large to be shown are refused."""
    if values.weight(given) > PER_CALL_LIMIT:
        raise CostError
    return 0


def _pattern(*given: Any) -> int:
    return -(-(values.sized(given[0]) + 1) // 10) * -(-values.sized(given[1]) // 4)


def _elements(*given: Any) -> int:
    """One for each element, and more for long texts."""
    over = given[0]
    if isinstance(over, list):
        return sum(_tenths(item) if isinstance(item, str) else 1 for item in over)
    return _tenths(over)


def _depths(items: Any) -> int:
    """One for each element, but for a list or map what a comparison walks through."""
    known: dict[int, int] = {}
    if not isinstance(items, list):
        return values.sized(items)
    return sum(values.weight(item, known) if isinstance(item, list | dict) else 1 for item in items)


def _searched(*given: Any) -> int:
    return len(given[1]) * _depths([given[0]]) if isinstance(given[1], list) else 1


def _found(*given: Any) -> int:
    """A place is searched for in a text or in a list."""
    if isinstance(given[0], list) and isinstance(given[1], list | dict):
        return _searched(given[1], given[0])
    return _elements(*given)


def _flattened(items: Any, depth: Any = 1) -> int:
    """What is in other lists is walked through, even if nothing is left of it."""
    if values.weight(items) > PER_CALL_LIMIT:
        raise CostError
    return _elements(items)


def _product(*given: Any) -> int:
    return 1 + _depths(given[0]) * values.sized(given[1])


def _square(*given: Any) -> int:
    return 10 + _depths(given[0]) * values.sized(given[0])


def _concatenated(*given: Any) -> int:
    if isinstance(given[0], str | bytes):
        return _tenths(given[0]) + _tenths(given[1])
    return 1 + values.sized(given[1]) // 10 if isinstance(given[0], list) else 1


def _range(*given: Any) -> int:
    return max(1, given[0]) if isinstance(given[0], int) else 1


Price = tuple[Callable[..., int] | None, Callable[..., int] | None]

# Functions whose cost depends on sizes: what they charge before they run, and after; all others cost 1.
RUNTIME: dict[str, Price] = {
    "_+_": (_concatenated, None),
    "@in": (_searched, None),
    **dict.fromkeys(("matches", "find", "findAll"), (_pattern, None)),
    "contains": (lambda *given: _tenths(given[0]) * _tenths(given[1]), None),
    **dict.fromkeys(("startsWith", "endsWith"), (_walked_second, None)),
    **dict.fromkeys(("isSorted", "sum", "max", "min"), (_elements, None)),
    **dict.fromkeys(("indexOf", "lastIndexOf"), (_found, None)),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim", "url", "isURL"), (_walked, None)),
    **dict.fromkeys(("ip", "isIP", "cidr", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), (_walked, None)),
    "replace": (_replaced, None),
    "split": (_walked_twice, lambda result, *given: _elements(result)),
    "join": (_joined, None),
    "format": (_formatted, _built),
    **dict.fromkeys(("string", "bytes", "strings.quote"), (_walked, None)),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), (_product, None)),
    **dict.fromkeys(("distinct", "sort"), (_square, None)),
    "flatten": (_flattened, lambda result, *given: 1 + len(result)),
    **dict.fromkeys(("slice", "reverse"), (_elements, lambda result, *given: 1 + len(result))),
    "lists.range": (_range, None),
    "check": (lambda *given: CHECK_COST, None),
    "validate": (lambda *given: _tenths(given[1]) * 10, None),
}
