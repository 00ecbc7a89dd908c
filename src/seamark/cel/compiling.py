"""A checked tree as nested Python functions, which count what they cost.

Every node becomes a function of a *frame*: a list whose first place is the :class:`Meter`, and whose other places are
the variables.  What a node costs in any case is counted at compile time and charged once, where the evaluation of a
branch or of a loop's body begins; only what depends on sizes is charged when it is known.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import ge, gt, le, lt
from typing import Any

from seamark.cel import values
from seamark.cel.equality import equality, joining
from seamark.cel.errors import CostError, EvaluationError, no_such_key, no_such_overload
from seamark.cel.loops import LOOPS, STEP_COSTS, Frame, Run, steps_of
from seamark.cel.nodes import Bind, Call, Ident, Listing, Literal, Loop, Mapping, Node, Select
from seamark.cel.prices import RUNTIME
from seamark.cel.types import Overload, Type
from seamark.cel.values import NONE, Optional, key_of, lookup, some, weight

_COMPARED = {"_<_": lt, "_<=_": le, "_>_": gt, "_>=_": ge}
_PLAIN = frozenset(("bool", "int", "string", "bytes", "timestamp", "duration", "double"))
_DIRECT = frozenset(("int", "string", "double"))


class Meter:
    """What an evaluation may still cost."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def charge(self, cost: int) -> None:
        self.left -= cost
        if self.left < 0:
            raise CostError


class Code:
    """An expression that can be evaluated: ``cost`` is charged when it begins."""

    def __init__(self, node: Node, variables: dict[str, Type]) -> None:
        maker = _Maker(variables)
        try:
            self.run = maker.make(node)
        except RecursionError:
            raise EvaluationError("the expression is nested too deeply") from None
        self.cost = maker.fixed
        self.places = dict(maker.globals)
        self.size = maker.size

    def evaluate(self, given: dict[str, Any], meter: Meter) -> Any:
        frame: Frame = [None] * self.size
        frame[0] = meter
        for name, (place, convert) in self.places.items():
            if name not in given:
                raise EvaluationError(f"no such attribute(s): {name}")
            value = given[name]
            frame[place] = value if convert is None or value is None else convert(value)
        meter.charge(self.cost)
        try:
            return self.run(frame)
        except RecursionError:
            raise EvaluationError("the value is nested too deeply") from None


class _Maker:
    def __init__(self, variables: dict[str, Type]) -> None:
        self._variables = variables
        self._local: list[dict[str, int]] = []
        self.globals: dict[str, tuple[int, Callable[[Any], Any] | None]] = {}
        self.size = 1
        self.fixed = 0

    def _place(self) -> int:
        self.size += 1
        return self.size - 1

    def _branch(self, node: Node) -> tuple[Run, int]:
        """The code of a part that may be left out, and what it costs if it is not."""
        before, self.fixed = self.fixed, 0
        run = self.make(node)
        cost, self.fixed = self.fixed, before
        return run, cost

    def make(self, node: Node) -> Run:
        match node:
            case Literal(value):
                return lambda frame: value
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Listing():
                return self._list(node)
            case Mapping():
                return self._map(node)
            case Loop():
                return self._loop(node)
            case Bind():
                return self._bind(node)
        raise TypeError(f"not a node: {node!r}")

    # --- names ---------------------------------------------------------------------------------------

    def _ident(self, node: Ident) -> Run:
        self.fixed += 1
        name = node.name.removeprefix(".")
        if name == node.name:
            for scope in reversed(self._local):
                if name in scope:
                    place = scope[name]
                    return lambda frame: frame[place]
        if name not in self.globals:
            self.globals[name] = self._place(), self._variables[name].convert
        place = self.globals[name][0]
        return lambda frame: frame[place]

    def _select(self, node: Select) -> Run:
        owner = self.make(node.operand)
        self.fixed += not node.test
        kind = node.operand.type
        if kind is not None and kind.kind == "optional":
            kind = kind.params[0]
        name, convert = node.field, None
        if kind is not None and kind.kind == "object" and kind.fields is not None:
            field = kind.fields[node.field]
            name, convert = field.name, field.type.convert

        def found(value: Any) -> Any:
            """The field of a value; KeyError if it is missing."""
            try:
                inner = value[name]
            except (TypeError, IndexError):
                raise no_such_overload() from None
            return inner if convert is None or inner is None else convert(inner)

        def plain(frame: Frame) -> Any:
            value = owner(frame)
            try:
                return value[name]
            except KeyError:
                raise no_such_key(name) from None
            except (TypeError, IndexError):
                return general(value)

        def general(value: Any) -> Any:
            if value.__class__ is Optional:
                if not value.found:
                    return NONE
                try:
                    inner = found(value.found[0])
                except KeyError:
                    return NONE
                return inner if inner.__class__ is Optional else some(inner)
            try:
                return found(value)
            except KeyError:
                raise no_such_key(name) from None

        def optional(frame: Frame) -> Any:
            value = owner(frame)
            if value.__class__ is not Optional:
                value = some(value)
            return general(value)

        def test(frame: Frame) -> bool:
            value = owner(frame)
            if value.__class__ is Optional:
                if not value.found:
                    return False
                value = value.found[0]
            if not isinstance(value, dict):
                raise no_such_overload()
            try:
                value[name]  # a lazy map makes its values when they are asked for
            except KeyError:
                return False
            return True

        if node.test:
            return test
        if node.optional:
            return optional
        return plain if convert is None else lambda frame: general(owner(frame))

    # --- calls ---------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Run:
        match node.function:
            case "_&&_" | "_||_":
                return self._logical(node, decisive=node.function == "_||_")
            case "_?_:_":
                return self._conditional(node)
            case "_==_" | "_!=_":
                return self._equality(node)
            case "_[_]" | "_[?_]":
                return self._index(node)
            case "optional.or" | "or" | "orValue" if node.target is not None:
                return self._alternative(node)
        arguments = [self.make(inner) for inner in (*([node.target] if node.target else []), *node.arguments)]
        if node.function in _COMPARED and len(arguments) == 2:
            return self._comparison(node, arguments[0], arguments[1])
        price = RUNTIME.get(node.function)
        self.fixed += price is None
        run = _called(node.overloads, arguments, price)
        first = node.arguments[0].type if node.function == "_+_" else None
        if first is not None and first.list_type in ("set", "map"):
            join = joining(first)
            return lambda frame: join(run(frame))
        return run

    def _comparison(self, node: Call, left: Run, right: Run) -> Run:
        compare = _COMPARED[node.function]
        kinds = {_kind(argument) for argument in node.arguments}
        if len(kinds) == 1 and kinds <= _DIRECT:
            self.fixed += 1

            def direct(frame: Frame) -> bool:
                try:
                    return bool(compare(left(frame), right(frame)))
                except TypeError:
                    raise no_such_overload() from None

            return direct

        def compared(frame: Frame) -> bool:
            one, other = left(frame), right(frame)
            frame[0].charge(min(_tenth(one), _tenth(other)))
            values.less(one, other)  # whether these can be compared at all
            return bool(compare(one, other))

        return compared

    def _equality(self, node: Call) -> Run:
        left, right = (self.make(argument) for argument in node.arguments)
        wanted = node.function == "_==_"
        one, other = node.arguments[0].type, node.arguments[1].type
        if _kind(node.arguments[0]) in _PLAIN and _kind(node.arguments[0]) == _kind(node.arguments[1]):
            self.fixed += 1
            if wanted:
                return lambda frame: bool(left(frame) == right(frame))
            return lambda frame: bool(left(frame) != right(frame))
        alike = equality(one, other)

        def compared(frame: Frame) -> bool:
            first, second = left(frame), right(frame)
            frame[0].charge(max(1, min(weight(first), weight(second))))
            return alike(first, second) is wanted

        return compared

    def _logical(self, node: Call, *, decisive: bool) -> Run:
        """``decisive`` is the value of one side that makes the other not matter, not even its failure."""
        left = self.make(node.arguments[0])
        right, cost = self._branch(node.arguments[1])

        def combined(frame: Frame) -> bool:
            failure: EvaluationError | None = None
            try:
                value: bool = left(frame)
                if value is decisive:
                    return value
                if value is not (not decisive):
                    failure = no_such_overload()
            except EvaluationError as error:
                failure = error
            frame[0].charge(cost)
            try:
                value = right(frame)
            except EvaluationError:
                if failure is not None:
                    raise failure from None
                raise
            if value is decisive:
                return value
            if failure is not None:
                raise failure
            if value is not (not decisive):
                raise no_such_overload()
            return not decisive

        return combined

    def _conditional(self, node: Call) -> Run:
        condition = self.make(node.arguments[0])
        (yes, yes_cost), (no, no_cost) = self._branch(node.arguments[1]), self._branch(node.arguments[2])

        def chosen(frame: Frame) -> Any:
            value = condition(frame)
            if value is True:
                frame[0].charge(yes_cost)
                return yes(frame)
            if value is False:
                frame[0].charge(no_cost)
                return no(frame)
            raise no_such_overload()

        return chosen

    def _index(self, node: Call) -> Run:
        owner, index = (self.make(argument) for argument in node.arguments)
        self.fixed += 1
        if node.function == "_[?_]":
            return lambda frame: _optional_lookup(owner(frame), index(frame))

        def found(frame: Frame) -> Any:
            value, key = owner(frame), index(frame)
            if value.__class__ is Optional:
                return _optional_lookup(value, key)
            return lookup(value, key)

        return found

    def _alternative(self, node: Call) -> Run:
        """``optional.or(other)`` and ``optional.orValue(value)``: the other side only counts if it is needed."""
        assert node.target is not None
        target = self.make(node.target)
        self.fixed += 1
        other, cost = self._branch(node.arguments[0])
        plain = node.function == "orValue"

        def chosen(frame: Frame) -> Any:
            value = target(frame)
            if value.__class__ is not Optional:
                raise no_such_overload()
            if value.found:
                return value.found[0] if plain else value
            frame[0].charge(cost)
            return other(frame)

        return chosen

    # --- lists and maps ------------------------------------------------------------------------------

    def _list(self, node: Listing) -> Run:
        elements = [self.make(element) for element in node.elements]
        self.fixed += 10
        optional = node.optional
        if not optional:
            return lambda frame: [element(frame) for element in elements]

        def made(frame: Frame) -> list[Any]:
            out: list[Any] = []
            for index, element in enumerate(elements):
                value = element(frame)
                if index in optional:
                    if value.__class__ is not Optional:
                        raise no_such_overload()
                    out.extend(value.found)
                else:
                    out.append(value)
            return out

        return made

    def _map(self, node: Mapping) -> Run:
        entries = [(self.make(entry.key), self.make(entry.value), entry.optional) for entry in node.entries]
        self.fixed += 40 if node.name else 30

        def made(frame: Frame) -> dict[Any, Any]:
            out: dict[Any, Any] = {}
            for key, value, optional in entries:
                name, item = key_of(key(frame)), value(frame)
                if optional:
                    if item.__class__ is not Optional:
                        raise no_such_overload()
                    if not item.found:
                        continue
                    item = item.found[0]
                if name in out:
                    raise EvaluationError(f"Failed with repeated key: {values.shown_key(name)}")
                out[name] = item
            return out

        return made

    # --- macros --------------------------------------------------------------------------------------

    def _loop(self, node: Loop) -> Run:
        over = self.make(node.range)
        self.fixed += 1
        places = [self._place() for _ in node.variables]
        self._local.append(dict(zip(node.variables, places, strict=True)))
        parts = [self._branch(part) for part in node.parts]
        self._local.pop()
        steps = steps_of(places)
        runs = [run for run, _ in parts]
        cost = sum(cost for _, cost in parts) + STEP_COSTS[node.macro]
        return LOOPS[node.macro](over, steps, runs, cost)

    def _bind(self, node: Bind) -> Run:
        value = self.make(node.value)
        place = self._place()
        self.fixed += 2
        self._local.append({node.name: place})
        body, cost = self._branch(node.body)
        self._local.pop()
        wrap = node.macro == "optMap"

        def bound(frame: Frame) -> Any:
            given = value(frame)
            if given.__class__ is not Optional:
                raise no_such_overload()
            if not given.found:
                return NONE
            frame[place] = given.found[0]
            frame[0].charge(cost)
            made = body(frame)
            if wrap:
                return some(made)
            if made.__class__ is not Optional:
                raise no_such_overload()
            return made

        return bound


# --- calls of functions -----------------------------------------------------------------------------------


def _called(overloads: list[Overload], arguments: list[Run], price: Any) -> Run:
    only = overloads[0] if len(overloads) == 1 else None

    def invoke(given: list[Any]) -> Any:
        chosen = only or next((each for each in overloads if each.suits(*given)), None)
        if chosen is None:
            raise no_such_overload()
        try:
            return chosen.run(*given)
        except (TypeError, AttributeError):
            # Of a list, or of a value that any type may have, the type does not tell what is in it, such as null.
            raise no_such_overload() from None
        except (KeyError, IndexError, ValueError):
            if chosen.suits(*given):
                raise
            raise no_such_overload() from None

    if price is None:
        return lambda frame: invoke([argument(frame) for argument in arguments])

    def metered(frame: Frame) -> Any:
        given = [argument(frame) for argument in arguments]
        before, after = price
        if before is not None:
            try:
                cost = before(*given)
            except (TypeError, AttributeError):
                raise no_such_overload() from None
            frame[0].charge(cost)
        result = invoke(given)
        if after is not None:
            frame[0].charge(after(result, *given))
        return result

    return metered


def _optional_lookup(owner: Any, key: Any) -> Any:
    if owner.__class__ is Optional:
        if not owner.found:
            return NONE
        owner = owner.found[0]
    if not isinstance(owner, dict | list):
        raise no_such_overload()
    try:
        return some(lookup(owner, key))
    except EvaluationError:
        return NONE


def _kind(node: Node) -> str:
    return "" if node.type is None else node.type.kind


def _tenth(value: Any) -> int:
    return -(-values.sized(value) // 10) if isinstance(value, str | bytes) else 1
