"""Sets of fields, in the form they have on the wire: ``metadata.managedFields[].fieldsV1``.

A set is a tree of dicts whose keys are the steps of paths:

    f:name                          a field of a struct, or a key of a map
    k:{"port":80,"protocol":"TCP"}  the list element whose keys have these values
    v:"example.com/x"               that element of a set
    i:0                             by position; read, but nothing writes it any more

A step is a member of the set if it leads to ``{}`` or if its subtree contains ``.``; otherwise it is only on the way to
members.  The root ``{}`` is the empty set.  Trees are never edited: every function returns a new one and shares what
did not change, which is why one empty dict, ``LEAF``, can stand at the end of every path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from seamark.kinds.language import inner_json

Fields = dict[str, "Fields"]

SELF = "."
LEAF: Fields = {}

_encode = msgspec.json.Encoder().encode


class MalformedFields(ValueError):
    """Something that was sent as ``fieldsV1`` is not a set of fields."""


def of_paths(paths: Iterable[tuple[str, ...]]) -> Fields:
    """The set of these fields of structs."""
    root: Fields = {}
    for *way, last in paths:
        inner = root
        for name in way:
            inner = inner.setdefault(field_step(name), {})
        inner[field_step(last)] = LEAF
    return root


# --- steps ------------------------------------------------------------------------------------------


def field_step(name: str) -> str:
    return "f:" + name


def key_step(keys: dict[str, Any]) -> str:
    """``keys`` must be in alphabetical order."""
    return "k:" + _encode(keys).decode()


def value_step(value: Any) -> str:
    return "v:" + _encode(value).decode()


def _value_order(value: Any) -> tuple[int, Any]:
    """Kubernetes sorts numbers before strings before booleans before the rest."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value.encode()
    return 3, _encode(value)


def _step_order(step: str) -> tuple[int, Any]:
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return 0, text.encode()
    if kind == "k:":
        keys = msgspec.json.decode(text)
        return 1, [(name.encode(), _value_order(value)) for name, value in keys.items()]
    if kind == "v:":
        return 2, _value_order(msgspec.json.decode(text))
    return 3, int(text)


def _show_value(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def show_step(step: str) -> str:
    """A step as messages print it: ``.name``, ``[port=80,protocol="TCP"]``, ``[="example.com/x"]``."""
    kind, text = step[:2], step[2:]
    if kind == "f:":
        return "." + text
    if kind == "k:":
        pairs = msgspec.json.decode(text).items()
        return "[" + ",".join(f"{name}={_show_value(value)}" for name, value in pairs) + "]"
    if kind == "v:":
        return f"[={_show_value(msgspec.json.decode(text))}]"
    return f"[{text}]"


def _canonical_step(step: str) -> str | None:
    """The one spelling of a step, or None for a kind that is not known (yet)."""
    if len(step) < 2 or step[1] != ":":
        raise MalformedFields(f"not a step of a path: {step!r}")
    kind, text = step[0], step[2:]
    if kind == "f":
        return step
    if kind not in "kvi":
        return None
    try:
        value = inner_json.read(text)
    except inner_json.Unreadable as error:
        raise MalformedFields(f"not a step of a path: {step!r}") from error
    if kind == "k":
        if not isinstance(value, dict):
            raise MalformedFields(f"not a step of a path: {step!r}")
        return key_step(dict(sorted(value.items())))
    if kind == "i" and (not isinstance(value, int) or isinstance(value, bool)):
        raise MalformedFields(f"not a step of a path: {step!r}")
    return kind + ":" + _encode(value).decode()


# --- in and out -------------------------------------------------------------------------------------


def parse(sent: Any) -> Fields:
    """The set that a client sent as ``fieldsV1``; raises :class:`MalformedFields`."""
    if sent is None:
        return LEAF
    if not isinstance(sent, dict):
        raise MalformedFields("a set of fields must be an object")
    fields: Fields = {}
    for sent_step, below in sent.items():
        if sent_step == SELF:
            continue
        step = _canonical_step(sent_step)
        if step is None:
            continue
        node = parse(below)
        if node and SELF in below:
            node = {SELF: LEAF, **node}
        fields[step] = _joined(fields[step], node) if step in fields else node
    return fields


def ordered(fields: Fields) -> Fields:
    """The same set with its steps in the order in which Kubernetes writes them."""
    steps = sorted((step for step in fields if step != SELF), key=_step_order)
    out = {step: ordered(fields[step]) for step in steps}
    return {SELF: LEAF, **out} if SELF in fields else out


def owns(node: Fields) -> bool:
    """Whether the step that leads to this node is itself a member."""
    return not node or SELF in node


def paths(fields: Fields) -> Iterator[tuple[str, ...]]:
    """Every member as its steps, in Kubernetes' order: a level's members, then what lies below them."""
    steps = sorted((step for step in fields if step != SELF), key=_step_order)
    for step in steps:
        if owns(fields[step]):
            yield (step,)
    for step in steps:
        for rest in paths(fields[step]):
            yield (step, *rest)


def show(path: tuple[str, ...]) -> str:
    return "".join(show_step(step) for step in path)


# --- algebra ----------------------------------------------------------------------------------------


def union(one: Fields, other: Fields) -> Fields:
    """The members of either."""
    out = dict(one)
    for step, node in other.items():
        mine = out.get(step)
        out[step] = node if mine is None else _joined(mine, node)
    return out


def _joined(one: Fields, other: Fields) -> Fields:
    if not one:
        return other if owns(other) else {SELF: LEAF, **other}
    if not other:
        return one if SELF in one else {SELF: LEAF, **one}
    return union(one, other)


def difference(one: Fields, other: Fields) -> Fields:
    """The members of ``one`` that are not members of ``other``; ``one`` itself if that is all of them."""
    out = one
    for step, node in other.items():
        mine = one.get(step)
        if mine is None:
            continue
        rest = _rest(mine, node)
        if rest is mine:
            continue
        if out is one:
            out = dict(one)
        if rest is None:
            del out[step]
        else:
            out[step] = rest
    return out


def _rest(mine: Fields, other: Fields) -> Fields | None:
    if not mine:
        return None if owns(other) else mine
    rest = difference(mine, other if other else {SELF: LEAF})
    return rest if rest is mine else _tidy(rest)


def _tidy(node: Fields) -> Fields | None:
    """A node after steps were taken from it: nothing, a plain member, or what it is."""
    if len(node) > 1:
        return node
    if not node:
        return None
    return LEAF if SELF in node else node


def intersection(one: Fields, other: Fields) -> Fields:
    """The members of both."""
    out: Fields = {}
    for step, node in one.items():
        theirs = other.get(step)
        if theirs is None:
            continue
        if node and theirs:
            both = _tidy(intersection(node, theirs))
        else:
            both = LEAF if owns(node) and owns(theirs) else None
        if both is not None:
            out[step] = both
    return out


def without(one: Fields, roots: Fields) -> Fields:
    """``one`` less the members of ``roots`` and everything below them."""
    out: Fields = {}
    for step, node in one.items():
        root = roots.get(step)
        if root is None:
            out[step] = node
        elif not owns(root):
            rest = _tidy(without(node, root)) if node else node
            if rest is not None:
                out[step] = rest
    return out
