"""What an expression costs, estimated from its types before it ever runs.

One unit is the reading of a variable or field.  A list costs 10 and a map 30 to make, a text a tenth of its length to
walk through, and a pattern a quarter of its length for each of those tenths.  Sizes that nothing bounds count as the
largest number there is, so that a rule over them is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from seamark.cel import values
from seamark.cel.nodes import Bind, Call, Ident, Listing, Literal, Loop, Mapping, Node, Select
from seamark.cel.types import UNKNOWN_SIZE, Type

_TENTH = 0.1
_QUARTER = 0.25
_SCALARS = frozenset(("bool", "int", "uint", "double", "timestamp", "duration", "null", "object", "type", "opaque"))
PER_CALL_LIMIT = 1_000_000  # what one evaluation may cost
CHECK_COST = 350_000  # asking an authorizer: at most two questions fit into an expression


class Range(msgspec.Struct, frozen=True):
    """At least and at most so much."""

    least: int
    most: int

    def __add__(self, other: Range) -> Range:
        return Range(_capped(self.least + other.least), _capped(self.most + other.most))

    def __mul__(self, other: Range) -> Range:
        return Range(_capped(self.least * other.least), _capped(self.most * other.most))

    def __or__(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))

    def times(self, factor: float) -> Range:
        return Range(_capped(math.ceil(self.least * factor)), _capped(math.ceil(self.most * factor)))


def _capped(number: int) -> int:
    return min(number, UNKNOWN_SIZE)


NOTHING, ONE = Range(0, 0), Range(1, 1)
_UNKNOWN = Range(0, UNKNOWN_SIZE)


class Extent(msgspec.Struct, frozen=True):
    """How large a value can be, and its keys and values if it has any."""

    size: Range
    key: Extent | None = None
    value: Extent | None = None
    type: Type | None = None

    def __or__(self, other: Extent) -> Extent:
        key = None if self.key is None or other.key is None else self.key | other.key
        value = None if self.value is None or other.value is None else self.value | other.value
        return Extent(self.size | other.size, key, value)


_SINGLE, _ANY = Extent(ONE), Extent(_UNKNOWN)


def extent_of(type: Type | None) -> Extent:
    """What a type says of the size of its values."""
    if type is None:
        return _ANY
    if type.kind == "optional":
        return extent_of(type.params[0])
    if type.most is not None:
        return Extent(Range(0, type.most), type=type)
    return Extent(ONE, type=type) if type.kind in _SCALARS else Extent(_UNKNOWN, type=type)


def _key(extent: Extent) -> Extent:
    if extent.key is not None:
        return extent.key
    type = extent.type
    return extent_of(type.params[0]) if type is not None and type.kind == "map" else _SINGLE


def _value(extent: Extent) -> Extent:
    if extent.value is not None:
        return extent.value
    type = extent.type
    return extent_of(type.params[-1]) if type is not None and type.params else _ANY


Estimate = tuple[Range, Extent]


def estimate(node: Node, variables: dict[str, Type]) -> Range:
    """What the evaluation of a checked tree costs at least and at most."""
    return _Estimator(variables).of(node)[0]


class _Estimator:
    def __init__(self, variables: dict[str, Type]) -> None:
        self._variables = {name: extent_of(type) for name, type in variables.items()}

    def of(self, node: Node) -> Estimate:
        match node:
            case Literal(value):
                return NOTHING, Extent(Range(values.sized(value), values.sized(value)))
            case Ident(name):
                return ONE, self._variables.get(name.removeprefix("."), _ANY)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Listing(elements):
                return self._list(elements)
            case Mapping():
                return self._map(node)
            case Loop():
                return self._loop(node)
            case Bind(_, value, name, body):
                cost, extent = self.of(value)
                inner, made = self._within({name: extent}, body)
                return cost + inner + Range(12, 12), made
        raise TypeError(f"not a node: {node!r}")

    def _within(self, names: dict[str, Extent], node: Node) -> Estimate:
        before, self._variables = self._variables, self._variables | names
        try:
            return self.of(node)
        finally:
            self._variables = before

    def _select(self, node: Select) -> Estimate:
        cost, owner = self.of(node.operand)
        if node.test:
            return cost, _SINGLE
        type = owner.type or node.operand.type
        if type is not None and type.kind == "optional":
            type = type.params[0]
        if type is not None and type.kind == "object" and type.fields is not None and node.field in type.fields:
            return cost + ONE, extent_of(type.fields[node.field].type)
        if type is not None and type.kind == "map":
            return cost + ONE, _value(owner)
        return cost + (NOTHING if type is not None and type.kind == "dyn" else ONE), _fallback(node)

    def _list(self, elements: list[Node]) -> Estimate:
        cost, inner = Range(10, 10), None
        for element in elements:
            more, extent = self.of(element)
            cost, inner = cost + more, extent if inner is None else inner | extent
        return cost, Extent(Range(len(elements), len(elements)), _SINGLE, inner)

    def _map(self, node: Mapping) -> Estimate:
        cost = Range(40, 40) if node.name else Range(30, 30)
        key: Extent | None = None
        value: Extent | None = None
        for entry in node.entries:
            (key_cost, key_extent), (value_cost, value_extent) = self.of(entry.key), self.of(entry.value)
            cost = cost + key_cost + value_cost
            key = key_extent if key is None else key | key_extent
            value = value_extent if value is None else value | value_extent
        return cost, Extent(Range(len(node.entries), len(node.entries)), key, value)

    def _loop(self, node: Loop) -> Estimate:
        cost, over = self.of(node.range)
        kind = "" if node.range.type is None else node.range.type.kind
        if len(node.variables) == 2:
            given = [_key(over) if kind == "map" else _SINGLE, _value(over)]
        else:
            given = [_key(over) if kind == "map" else _value(over)]
        names = dict(zip(node.variables, given, strict=True))
        parts = [self._within(names, part) for part in node.parts]
        made = Extent(over.size, _SINGLE, parts[-1][1])
        rounds, result = NOTHING, ONE
        condition = parts[0][0]
        match node.macro:
            case "all":
                rounds = Range(3, 3) + condition
                made = _SINGLE
            case "exists":
                rounds = Range(4, 4) + condition
                made = _SINGLE
            case "exists_one":
                rounds, result = Range(1, 2) + condition, Range(2, 2)
                made = _SINGLE
            case "filter":
                rounds = Range(1, 13) + condition
                made = Extent(over.size, _SINGLE, given[0])
            case "transformMap" | "transformMapEntry":
                rounds = Range(0, 2) + parts[-1][0] + (condition if len(parts) == 2 else NOTHING)
                made = Extent(over.size, _key(over), parts[-1][1])
            case _:
                rounds = Range(12, 12) + parts[-1][0]
                if len(parts) == 2:
                    rounds = (rounds | ONE) + condition
        start = Range(10, 10) if node.macro in ("map", "filter", "transformList", "sortBy") else NOTHING
        return cost + start + over.size * rounds + result, made

    def _call(self, node: Call) -> Estimate:
        target = None if node.target is None else self.of(node.target)
        arguments = [self.of(argument) for argument in node.arguments]
        costs = [cost for cost, _ in arguments]
        extents = [extent for _, extent in arguments]
        if node.function in ("_&&_", "_||_"):
            return Range(costs[0].least, (costs[0] + costs[1]).most), _SINGLE
        if node.function == "_?_:_":
            return costs[0] + (costs[1] | costs[2]), extents[1] | extents[2]
        paid = sum(costs, NOTHING if target is None else target[0])
        given = extents if target is None else [target[1], *extents]
        found = ESTIMATES.get(node.function)
        answer = None if found is None else found(given, node)
        if answer is None:
            return paid + ONE, _fallback(node)
        return paid + answer[0], answer[1] or _fallback(node)


def _fallback(node: Node) -> Extent:
    """The extent of a value about which only the type is known."""
    type = node.type
    if type is not None and type.kind in _SCALARS:
        return _SINGLE
    return Extent(_UNKNOWN, type=type)


# --- functions --------------------------------------------------------------------------------------------

Answer = tuple[Range, Extent | None] | None
Given = Sequence[Extent]


def _walk(which: int, *, factor: float = _TENTH, keeps: bool = False) -> Callable[[Given, Call], Answer]:
    """Walks through one of the texts once; ``keeps`` says that the result is not longer than it."""

    def price(given: Given, node: Call) -> Answer:
        return given[which].size.times(factor), Extent(given[which].size) if keeps else None

    return price


def _sum(given: Given, node: Call) -> Answer:
    kinds = {argument.type.kind for argument in node.arguments if argument.type is not None}
    if not kinds & {"string", "bytes", "list", "dyn"}:
        return None
    size = given[0].size + given[1].size
    if "list" in kinds:
        merged = _value(given[0]) | _value(given[1])
        return ONE, Extent(size, _SINGLE, merged)
    return size.times(_TENTH), Extent(size)


def _equals(given: Given, node: Call) -> Answer:
    most = min(given[0].size.most, given[1].size.most)
    return Range(1 if most else 0, most).times(_TENTH), None


def _order(given: Given, node: Call) -> Answer:
    kinds = {argument.type.kind for argument in node.arguments if argument.type is not None}
    return _equals(given, node) if kinds & {"string", "bytes"} else None


def _index(given: Given, node: Call) -> Answer:
    return ONE, _value(given[0])


def _in(given: Given, node: Call) -> Answer:
    over = node.arguments[1].type
    return None if over is not None and over.kind == "map" else (given[1].size, _SINGLE)


def _matched(given: Given, node: Call) -> Answer:
    size = (given[0].size + ONE).times(_TENTH) * given[1].size.times(_QUARTER)
    return size, Extent(Range(0, given[0].size.most)) if node.function != "matches" else None


def _contains(given: Given, node: Call) -> Answer:
    return given[0].size.times(_TENTH) * given[1].size.times(_TENTH), None


def _over_list(given: Given, node: Call) -> Answer:
    """Compares each element once."""
    of = node.target.type if node.target is not None else None
    if of is not None and of.kind == "string":
        return given[0].size.times(_TENTH), None
    element = of.params[0].kind if of is not None and of.params else ""
    each = ONE + _value(given[0]).size.times(_TENTH) if element in ("string", "bytes") else ONE
    return given[0].size * each, _value(given[0]) if node.function in ("max", "min") else None


def _replace(given: Given, node: Call) -> Answer:
    text, wanted, instead = (extent.size for extent in given[:3])
    most = _replaced(text.most, wanted.least, instead.most, longer=True)
    least = _replaced(text.least, wanted.most, instead.least, longer=False)
    return text.times(2 * _TENTH), Extent(Range(least, most))


def _replaced(text: int, wanted: int, instead: int, *, longer: bool) -> int:
    if wanted == 0:
        return _capped((text + 1) * instead + text)
    if (instead <= wanted) if longer else (wanted <= instead):
        return text
    return _capped(-(-text // wanted) * instead)


def _split(given: Given, node: Call) -> Answer:
    size = given[0].size
    return size.times(2 * _TENTH), Extent(Range(0, size.most), _SINGLE, Extent(Range(0, size.most)))


def _join(given: Given, node: Call) -> Answer:
    count, each = given[0].size, _value(given[0]).size
    size = count * each
    if len(given) > 1:
        size = size + given[1].size * Range(max(count.least - 1, 0), max(count.most - 1, 0))
    return size.times(_TENTH), Extent(size)


def _format(given: Given, node: Call) -> Answer:
    return given[0].size.times(_TENTH), Extent(given[0].size + given[1].size)


def _to_bytes(given: Given, node: Call) -> Answer:
    size = given[0].size
    return size.times(_TENTH), Extent(Range(size.least, _capped(size.most * 4)))


def _to_string(given: Given, node: Call) -> Answer:
    kind = "" if node.arguments[0].type is None else node.arguments[0].type.kind
    size = given[0].size
    if kind == "bytes":
        return size.times(_TENTH), Extent(Range(size.least // 4, size.most))
    return None


def _quote(given: Given, node: Call) -> Answer:
    size = given[0].size
    return size.times(_TENTH), Extent(Range(size.least + 2, _capped(size.most * 2 + 2)))


def _same(given: Given, node: Call) -> Answer:
    return ONE, given[0]


def _sets(given: Given, node: Call) -> Answer:
    factor = 2 if node.function == "sets.equivalent" else 1
    return ONE + (given[0].size * given[1].size).times(factor), None


def _network(given: Given, node: Call) -> Answer:
    base = Range(1, 4) if node.function == "containsIP" else Range(3, 7)
    return base + (given[1].size.times(_TENTH) if _kind_of(node.arguments[0]) == "string" else NOTHING), None


def _ip(given: Given, node: Call) -> Answer:
    return None if node.target is not None else (given[0].size.times(_TENTH), None)


def _kind_of(node: Node) -> str:
    return "" if node.type is None else node.type.kind


def _check(given: Given, node: Call) -> Answer:
    return Range(CHECK_COST, CHECK_COST), None


def _validate(given: Given, node: Call) -> Answer:
    return given[1].size.times(_TENTH) * Range(1, 50), None


def _flat(given: Given, node: Call) -> Answer:
    inner = _value(given[0])
    return given[0].size + ONE, Extent(given[0].size * inner.size, _SINGLE, _value(inner))


def _kept(given: Given, node: Call) -> Answer:
    return given[0].size + Range(10, 10), given[0]


def _compared(given: Given, node: Call) -> Answer:
    return given[0].size * given[0].size + Range(10, 10), given[0]


ESTIMATES: dict[str, Callable[[Given, Call], Answer]] = {
    "_+_": _sum,
    "_==_": _equals,
    "_!=_": _equals,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _order),
    **dict.fromkeys(("_[_]", "_[?_]"), _index),
    "@in": _in,
    **dict.fromkeys(("matches", "find", "findAll"), _matched),
    "contains": _contains,
    **dict.fromkeys(("startsWith", "endsWith"), _walk(1)),
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _over_list),
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _walk(0, keeps=True)),
    **dict.fromkeys(("url", "cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _walk(0)),
    "ip": _ip,
    "ip.isCanonical": _walk(0, factor=2 * _TENTH),
    **dict.fromkeys(("containsIP", "containsCIDR"), _network),
    "replace": _replace,
    "split": _split,
    "join": _join,
    "format": _format,
    "bytes": _to_bytes,
    "string": _to_string,
    "strings.quote": _quote,
    **dict.fromkeys(("dyn", "optional.of", "optional.ofNonZeroValue", "value", "orValue", "or"), _same),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _sets),
    "check": _check,
    "validate": _validate,
    "flatten": _flat,
    **dict.fromkeys(("slice", "reverse"), _kept),
    **dict.fromkeys(("distinct", "sort"), _compared),
}
