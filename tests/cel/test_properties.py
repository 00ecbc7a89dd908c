"""Properties of all expressions: a tree survives printing, and an evaluation fails in one way only."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from seamark.cel import CelError, Environment
from seamark.cel.nodes import Bind, Call, Entry, Ident, Listing, Literal, Loop, Mapping, Node, Select
from seamark.cel.parser import parse, unparsed
from seamark.cel.types import DYN
from seamark.cel.values import Uint

_NAMES = st.sampled_from(["a", "b", "self", "x"])
_LITERALS: st.SearchStrategy[Node] = st.builds(
    Literal,
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.integers(0, 2**64 - 1).map(Uint),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        st.binary(max_size=5),
    ),
)
_OPERATORS = st.sampled_from(["_+_", "_-_", "_*_", "_/_", "_%_", "_<_", "_>=_", "_==_", "_!=_", "_&&_", "_||_", "@in"])
_METHODS = st.sampled_from(
    ["size", "contains", "startsWith", "split", "join", "sum", "sort", "flatten", "value", "trim"]
)
_LOOPS = st.sampled_from(["all", "exists", "exists_one", "filter", "map", "sortBy"])
_TWO = st.sampled_from(["all", "exists", "transformList", "transformMap", "transformMapEntry"])


def _larger(inner: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    two = st.lists(inner, min_size=2, max_size=2)
    return st.one_of(
        st.builds(Call, _OPERATORS, st.none(), two),
        st.builds(Call, st.sampled_from(["_[_]", "_[?_]"]), st.none(), two),
        st.builds(Call, st.just("_?_:_"), st.none(), st.lists(inner, min_size=3, max_size=3)),
        st.builds(Call, st.just("!_"), st.none(), st.lists(inner, min_size=1, max_size=1)),
        st.builds(Call, _METHODS, inner, st.lists(inner, max_size=2)),
        st.builds(
            Call, st.sampled_from(["size", "int", "string", "type", "duration"]), st.none(), st.lists(inner, max_size=2)
        ),
        st.builds(Select, inner, _NAMES, st.booleans(), st.booleans()),
        st.builds(Listing, st.lists(inner, max_size=3)),
        st.builds(Mapping, st.lists(st.builds(Entry, inner, inner), max_size=2)),
        st.builds(Loop, _LOOPS, inner, _NAMES.map(lambda name: (name,)), st.lists(inner, min_size=1, max_size=1)),
        st.builds(Loop, _TWO, inner, st.just(("k", "v")), st.lists(inner, min_size=1, max_size=1)),
        st.builds(Bind, st.sampled_from(["optMap", "optFlatMap"]), inner, _NAMES, inner),
    )


_TREES = st.recursive(st.one_of(_LITERALS, st.builds(Ident, _NAMES)), _larger, max_leaves=12)
_DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.floats(), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_NAMES, inner, max_size=3)),
    max_leaves=6,
)
_ENVIRONMENT = Environment({"a": DYN, "b": DYN, "self": DYN, "x": DYN})


@given(_TREES)
def test_a_printed_tree_parses_to_the_same_tree(tree: Node) -> None:
    assert parse(unparsed(tree)) == tree


@given(_TREES, _DOCUMENTS, _DOCUMENTS)
@example(Call("join", Ident("a"), []), [None], None)
@example(Call("sum", Ident("a"), []), [None], None)
@example(Call("sum", Ident("a"), []), [1, None], None)
@example(Call("sort", Ident("a"), []), [None, 1], None)
def test_an_evaluation_raises_only_errors_of_expressions(tree: Node, one: Any, other: Any) -> None:
    try:
        program = _ENVIRONMENT.compile(unparsed(tree))
        assert program.cost_estimate.least <= program.cost_estimate.most
        program.evaluate({"a": one, "b": other, "self": one, "x": other}, limit=10_000)
    except CelError:
        pass


@given(st.text(max_size=30))
def test_any_text_compiles_or_says_why_not(text: str) -> None:
    try:
        _ENVIRONMENT.compile(text)
    except CelError as error:
        assert str(error).startswith("ERROR: <input>:")  # noqa: PT017  # most texts are no expressions
