"""What server-side apply does to objects: the fields a configuration names, merging it in, taking fields out.

Walkers are those of ``fields.typed``; ``None`` stands for a leaf, which is replaced and removed as a whole.
Results are built from new containers along the way and share the leaves of what they were given.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from seamark.api.fields.fieldsets import LEAF, SELF, Fields, field_step, owns
from seamark.api.fields.typed import Listing, Map, Struct, Walker, fitting
from seamark.errors import Object

_ABSENT: Any = object()


def _below(walker: Walker | None, name: str) -> Walker | None:
    """The walker of a map's value or a struct's field; a field that the shape does not have is a leaf."""
    if isinstance(walker, Struct):
        known = walker.fields.get(name)
        return known[1] if known else None
    return walker.of if isinstance(walker, Map) else None


# --- what a configuration names ---------------------------------------------------------------------


def named_fields(walker: Walker | None, value: Any) -> Fields:
    """The set of all fields that are spelled out in ``value``, without the containers that only hold them."""
    walker = fitting(walker, value)
    if not value or walker is None:
        return {}
    if isinstance(walker, Listing):
        return {
            step: LEAF if len(items) > 1 else _member(named_fields(walker.of, items[0]))
            for step, items in walker.grouped(value).items()
        }
    out: Fields = {}
    if isinstance(walker, Map):
        for key, item in value.items():
            out[field_step(key)] = _member(named_fields(walker.of, item))
        return out
    for name, item in value.items():
        known = walker.fields.get(name)
        if known is None:
            continue
        step, of = known
        if fitting(of, item) is None or item is None or item == {}:
            out[step] = LEAF
        elif below := named_fields(of, item):
            out[step] = below if walker.declares(name) else _member(below)
    return out


def _member(below: Fields) -> Fields:
    return {SELF: LEAF, **below} if below else LEAF


def with_structs(walker: Walker | None, fields: Fields) -> Fields:
    """``fields`` and the struct fields on the way to its members, which sets otherwise leave out."""
    out: Fields = {}
    for step, node in fields.items():
        if not node:
            out[step] = node
            continue
        if isinstance(walker, Listing):
            out[step] = with_structs(walker.of, node)
            continue
        below = with_structs(_below(walker, step[2:]), node)
        is_field = isinstance(walker, Struct) and step[2:] in walker.fields
        out[step] = {SELF: LEAF, **below} if is_field else below
    return out


# --- taking out -------------------------------------------------------------------------------------


def remove(walker: Walker | None, value: Any, fields: Fields) -> Any:
    """``value`` without the members of ``fields`` and what is in them; None if nothing is left."""
    walker = fitting(walker, value)
    if walker is None:
        return value
    if not value:
        return None
    out: Any
    if isinstance(walker, Listing):
        out = []
        for item in value:
            node = fields.get(walker.step(item))
            if node is None:
                out.append(item)
            elif not owns(node):
                left = remove(walker.of, item, node)
                out.append({} if left is None else left)
        return out or None
    out = {}
    for name, item in value.items():
        node = fields.get(field_step(name))
        if node is None:
            out[name] = item
        elif not owns(node):
            # An emptied container stays as null; decoding turns that into the type's empty value.
            out[name] = remove(_below(walker, name), item, node)
    return out or None


# --- merging in -------------------------------------------------------------------------------------


def merge(walker: Walker | None, live: Any, config: Any) -> Any:
    """``live`` with every field that ``config`` spells out; either may be empty."""
    walker = fitting(walker, live, config)
    if walker is None or not (live or config):
        return config
    if isinstance(walker, Listing):
        return _merge_lists(walker, live or [], config or [])
    live, config = live or {}, config or {}
    out: Object = {}
    for name in [*live, *(name for name in config if name not in live)]:
        ours, theirs = live.get(name, _ABSENT), config.get(name, _ABSENT)
        if theirs is _ABSENT:
            out[name] = ours
        else:
            out[name] = merge(_below(walker, name), None if ours is _ABSENT else ours, theirs)
    return out


def _merge_lists(walker: Listing, live: list[Any], config: list[Any]) -> list[Any]:
    """Elements of both in the order of ``config``, with those that only ``live`` has staying where they were.

    A live element keeps its place before the shared element that followed it, as far as the configuration's order
    of the shared ones allows.
    """
    theirs = {walker.step(item): item for item in config}
    groups = walker.grouped(live)
    live_steps = [walker.step(item) for item in live]
    shared = deque(step for step in theirs if step in groups)
    pending = deque(theirs)
    merged: set[str] = set()
    out: list[Any] = []

    def take() -> None:
        """Take the configuration's next element, merged with the live one of its key.

        Where the live list has several of that key, all are replaced, because it is not known which is meant.
        """
        step = pending.popleft()
        twins = groups.get(step, [])
        out.append(merge(walker.of, twins[0] if len(twins) == 1 else None, theirs[step]))
        merged.add(step)
        if shared and shared[0] == step:
            shared.popleft()

    position = 0
    while position < len(live) or pending:
        if position == len(live):
            take()
            continue
        step = live_steps[position]
        if step not in theirs:
            out.append(live[position])
            position += 1
        elif pending and step == pending[0]:
            take()
            position += 1
        elif pending and shared and shared[0] != step:
            position += 1  # the configuration wants another shared element first
        elif step in merged:
            position += 1
            if pending:
                take()
        else:
            take()
    return out
