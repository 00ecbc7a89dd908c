"""The tree of a parsed expression.  Every node knows where it is in the text; the checker adds its type."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seamark.cel.types import Overload, Type


@dataclass(slots=True, kw_only=True)
class Node:
    at: int = field(default=0, compare=False)
    type: Type | None = field(default=None, compare=False, repr=False)


@dataclass(slots=True)
class Literal(Node):
    """A number, text, bytes, true, false or null."""

    value: Any


@dataclass(slots=True)
class Ident(Node):
    """A variable or the name of a type."""

    name: str


@dataclass(slots=True)
class Select(Node):
    """``operand.field``; ``operand.?field``; as ``has(operand.field)`` it only tells whether the field is there."""

    operand: Node
    field: str
    test: bool = False
    optional: bool = False


@dataclass(slots=True)
class Call(Node):
    """``function(arguments)`` or ``target.function(arguments)``; operators have names such as ``_+_``."""

    function: str
    target: Node | None
    arguments: list[Node]
    overloads: list[Overload] = field(default_factory=list, compare=False, repr=False)


@dataclass(slots=True)
class Listing(Node):
    """``[a, ?b]``: elements, and the positions of those that are optional."""

    elements: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True)
class Entry(Node):
    """One entry of a map or one field of an object."""

    key: Node
    value: Node
    optional: bool = False


@dataclass(slots=True)
class Mapping(Node):
    """``{key: value}``, or ``Name{field: value}`` if it has a name."""

    entries: list[Entry]
    name: str = ""


@dataclass(slots=True)
class Loop(Node):
    """A macro over a list or map, such as ``range.all(variable, body)``; ``variables`` are one or two.

    ``parts`` are the expressions after the variables: a condition, what to make of an element, or both.
    """

    macro: str
    range: Node
    variables: tuple[str, ...]
    parts: list[Node]


@dataclass(slots=True)
class Bind(Node):
    """``value.optMap(name, body)`` and ``value.optFlatMap(name, body)``."""

    macro: str
    value: Node
    name: str
    body: Node


def children(node: Node) -> list[Node]:
    """The nodes directly inside a node."""
    match node:
        case Select(operand):
            return [operand]
        case Call(_, target, arguments):
            return [*([] if target is None else [target]), *arguments]
        case Listing(elements):
            return list(elements)
        case Entry(key, value):
            return [key, value]
        case Mapping(entries):
            return list(entries)
        case Loop(_, over, _, parts):
            return [over, *parts]
        case Bind(_, value, _, body):
            return [value, body]
    return []
