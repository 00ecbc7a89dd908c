"""Gives every node its type, and says what does not fit.

Names are resolved here as well: ``sets.contains(a, b)`` is a function with a dot in its name, ``net.IP`` a type.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Named

from seamark.cel import types
from seamark.cel.errors import CompileError, EvaluationError, Mistake
from seamark.cel.nodes import Bind, Call, Entry, Ident, Listing, Literal, Loop, Mapping, Node, Select, children
from seamark.cel.types import BOOL, DYN, ERROR, INT, Functions, Overload, Substitution, Type, shown
from seamark.cel.values import TypeValue, Uint, parse_duration, parse_timestamp

_LITERALS: dict[type, Type] = {
    bool: BOOL,
    int: INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    type(None): types.NULL,
}


def check(text: str, node: Node, variables: Named[str, Type], functions: Functions, names: Named[str, Type]) -> Node:
    """The tree with its types and resolved names; raises :class:`CompileError`."""
    checker = _Checker(variables, functions, names)
    node = checker.visit(node)
    if checker.mistakes:
        raise CompileError(text, checker.mistakes)
    checker.settle(node)
    return node


class _Checker:
    def __init__(self, variables: Named[str, Type], functions: Functions, names: Named[str, Type]) -> None:
        self._variables = variables
        self._functions = functions
        self._names = names
        self._local: list[dict[str, Type]] = []
        self._types = Substitution()
        self._formats = 0  # how many calls of format() we are in, whose lists may mix types
        self.mistakes: list[Mistake] = []

    def settle(self, node: Node) -> None:
        """Replace what stayed open by ``dyn``."""
        assert node.type is not None
        node.type = self._types.resolved(node.type, unknown=DYN)
        for inner in children(node):
            if isinstance(inner, Entry):
                self.settle(inner.key)
                self.settle(inner.value)
            else:
                self.settle(inner)

    def visit(self, node: Node) -> Node:
        match node:
            case Literal():
                node.type = _LITERALS[node.value.__class__]
            case Ident():
                return self._ident(node)
            case Select():
                return self._select(node)
            case Call():
                return self._call(node)
            case Listing():
                self._list(node)
            case Mapping():
                self._map(node)
            case Loop():
                self._loop(node)
            case Bind():
                self._bind(node)
        return node

    def _typed(self, node: Node) -> Type:
        assert node.type is not None
        return self._types.resolved(node.type)

    def _mistake(self, node: Node, message: str) -> None:
        self.mistakes.append(Mistake(node.at, message))
        node.type = ERROR

    def _undeclared(self, node: Node, name: str) -> None:
        self._mistake(node, f"undeclared reference to '{name}' (in container '')")

    # --- names ---------------------------------------------------------------------------------------

    def _variable(self, name: str) -> Type | None:
        if not name.startswith("."):
            for scope in reversed(self._local):
                if name in scope:
                    return scope[name]
        return self._variables.get(name.removeprefix("."))

    def _named(self, name: str) -> Type | None:
        name = name.removeprefix(".")
        return types.named_type(name) or self._names.get(name)

    def _ident(self, node: Ident) -> Node:
        if (found := self._variable(node.name)) is not None:
            node.type = found
            return node
        if (named := self._named(node.name)) is not None:
            return _type_literal(node, named)
        self._undeclared(node, node.name.removeprefix("."))
        return node

    def _path(self, node: Node) -> str:
        """``a.b.c`` if the node is only names whose first is no variable, else nothing."""
        if isinstance(node, Ident):
            return "" if self._variable(node.name) is not None else node.name
        if isinstance(node, Select) and not node.test and not node.optional:
            path = self._path(node.operand)
            return f"{path}.{node.field}" if path else ""
        return ""

    def _dotted(self, node: Select) -> Node | None:
        """The variable that a name with a dot stands for, as ``authorizer.requestResource`` does."""
        if node.test or node.optional or not isinstance(node.operand, Ident):
            return None
        name = f"{node.operand.name}.{node.field}".removeprefix(".")
        if name not in self._variables or any(node.operand.name in scope for scope in self._local):
            return None
        found = Ident(name, at=node.at)
        found.type = self._variables[name]
        return found

    def _select(self, node: Select) -> Node:
        path = self._path(node)
        if path and (named := self._named(path)) is not None:
            return _type_literal(node, named)
        if (dotted := self._dotted(node)) is not None:
            return dotted
        node.operand = self.visit(node.operand)
        node.type = self._field(node, self._typed(node.operand))
        if node.test and node.type is not ERROR:
            node.type = BOOL
        return node

    def _field(self, node: Select, owner: Type) -> Type:
        if owner.kind == "optional":
            inner = self._field(node, self._types.resolved(owner.params[0]))
            return inner if inner.kind in ("optional", "error") else types.optional_of(inner)
        match owner.kind:
            case "map":
                found = owner.params[1]
            case "object":
                field = (owner.fields or {}).get(node.field)
                if field is None:
                    self._mistake(node, f"undefined field '{node.field}'")
                    return ERROR
                found = field.type
            case "dyn" | "param":
                found = DYN
            case "error":
                return ERROR
            case _:
                self._mistake(node, f"type '{shown(owner)}' does not support field selection")
                return ERROR
        return types.optional_of(found) if node.optional and found.kind != "optional" else found

    # --- calls ---------------------------------------------------------------------------------------

    def _call(self, node: Call) -> Node:
        if node.target is not None and (path := self._path(node.target)):
            name = f"{path}.{node.function}".removeprefix(".")
            if name in self._functions:
                node.target, node.function = None, name
        if node.target is not None:
            node.target = self.visit(node.target)
        else:
            node.function = node.function.removeprefix(".")
        known = self._functions.get(node.function)
        if known is None:
            self._undeclared(node, node.function)
            return node
        self._formats += node.function == "format"
        node.arguments = [self.visit(argument) for argument in node.arguments]
        self._formats -= node.function == "format"
        given = [self._typed(argument) for argument in (*([node.target] if node.target else []), *node.arguments)]
        self._resolve(node, known, given)
        self._validate(node)
        return node

    def _resolve(self, node: Call, known: list[Overload], given: list[Type]) -> None:
        result: Type | None = None
        member = node.target is not None
        for candidate in known:
            if candidate.member != member or len(candidate.params) != len(given):
                continue
            attempt, renamed = self._types.copy(), dict[str, Type]()
            params = [attempt.fresh(param, renamed) for param in candidate.params]
            if not all(map(attempt.fits, params, given)):
                continue
            made = attempt.resolved(attempt.fresh(candidate.result, renamed))
            self._types.take(attempt)
            node.overloads.append(candidate)
            result = made if result is None or _alike(result, made) else DYN
        if result is None:
            listed = [shown(self._types.resolved(type, unknown=DYN)) for type in given]
            applied = f"{listed[0]}.({', '.join(listed[1:])})" if member else f"({', '.join(listed)})"
            self._mistake(node, f"found no matching overload for '{node.function}' applied to '{applied}'")
            return
        node.type = result

    def _validate(self, node: Call) -> None:
        """Texts that are written out must mean something: durations, timestamps and patterns."""
        if node.function not in ("duration", "timestamp", "matches") or not node.arguments:
            return
        argument = node.arguments[-1]
        if not isinstance(argument, Literal) or not isinstance(argument.value, str):
            return
        from seamark.cel.library.regex import compiled

        readers: dict[str, Callable[[str], object]] = {
            "duration": parse_duration,
            "timestamp": parse_timestamp,
            "matches": compiled,
        }
        try:
            readers[node.function](argument.value)
        except EvaluationError:
            self.mistakes.append(Mistake(argument.at, f"invalid {node.function} argument"))

    # --- lists and maps ------------------------------------------------------------------------------

    def _same(self, before: Type | None, node: Node, given: Type) -> Type:
        """The common type of the elements so far and one more."""
        if before is None:
            return given
        if not self._types.fits(before, given):
            if self._formats:
                return DYN
            expected = shown(self._types.resolved(before, unknown=DYN))
            self._mistake(node, f"expected type '{expected}' but found '{shown(given)}'")
            return before
        return types.joined(before, given)

    def _list(self, node: Listing) -> None:
        node.elements = [self.visit(element) for element in node.elements]
        common: Type | None = None
        for index, element in enumerate(node.elements):
            given = self._typed(element)
            common = self._same(common, element, self._given(element, given) if index in node.optional else given)
        node.type = types.list_of(common or self._types.fresh(Type("param", "T"), {}))

    def _given(self, node: Node, type: Type) -> Type:
        """What is inside the optional of an optional element."""
        if type.kind == "optional":
            return type.params[0]
        if type.kind not in ("dyn", "error"):
            self._mistake(node, f"expected type 'optional_type({shown(type)})' but found '{shown(type)}'")
        return DYN

    def _map(self, node: Mapping) -> None:
        if node.name:
            self._object(node)
            return
        keys: Type | None = None
        items: Type | None = None
        for entry in node.entries:
            entry.key, entry.value = self.visit(entry.key), self.visit(entry.value)
            keys = self._same(keys, entry.key, self._typed(entry.key))
            given = self._typed(entry.value)
            items = self._same(items, entry.value, self._given(entry.value, given) if entry.optional else given)
        renamed: dict[str, Type] = {}
        empty = self._types.fresh(Type("param", "K"), renamed), self._types.fresh(Type("param", "V"), renamed)
        node.type = types.map_of(keys or empty[0], items or empty[1])

    def _object(self, node: Mapping) -> None:
        made = self._names.get(node.name)
        if made is None or made.kind != "object":
            self._undeclared(node, node.name)
            return
        node.type = made
        for entry in node.entries:
            entry.key, entry.value = self.visit(entry.key), self.visit(entry.value)
            assert isinstance(entry.key, Literal)
            field = (made.fields or {}).get(entry.key.value)
            given = self._typed(entry.value)
            given = self._given(entry.value, given) if entry.optional else given
            if field is None:
                self.mistakes.append(Mistake(entry.at, f"undefined field '{entry.key.value}'"))
            elif not self._types.fits(field.type, given):
                text = f"expected type of field '{entry.key.value}' is '{shown(field.type)}' but provided type is"
                self.mistakes.append(Mistake(entry.at, f"{text} '{shown(given)}'"))

    # --- macros --------------------------------------------------------------------------------------

    def _loop(self, node: Loop) -> None:
        node.range = self.visit(node.range)
        over = self._typed(node.range)
        two = len(node.variables) == 2
        match over.kind:
            case "list":
                given = [INT, over.params[0]] if two else [over.params[0]]
            case "map":
                given = list(over.params) if two else [over.params[0]]
            case "dyn" | "error" | "param":
                given = [DYN, DYN]
            case _:
                text = f"expression of type '{shown(over)}' cannot be range of a comprehension"
                self._mistake(node.range, f"{text} (must be list, map, or dynamic)")
                given = [ERROR, ERROR]
        self._local.append(dict(zip(node.variables, given, strict=False)))
        node.parts = [self.visit(part) for part in node.parts]
        self._local.pop()
        node.type = self._result(node, over, given)

    def _result(self, node: Loop, over: Type, given: list[Type]) -> Type:
        last = self._typed(node.parts[-1])
        match node.macro:
            case "all":
                self._condition(node, node.parts[0], "_&&_", "(bool, {})")
                return BOOL
            case "exists":
                self._condition(node, node.parts[0], "_||_", "(bool, {})")
                return BOOL
            case "exists_one":
                self._condition(node, node.parts[0], "_?_:_", "({}, int, int)")
                return BOOL
            case "filter":
                made = types.list_of(given[0])
                self._condition(node, node.parts[0], "_?_:_", f"({{}}, {shown(made)}, {shown(made)})")
                return made
            case "sortBy":
                return types.list_of(given[0])
        if node.macro in ("map", "transformList"):
            made = types.list_of(last)
        elif node.macro == "transformMap":
            made = types.map_of(INT if over.kind == "list" else given[0], last)
        else:
            made = last if last.kind == "map" else DYN
            if last.kind not in ("map", "dyn", "error", "param"):
                self._mistake(
                    node, f"found no matching overload for 'cel.@mapInsert' applied to '(map(dyn, dyn), {shown(last)})'"
                )
        if len(node.parts) == 2:
            self._condition(node, node.parts[0], "_?_:_", f"({{}}, {shown(made)}, {shown(made)})")
        return made

    def _condition(self, node: Loop, part: Node, function: str, applied: str) -> None:
        found = self._typed(part)
        if not self._types.fits(BOOL, found):
            what = applied.format(shown(found))
            self._mistake(node, f"found no matching overload for '{function}' applied to '{what}'")

    def _bind(self, node: Bind) -> None:
        node.value = self.visit(node.value)
        value = self._typed(node.value)
        if value.kind not in ("optional", "dyn", "error", "param"):
            self._mistake(node, f"found no matching overload for 'hasValue' applied to '{shown(value)}.()'")
            value = ERROR
        self._local.append({node.name: value.params[0] if value.kind == "optional" else DYN})
        node.body = self.visit(node.body)
        self._local.pop()
        made = self._typed(node.body)
        if node.macro == "optMap":
            node.type = types.optional_of(made)
            return
        if made.kind not in ("optional", "dyn", "error", "param"):
            applied = f"(bool, {shown(made)}, optional_type(dyn))"
            self._mistake(node, f"found no matching overload for '_?_:_' applied to '{applied}'")
        node.type = made


def _alike(one: Type, other: Type) -> bool:
    return one is other or (one.kind == other.kind and one.name == other.name and str(one) == str(other))


def _type_literal(node: Node, named: Type) -> Literal:
    made = Literal(TypeValue(str(types.Type(named.kind, named.name))), at=node.at)
    made.type = types.type_of(named)
    return made
